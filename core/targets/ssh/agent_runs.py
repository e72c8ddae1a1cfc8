"""Requests that concern trials: run, attach, cancel, forget; and their outcomes on the way to the client.

A run carries: trial (its id), trees [{base, set, drop, folders, protected, copied}], slots, inline
[[sha256, length]] with the contents in the body, argv, wrapper, env, path_first, nonce, visits, wall_s,
cpu_s, grace_s, head_bytes, lease_s, lock {name, wait_s, holder} or None, look {smi, deadline_s, gpu,
before, after, refuse_busy} or None, wanted [names], forget [trials], about (said back in `trials`), prefork
{modules, within_s} or None.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: B905

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from core.targets.ssh import agent_trials as trials
    from core.targets.ssh.agent_doors import CANCEL
    from core.targets.ssh.agent_outbox import Outbox
    from core.targets.ssh.agent_prefork import Parents
    from core.targets.ssh.agent_store import Manifests, Store, check_manifest, check_names
    from core.targets.ssh.wire import MOST_BODY_BYTES, Fault, Json, frame, is_sha256
else:
    import agent_trials as trials
    from agent_doors import CANCEL
    from agent_store import check_manifest, check_names
    from wire import MOST_BODY_BYTES, Fault, frame, is_sha256

_NUMBERS = ("wall_s", "grace_s", "lease_s")


class Watched:
    """A connection to a trial's watchdog, and the requests that wait for its outcome."""

    def __init__(self, trial: str, connection: socket.socket) -> None:
        self.trial = trial
        self.connection = connection
        self.waiting: list[int] = []
        self.unread = b""


class Runs:
    """The trials whose outcome this agent's client waits for."""

    def __init__(
        self, store: Store, manifests: Manifests, outbox: Outbox, umask: int, parents: Parents
    ) -> None:
        self.store = store
        self.manifests = manifests
        self.outbox = outbox
        self.umask = umask
        self.parents = parents
        self.locks = ""
        self.watched: dict[int, Watched] = {}
        self.to_forget: set[str] = set()

    def descriptors(self) -> list[int]:
        return [*self.watched, *self.parents.descriptors()]

    def run(self, header: Json, body: bytes) -> Json | None:
        """Start the trial; {"need": ..} when contents or lists are missing, and nothing was started."""
        trial = header["trial"]
        for each in header["forget"]:
            trials.home_of(each)
        if trials.state(trial) != "unknown":
            self.forget({"trials": header["forget"]}, b"")
            return self.attach(header, body)  # asked a second time: the first answer was lost
        self._keep_inline(header["inline"], body)
        specs = [self._spec(tree) for tree in header["trees"]]
        need = self._need(header["trees"], specs)
        if need is not None:
            self.forget({"trials": header["forget"]}, b"")
            return {"need": need}
        request = self._checked({**header, "trees": specs}, len(specs))
        told = {
            "about": header["about"],
            "boot": trials.boot_id(),
            "began_s": time.time(),
            "wanted": len(header["wanted"]),
        }
        begun, connection = trials.begin(trial, request, told, self.umask)
        self._watch(trial, connection, header["id"])
        trials.hand_on(header["forget"], trial)
        self.parents.start(begun)
        self.forget({"trials": header["forget"]}, b"")
        return None

    def _keep_inline(self, rows: list[list[object]], body: bytes) -> None:
        at = 0
        for sha256, length in rows:
            if not is_sha256(sha256) or not isinstance(length, int) or length < 0:
                raise Fault("sync", "a content is announced under what is no SHA-256")
            self.store.put(str(sha256), body[at : at + length])
            at += length

    def _spec(self, tree: Json) -> Json | None:
        """The tree's files from its base and what is changed; None when the base is not known."""
        base: Json | None = {"files": [], "folders": []}
        if tree["base"]:
            base = self.manifests.get(tree["base"])
        if base is None:
            return None
        files = {row[0]: row for row in base["files"]}
        check_names([*tree["drop"], *tree["protected"], *tree["copied"]])
        for name in tree["drop"]:
            files.pop(name, None)
        files.update((row[0], row) for row in tree["set"])
        manifest = {"files": list(files.values()), "folders": [*base["folders"], *tree["folders"]]}
        check_manifest({"files": tree["set"], "folders": tree["folders"]})
        absent = [name for name in tree["protected"] if name not in files]
        if absent:
            raise Fault("sync", f"{ascii(absent[0])[:200]} is to be protected and is not in the tree")
        return {**manifest, "protected": tree["protected"], "copied": tree["copied"]}

    def _need(self, trees: list[Json], specs: list[Json | None]) -> Json | None:
        bases = [tree["base"] for tree, spec in zip(trees, specs) if spec is None]
        hashes = [row[1] for spec in specs if spec is not None for row in spec["files"]]
        self.store.referred = set(hashes)
        missing = self.store.missing(hashes)
        return {"manifests": sorted(set(bases)), "blobs": missing} if bases or missing else None

    def _checked(self, header: Json, trees: int) -> Json:
        """The keeper's request; Fault in stage spawn for what could not be run."""
        request = dict(header)
        if not trees or not header["slots"] or not all(0 <= slot < trees for slot in header["slots"]):
            raise Fault("spawn", "there is no folder to run it in")
        if not header["argv"] or not all(
            isinstance(word, str) for word in header["wrapper"] + header["argv"]
        ):
            raise Fault("spawn", "there is no command to run")
        for name in _NUMBERS:
            request[name] = max(0.0, float(header[name]))
        check_names(header["wanted"])
        request["env"] = environment(header["env"], header["path_first"])
        request["env_set"] = [name for name, value in header["env"].items() if value is not None]
        if header["lock"] is not None:
            request["lock"] = {**header["lock"], "folder": self.locks}
        return request

    def attach(self, header: Json, _: bytes) -> Json | None:
        """Wait for a trial that is already there, or hand out what it left."""
        trial = header["trial"]
        state = trials.state(trial)
        if state == "unknown":
            raise Fault("lost", f"trial {trial} is not known on the remote machine", "run it again")
        for watched in self.watched.values():
            if watched.trial == trial:
                watched.waiting.append(header["id"])
                return None
        connection = trials.connection_to(trial) if state == "running" else None
        if connection is None:
            self.outbox.add(self._frames(trial, header["id"]))
        else:
            self._watch(trial, connection, header["id"])
        return None

    def _watch(self, trial: str, connection: socket.socket, request_id: int) -> None:
        watched = Watched(trial, connection)
        watched.waiting.append(request_id)
        self.watched[connection.fileno()] = watched

    def cancel(self, header: Json, _: bytes) -> Json:
        """{"running": whether there is something to cancel}; the run is answered when it has ended."""
        trial = header["trial"]
        connection = next((each.connection for each in self.watched.values() if each.trial == trial), None)
        passing = None if connection is not None else trials.connection_to(trial)
        connection = connection or passing
        if connection is None:
            return {"running": False}
        try:
            connection.send(CANCEL)
            self.parents.release(trials.home_of(trial))
        except OSError:
            return {"running": False}
        finally:
            if passing is not None:
                passing.close()
        return {"running": True}

    def forget(self, header: Json, _: bytes) -> Json:
        """Remove ended trials; one that is still being cleared up goes at a later request."""
        for trial in header["trials"]:
            trials.home_of(trial)
        self.to_forget.update(header["trials"])
        self.to_forget = {trial for trial in self.to_forget if not trials.forget(trial)}
        return {"left": sorted(self.to_forget)}

    def hear(self, ready: list[int]) -> None:
        """News of the watched trials go to whoever waits; a closed connection means an outcome."""
        self.parents.hear(ready)
        for descriptor in [each for each in ready if each in self.watched]:
            watched = self.watched[descriptor]
            try:
                chunk = watched.connection.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            if chunk:
                self._pass_on(watched, chunk)
                continue
            del self.watched[descriptor]
            watched.connection.close()
            for request_id in watched.waiting:
                self.outbox.add(self._frames(watched.trial, request_id))

    def _pass_on(self, watched: Watched, chunk: bytes) -> None:
        *lines, watched.unread = (watched.unread + chunk).split(b"\n")
        for line in lines:
            with suppress(ValueError):
                note = json.loads(line)
                for request_id in watched.waiting:
                    self.outbox.add(frame({"re": request_id, "note": note}))

    def _frames(self, trial: str, request_id: int) -> Iterator[bytes]:
        """The files a trial left, piece by piece, then its outcome."""
        outcome = trials.outcome(trial)
        for sha256 in outcome.get("dropped", ()):
            self.store.present.discard(sha256)
        if outcome.get("stage") in ("sync", "lost"):
            # Somebody else cleaned, or nobody saw what the trial wrote into: look again, and ask for it.
            self.store.present.clear()
        wanted = trials.about(trials.home_of(trial)).get("wanted", 0)
        states = {}
        for name, path, most_bytes in trials.parts(trial, wanted):
            states[name], descriptor = trials.open_part(path, most_bytes)
            if descriptor >= 0:
                yield from _pieces(request_id, name, descriptor, most_bytes)
        yield frame({"re": request_id, "outcome": outcome, "parts": states})


def _pieces(request_id: int, name: str, descriptor: int, most_bytes: int) -> Iterator[bytes]:
    left = most_bytes
    try:
        while left > 0:
            piece = os.read(descriptor, min(left, MOST_BODY_BYTES))
            if not piece:
                break
            left -= len(piece)
            yield frame({"re": request_id, "part": name}, piece, deflate=len(piece) > 1 << 12)
    finally:
        os.close(descriptor)


def environment(changes: dict[str, str | None], path_first: str) -> dict[str, str]:
    """The environment that the login gave us, without variables of ours, changed as asked (None: without)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("KERNELDECK_")}
    for name in ("OLDPWD", "PWD"):
        env.pop(name, None)
    if path_first:
        env["PATH"] = os.pathsep.join([path_first, env.get("PATH", os.defpath)])
    for name, value in changes.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env
