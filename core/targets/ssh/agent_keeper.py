"""The detached process that keeps one trial: lays it out, waits for the GPU, watches it, writes its outcome.

It outlives the agent and the connection; what is left without anybody connected is ended when its lease is
over. Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: B905, PTH100, PTH102, PTH104, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import json
import os
import secrets
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from typing import Any, NoReturn

    from core.targets.capped_file import pump
    from core.targets.forked import Parent
    from core.targets.remove_tree import remove_tree
    from core.targets.ssh.agent_doors import Doors
    from core.targets.ssh.agent_gpu import seen
    from core.targets.ssh.agent_lock import Lock
    from core.targets.ssh.agent_scratch import fault_of
    from core.targets.ssh.agent_tree import Tree
    from core.targets.ssh.wire import Fault, Json
    from core.targets.watchdog import (
        LONGEST_WAIT_S,
        PR_SET_CHILD_SUBREAPER,
        Failed,
        Watchdog,
        clear,
        prctl,
    )  # fmt: skip
else:
    from agent_doors import Doors
    from agent_gpu import seen
    from agent_lock import Lock
    from agent_scratch import fault_of
    from agent_tree import Tree
    from capped_file import pump
    from remove_tree import remove_tree
    from watchdog import LONGEST_WAIT_S, PR_SET_CHILD_SUBREAPER, Failed, Watchdog, clear, prctl
    from wire import Fault

RESERVED_BYTES = 64 << 10
SPARE, UNFIT = "spare", "unfit"


class DetachedWatchdog(Watchdog):
    """A watchdog that whoever starts it may leave; agents come and go at its doors."""

    def __init__(self, request: Json, doors: Doors, head_bytes: int, parent: Parent | None) -> None:
        super().__init__(request, os.getppid(), parent)
        self.doors = doors
        self.head_bytes = head_bytes

    @property
    def starter(self) -> int:
        """Whoever is our parent now: the agent's end is no reason to believe less of the trial."""
        return os.getppid()

    @starter.setter
    def starter(self, _: int) -> None:
        pass

    def _open_outputs(self) -> None:
        super()._open_outputs()
        for capped in self.outputs:
            capped.room = self.head_bytes

    def _start(self) -> None:
        super()._start()
        self.doors.tell({"event": "started", "pid": self.pid})

    def _next_deadline(self) -> float:
        until = super()._next_deadline()
        lease_until = self.doors.lease_until()
        return until if self.kill_from is not None or lease_until is None else min(until, lease_until)

    def _wait_for_news(self, until: float) -> None:
        wait_s = min(max(0.0, until - time.monotonic()), LONGEST_WAIT_S)
        watched = [self.wake, *self.streams, *self.doors.descriptors()]
        ready, _, _ = select.select(watched, [], [], wait_s)
        if self.wake in ready:
            clear(self.wake)
        for descriptor in [each for each in ready if each in self.streams]:
            if not pump(descriptor, self.streams[descriptor]):
                del self.streams[descriptor]
                os.close(descriptor)
        self.doors.look(ready)

    def _enforce(self) -> None:
        self.cancel_asked = self.cancel_asked or self.doors.cancelled
        if self.kill_from is None and not self.cancel_asked and self.doors.lease_over:
            self.ended_by = "lease"
            self.kill_from = time.monotonic() + self.request["grace_s"]
        super()._enforce()


class Keeper:
    """One trial from its request to its outcome, in the folder `home` below the scratch folder.

    With a `parent`, whose child the keeper is, the trial is forked.
    """

    def __init__(
        self, home: str, request: Json, trees: list[Tree], doors: Doors, parent: Parent | None = None
    ) -> None:
        self.home = home
        self.work = f"{home}/work"
        self.request = request
        self.trees = trees
        self.doors = doors
        self.parent = parent
        self.folders = [secrets.token_hex(4) for _ in trees]
        self.lock: Lock | None = None
        self.gpu: dict[str, Any] = {}
        self.began = time.monotonic()
        self.spent_s: dict[str, float] = {}

    def outcome(self) -> Json:
        """What the supervisor of the local target answers, and what was found after the trial."""
        try:
            self._lay_out()
            self._take_lock()
            self._look_at_gpu("before")
            ended = self._watch()
            self._look_at_gpu("after")
            ended.update(self._found())
            self._leave_spare(ended)
        except Failed as failed:
            ended = {"failure": str(failed)[:400], "stage": failed.stage}
        except Fault as fault:
            ended = self._refused(fault)
        finally:
            if self.lock is not None:
                self.lock.release()
        self._mark("total")
        started = {"forked": self.parent is not None, "note": self.request.get("note", "")}
        return {**ended, **started, "gpu": self.gpu, "spent_s": self.spent_s}

    def _refused(self, fault: Fault) -> Json:
        if self.doors.cancelled or self.doors.lease_over:
            return {"not_started": "cancel" if self.doors.cancelled else "lease"}
        return {"failure": fault.sentence, "stage": fault.stage, "hint": fault.hint}

    def _mark(self, name: str) -> None:
        self.spent_s[name] = round(time.monotonic() - self.began, 6)

    def _lay_out(self) -> None:
        """Beside first: a tree under its own name is whole."""
        beside = f"{self.home}/work.part"
        try:
            os.mkdir(beside, 0o755)
            for tree, folder in zip(self.trees, self.folders):
                if not (tree is self.trees[0] and self._renewed(tree, f"{beside}/{folder}")):
                    tree.build(f"{beside}/{folder}")
            if self.request["visits"]:
                with open(f"{beside}/visits", "x", encoding="utf-8") as file:
                    file.write(self.request["visits"])
            os.rename(beside, self.work)
        except OSError as error:
            raise fault_of(error, "the trial could not be laid out") from None
        self._mark("laid_out")

    def _renewed(self, tree: Tree, place: str) -> bool:
        """Whether the tree that an earlier trial left us has become this one."""
        try:
            os.rename(f"{self.home}/{SPARE}", place)
        except OSError:
            return False
        if tree.many and tree.renew(place):
            return True
        os.rename(place, f"{self.home}/{UNFIT}")
        return False

    def _leave_spare(self, ended: Json) -> None:
        """The next trial may have what is left of a large tree, when nobody can still reach into it."""
        reachable = ended["survivors"] or self.request["wrapper"] or self.request["wanted"]
        if self.trees[0].many and not reachable:
            with suppress(OSError):
                os.rename(f"{self.work}/{self.folders[0]}", f"{self.home}/{SPARE}")

    def _take_lock(self) -> None:
        wanted = self.request["lock"]
        if wanted is None:
            return
        holder = {**wanted["holder"], "watchdog": os.getpid(), "since_s": time.time()}
        self.lock = Lock(wanted["folder"], wanted["name"])
        self.lock.take(holder, wanted["wait_s"], self.doors.wait)
        self._mark("locked")

    def _look_at_gpu(self, when: str) -> None:
        """Who else computes there, and how warm and fast it is; a fault when it is to be free and is not."""
        look = self.request["look"]
        if look is None or not look[when]:
            return
        self.gpu[when] = seen(look["smi"], look["deadline_s"], look["gpu"])
        used = self.gpu[when]["processes"]
        if when == "before" and used and look["refuse_busy"]:
            first = used[0]
            memory = "" if first["memory_mib"] is None else f", {first['memory_mib']:,.0f} MiB"
            words = f"{first['gpu']} is in use by process {first['pid']} ({first['name']}{memory})"
            raise Fault("gpu", words, "wait for it, or use another GPU")

    def _watch(self) -> Json:
        folder = os.path.abspath(f"{self.work}/{self.folders[self.request['slots'][0]]}")
        asked = {
            "id": 0,
            "argv": _wrapped(self.request["wrapper"], self.request["argv"], folder, self._named(folder)),
            "cwd": folder,
            "env": {**self.request["env"], **self._variables(folder)},
            "wall_s": self.request["wall_s"],
            "grace_s": self.request["grace_s"],
            "cpu_s": self.request["cpu_s"],
            "stdout": f"{self.home}/stdout",
            "stderr": f"{self.home}/stderr",
        }
        watchdog = DetachedWatchdog(asked, self.doors, self.request["head_bytes"], self.parent)
        reply = watchdog.run()
        self._mark("ended")
        return reply

    def _variables(self, folder: str) -> dict[str, str]:
        """The trial interface's; nothing in them tells a candidate why it is run."""
        work = os.path.abspath(self.work)
        variables = {
            "PWD": folder,
            "KERNELDECK_RESULT": f"{work}/result.json",
            "KERNELDECK_NONCE": self.request["nonce"],
        }
        slots = self.request["slots"]
        if len(slots) > 1:
            variables["KERNELDECK_ARMS"] = json.dumps([f"{work}/{self.folders[slot]}" for slot in slots])
        if self.request["visits"]:
            variables["KERNELDECK_VISITS"] = f"{work}/visits"
        return variables

    def _named(self, folder: str) -> list[str]:
        """What a container has to be told: the trial interface's variables, and those that were asked for."""
        return sorted({*self._variables(folder), *self.request["env_set"]} - {"PWD"})

    def _found(self) -> Json:
        """Protected files, linked files that were written into, and the files that are asked for."""
        trees = []
        dropped: list[str] = []
        written: list[str] = []
        for index, (tree, folder) in enumerate(zip(self.trees, self.folders)):
            place = f"{self.work}/{folder}"
            findings = tree.findings(place)
            trees.append(findings)
            changed = tree.first_changed(place, findings)
            if changed:
                with suppress(OSError), open(f"{self.home}/changed.{index}", "xb") as file:
                    file.write(changed)
            names = tree.written_into()
            written += names
            dropped += [tree.lent[name][1] for name in names]
        _take_out(self.work, "result.json", f"{self.home}/result")
        for index, name in enumerate(self.request["wanted"]):
            _take_out(f"{self.work}/{self.folders[0]}", name, f"{self.home}/wanted.{index}")
        return {"protected": trees, "written_into": sorted(set(written)), "dropped": sorted(set(dropped))}


def _take_out(folder: str, name: str, place: str) -> None:
    """Move what stands there, a link as a link, unless its own folder is one."""
    parent = os.path.dirname(os.path.join(folder, name))
    if os.path.realpath(parent) == os.path.abspath(parent):
        with suppress(OSError):
            os.rename(os.path.join(folder, name), place)


def _wrapped(wrapper: list[str], argv: list[str], folder: str, names: list[str]) -> list[str]:
    """The wrapper's words before the command: {cwd} is the folder, {env} `-e NAME` for each variable."""
    words: list[str] = []
    for word in wrapper:
        if word == "{env}":
            words += [part for name in names for part in ("-e", name)]
        else:
            words.append(word.replace("{cwd}", folder))
    return words + argv


def keeper_process(keeper: Keeper, door: socket.socket, alive: int, umask: int) -> NoReturn:
    """In a forked child: leave the agent, keep the trial, tell the outcome, clear up, exit."""
    try:
        os.setsid()
        kept = keeper.parent.kept if keeper.parent is not None else set()
        leave_everything({door.fileno(), alive, *kept})
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        _reserve(keeper.home)
        os.umask(umask)
        write_outcome(keeper.home, _outcome_or_why(keeper))
        keeper.doors.close()
        _clear_up(keeper.home)
    finally:
        os._exit(0)


def _outcome_or_why(keeper: Keeper) -> Json:
    try:
        return keeper.outcome()
    except BaseException as error:
        return {"failure": f"its watchdog failed: {type(error).__name__}: {error}"[:400], "stage": "lost"}


def leave_everything(kept: set[int]) -> None:
    """In a child of the agent: none of its descriptors stays open, so that its channel ends with it."""
    signal.set_wakeup_fd(-1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in kept:
            with suppress(OSError):
                os.close(int(name))


def _reserve(home: str) -> None:
    """Room for the outcome, so that a trial that fills the disk has one all the same."""
    with suppress(OSError), open(f"{home}/.outcome", "xb") as file:
        file.write(b" " * RESERVED_BYTES)


def write_outcome(home: str, outcome: Json) -> None:
    text = json.dumps(outcome).encode()
    descriptor = os.open(f"{home}/.outcome", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        view = memoryview(text)
        while view:
            view = view[os.write(descriptor, view) :]
        os.ftruncate(descriptor, len(text))
    finally:
        os.close(descriptor)
    os.rename(f"{home}/.outcome", f"{home}/outcome.json")


def _clear_up(home: str) -> None:
    from pathlib import Path

    for name in ("work", "work.part", "door", UNFIT):
        with suppress(OSError):
            if os.path.lexists(f"{home}/{name}"):
                remove_tree(Path(f"{home}/{name}"))
