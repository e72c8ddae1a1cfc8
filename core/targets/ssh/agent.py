"""The remote side: serves framed requests on its standard input until that closes.

Requests (see `wire` for frames) and their answers, which carry the request's `id` as `re`:

    hello    protocol, silence_s, locks,      who and where we are; fault in stage scratch. The scratch
             limit_bytes, young_s             folder is kept below the limit from now on; 0 for none
    facts    env, path_first, smi, deadline_s processor, system, toolchain, GPUs
    gpus     smi, deadline_s, gpu             samples of the GPUs, and who computes there
    manifest files, folders                   id, and the contents that are missing
    put      blobs, end + body                one of a stream of contents; answered at its end, or by a fault
    run      see `agent_runs`                 `need`, or the outcome once the trial has ended
    attach   trial                            the outcome of a trial that an agent before us started
    cancel   trial        forget  trials      trials        kept        clean  most_bytes, trials_older_than_s
    ping

An answer that says no is {"re", "fault": {"stage", "sentence", "hint"}}. Before an outcome come {"re",
"note": {..}} and the files a trial left, {"re", "part": name} + body. Trials belong to processes of their
own (`agent_keeper`), which live on when this one ends.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH104, PTH108, PTH110, PTH123, PTH208

from __future__ import annotations

import os
import platform
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from core.targets.ssh import agent_facts, agent_gpu, agent_quota, agent_scratch
    from core.targets.ssh import agent_trials as trials
    from core.targets.ssh.agent_errands import Errand, fault_answer
    from core.targets.ssh.agent_lock import default_folder
    from core.targets.ssh.agent_outbox import Outbox
    from core.targets.ssh.agent_prefork import Parents, parent_main
    from core.targets.ssh.agent_runs import Runs, environment
    from core.targets.ssh.agent_store import Manifests, Store, Stream
    from core.targets.ssh.wire import PROTOCOL, Fault, Json, NoFrame, Unframer, frame
    from core.targets.wards import collected
    from core.targets.watchdog import clear, wake_on_signals
else:
    import agent_facts
    import agent_gpu
    import agent_quota
    import agent_scratch
    import agent_trials as trials
    from agent_errands import Errand, fault_answer
    from agent_lock import default_folder
    from agent_outbox import Outbox
    from agent_prefork import Parents, parent_main
    from agent_runs import Runs, environment
    from agent_store import Manifests, Store, Stream
    from wards import collected
    from watchdog import clear, wake_on_signals
    from wire import PROTOCOL, Fault, NoFrame, Unframer, frame

READ_BYTES = 1 << 18
FIRST_WORD_WITHIN_S = 60.0
ERRAND_SLACK_S = 15.0
CLEAN_WITHIN_S = 300.0
_BEFORE_HELLO = ("hello", "ping", "facts", "gpus")


class Agent:
    """One client's agent; everything it waits for is a descriptor."""

    def __init__(self, root: str, inbox: int, outbox: Outbox, umask: int, parents: Parents) -> None:
        self.root = root
        self.inbox = inbox
        self.outbox = outbox
        self.unframer = Unframer()
        self.silence_s = FIRST_WORD_WITHIN_S
        self.heard = time.monotonic()
        self.greeted = False
        self.store = Store()
        self.store.make_room = self._make_room
        self.manifests = Manifests()
        self.streams: dict[int, Stream | None] = {}
        self.runs = Runs(self.store, self.manifests, self.outbox, umask, parents)
        self.errands: dict[int, Errand] = {}
        self.wake = wake_on_signals()

    def serve(self) -> None:
        """Until the client closes, breaks or falls silent."""
        with suppress(BrokenPipeError, NoFrame):
            while self._turn():
                pass

    def _turn(self) -> bool:
        now = time.monotonic()
        limits = [self.heard + self.silence_s, *(errand.until for errand in self.errands.values())]
        limits += self.runs.parents.limits()
        watched = [self.inbox, self.wake, *self.errands, *self.runs.descriptors()]
        writing = [self.outbox.descriptor] if self.outbox else []
        ready, writable, _ = select.select(watched, writing, [], max(0.0, min(limits) - now))
        if self.wake in ready:
            clear(self.wake)
            collected()
        if writable:
            self.outbox.write()
        self._hear_errands(ready)
        self.runs.hear(ready)
        if self.inbox in ready:
            return self._read()
        return time.monotonic() < self.heard + self.silence_s

    def _read(self) -> bool:
        chunk = os.read(self.inbox, READ_BYTES)
        self.heard = time.monotonic()
        for header, body in self.unframer.feed(chunk):
            self._take(header, body)
        if self.outbox:
            self.outbox.write()
        return bool(chunk)

    def _take(self, header: Json, body: bytes) -> None:
        try:
            answer = self._answer(header, body)
        except Fault as fault:
            answer = fault_answer(fault)
        except OSError as error:
            answer = fault_answer(agent_scratch.fault_of(error, "the remote machine refused"))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            words = f"the agent cannot make sense of a request: {type(error).__name__}: {error}"
            answer = fault_answer(Fault("lost", words[:400]))
        if answer is not None:
            self._say(header.get("id"), answer)

    def _say(self, request_id: object, answer: Json) -> None:
        self.outbox.add(frame({"re": request_id, **answer}))

    def _answer(self, header: Json, body: bytes) -> Json | None:
        """The answer, None when it comes later."""
        word = header["op"]
        if not self.greeted and word not in _BEFORE_HELLO:
            raise Fault("lost", f"{ascii(word)[:40]} was asked before hello")
        handlers: dict[str, Callable[[Json, bytes], Json | None]] = {
            "hello": self._hello, "ping": lambda *_: {}, "facts": self._facts, "gpus": self._gpus,
            "manifest": self._manifest, "put": self._put, "run": self.runs.run, "attach": self.runs.attach,
            "cancel": self.runs.cancel, "forget": self.runs.forget, "kept": self._kept, "clean": self._clean,
            "trials": lambda *_: {"trials": trials.listing()},
        }  # fmt: skip
        if word not in handlers:
            raise Fault("lost", f"the agent knows no request {ascii(word)[:40]}")
        return handlers[word](header, body)

    def _hello(self, header: Json, _: bytes) -> Json:
        if header["protocol"] != PROTOCOL:
            words = (
                f"the agent there speaks protocol {PROTOCOL}, {ascii(header['protocol'])[:20]} was asked for"
            )
            raise Fault("shell", words, "use the same version of Kerneldeck for all that talk to this agent")
        self.silence_s = max(0.1, float(header["silence_s"]))
        self.runs.locks = header["locks"] or default_folder()
        agent_scratch.open_scratch(self.root, self._make_room)
        restarted = _note_boot()
        swept = trials.sweep()
        self.greeted = True
        limit_bytes = int(header["limit_bytes"])
        if limit_bytes and agent_quota.is_due(limit_bytes):
            agent_quota.tend_in_background(limit_bytes, float(header["young_s"]))
        return {
            "protocol": PROTOCOL,
            "python": platform.python_version(),
            "uid": os.getuid(),
            "pid": os.getpid(),
            "boot": trials.boot_id(),
            "clock_s": time.time(),
            "room": agent_scratch.room(),
            "restarted": restarted,
            "swept": swept,
        }

    def _facts(self, header: Json, _: bytes) -> None:
        env = environment(header["env"], header["path_first"])
        deadline_s = float(header["deadline_s"])
        self._errand(
            header["id"], lambda: agent_facts.facts(env, header["smi"], deadline_s), deadline_s + 30, "facts"
        )

    def _gpus(self, header: Json, _: bytes) -> None:
        smi, deadline_s, gpu = str(header["smi"]), float(header["deadline_s"]), str(header["gpu"])
        self._errand(
            header["id"], lambda: agent_gpu.check(smi, deadline_s, gpu), 2 * deadline_s, "nvidia-smi"
        )

    def _kept(self, header: Json, _: bytes) -> None:
        self._errand(header["id"], agent_facts.kept, CLEAN_WITHIN_S, "counting what is kept")

    def _clean(self, header: Json, _: bytes) -> None:
        most_bytes, older_s = int(header["most_bytes"]), float(header["trials_older_than_s"])
        self.store.present.clear()
        self._errand(header["id"], lambda: agent_facts.clean(most_bytes, older_s), CLEAN_WITHIN_S, "cleaning")

    def _errand(self, request_id: int, work: Callable[[], Json], deadline_s: float, what: str) -> None:
        errand = Errand(request_id, work, deadline_s + ERRAND_SLACK_S, what)
        self.errands[errand.descriptor] = errand

    def _hear_errands(self, ready: list[int]) -> None:
        now = time.monotonic()
        for errand in list(self.errands.values()):
            late = now >= errand.until
            answer = errand.listen() if errand.descriptor in ready else None
            if answer is None and late:
                answer = fault_answer(errand.late)
            if answer is not None:
                del self.errands[errand.descriptor]
                errand.end()
                self.store.present.clear()
                self._say(errand.request_id, answer)

    def _manifest(self, header: Json, _: bytes) -> Json:
        """Keep the list; which of its contents are missing, when there is room for them."""
        manifest = {"files": header["files"], "folders": header["folders"]}
        sizes = {sha256: size for _, sha256, size, _ in manifest["files"]}
        self.store.referred = set(sizes)
        id_ = self.manifests.put(manifest)
        missing = self.store.missing(sizes)
        needed_bytes = sum(sizes[sha256] for sha256 in missing)
        try:
            agent_scratch.need_room(needed_bytes, len(missing))
        except Fault:
            if not self._make_room(needed_bytes):
                raise
            agent_scratch.need_room(needed_bytes, len(missing))
        return {"manifest": id_, "missing": missing}

    def _make_room(self, needed_bytes: int) -> int:
        return agent_quota.make_room(needed_bytes, self.store.referred)

    def _put(self, header: Json, body: bytes) -> Json | None:
        """After a fault the rest of the stream is passed over: the client reads of it while it sends."""
        request_id = header["id"]
        stream = self.streams.setdefault(request_id, Stream(self.store))
        if stream is not None:
            try:
                stream.take(header["blobs"], body)
            except Fault:
                stream.abandon()
                self.streams[request_id] = None
                raise
        if header["end"]:
            del self.streams[request_id]
            if stream is not None:
                stream.abandon()
                self._note_put()
                return {"stored": stream.stored}
        return None

    def _note_put(self) -> None:
        agent_quota.note_put(self.store.put_bytes)
        self.store.put_bytes = 0

    def leave(self) -> None:
        """What is unfinished is dropped; trials go on without us."""
        if self.greeted:
            self._note_put()
        for stream in self.streams.values():
            if stream is not None:
                stream.abandon()
        for errand in self.errands.values():
            errand.end()
        self.runs.parents.leave()


def _note_boot() -> bool:
    """Whether the machine was restarted since we were last here; then the blobs are dropped."""
    boot = trials.boot_id()
    before = ""
    with suppress(OSError), open("boot", encoding="utf-8") as file:
        before = file.read(200)
    if before == boot:
        return False
    agent_facts.drop_blobs()
    with open("boot", "w", encoding="utf-8") as file:
        file.write(boot)
    return bool(before)


def _keep_bundle(bundle: bytes, sha256: str) -> None:
    """For the next agent, which then need not be sent; those of other versions go."""
    name = f"agent-{sha256}"
    with suppress(OSError):
        for other in os.listdir("."):
            if other.startswith("agent-") and other != name:
                os.unlink(other)
        if not os.path.exists(name):
            with open(name + ".tmp", "wb") as file:
                file.write(bundle)
            os.rename(name + ".tmp", name)


def _open_bundle(bundle: bytes, sha256: str) -> int:
    """For a parent, which is to be what we are."""
    _keep_bundle(bundle, sha256)
    return os.open(f"agent-{sha256}", os.O_RDONLY)


def main(loaded: dict[str, Any]) -> None:
    """Called by the boot program with the scratch folder, the bundle and its hash, or in a parent."""
    if "PARENT" in loaded:
        parent_main([name for name, _ in loaded["SOURCES"]], loaded["PARENT"])
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    umask = os.umask(0o077)
    inbox, written = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # only frames go to the client
    parents = Parents(lambda: _open_bundle(loaded["BUNDLE"], loaded["SHA"]))
    agent = Agent(os.fsdecode(loaded["ROOT"]), inbox, Outbox(written), umask, parents)
    agent.serve()
    agent.leave()
    if agent.greeted:
        _keep_bundle(loaded["BUNDLE"], loaded["SHA"])
    os._exit(0)
