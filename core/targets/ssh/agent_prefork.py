"""Parents on the remote machine: processes that have imported what trials declare, and fork their keepers.

The agent starts one an environment, when a trial first asks for it, and goes on serving; such trials wait
for its word. `{"ready": true}`, and it is handed each trial as one message with three descriptors: the
trial's door, its life lock, and the request. `{"declined": "why"}`, or its end, and the agent starts them
from nothing. A parent ends with the agent; keepers outlive both.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH102, PTH109, PTH118

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from core.targets.forked import Parent
    from core.targets.imports import imported
    from core.targets.prefork import declined_note, interpreter, parent_environment, took_too_long
    from core.targets.ssh.agent_trials import Begun
    from core.targets.ssh.wire import Json
    from core.targets.wards import Wards
    from core.targets.watchdog import clear, reset_signals
else:
    from agent_trials import Begun
    from forked import Parent
    from imports import imported
    from prefork import declined_note, interpreter, parent_environment, took_too_long
    from wards import Wards
    from watchdog import clear, reset_signals

ANSWERS_AFTER_S = 5.0  # the parent bounds its imports itself
MESSAGE_BYTES = 1 << 16
_DESCRIPTORS = 3
_BOOT = (
    "import sys,zlib\nwith open(int(sys.argv[1]),'rb') as f:b=f.read()\n"
    "exec(zlib.decompress(b),dict(PARENT=sys.argv[2:]))"
)


class Imported:
    """A parent as the agent knows it, and the trials that wait until it is ready."""

    def __init__(self, key: object, modules: list[str], within_s: float) -> None:
        self.key = key
        self.named = ", ".join(modules)
        self.within_s = within_s
        self.began = time.monotonic()
        self.ready = False
        self.waiting: list[Begun] = []
        self.channel: socket.socket
        self.pid = 0

    @property
    def until(self) -> float:
        return self.began + self.within_s + ANSWERS_AFTER_S

    @property
    def stopped(self) -> bool:
        """Whether a trial has stopped it: it would not fork, and not see the end of its channel."""
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        return False

    def hand(self, begun: Begun) -> bool:
        """Whether the parent forks the trial's keeper from now on."""
        if self.stopped:
            return False
        try:
            with begun.written() as request:
                message = json.dumps({"home": begun.home, "umask": begun.umask}).encode()
                given = array.array("i", [begun.door.fileno(), begun.alive, request])
                self.channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
        except OSError:
            return False
        begun.leave()
        return True

    def end(self) -> None:
        """Its group, too: imports may have started processes."""
        self.channel.close()
        if not self.ready or self.stopped:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


class Parents:
    """The agent's parents. `bundle` opens the agent's own program for them; OSError when it is not kept."""

    def __init__(self, bundle: Callable[[], int]) -> None:
        self.bundle = bundle
        self.known: dict[object, Imported] = {}
        self.declined: set[object] = set()

    def descriptors(self) -> list[int]:
        return [each.channel.fileno() for each in self.known.values()]

    def limits(self) -> list[float]:
        return [each.until for each in self.known.values() if not each.ready]

    def start(self, begun: Begun) -> None:
        """Have the trial's keeper forked: by a parent where one is wanted and can be had, else by us."""
        if not self._taken(begun):
            begun.fork()

    def _taken(self, begun: Begun) -> bool:
        wanted, env = begun.request.get("prefork"), begun.request["env"]
        python = "" if begun.request["wrapper"] else interpreter(begun.request["argv"], env)
        if not wanted or not python:
            return False
        env = parent_environment(env)
        key = (python, tuple(wanted["modules"]), frozenset(env.items()))
        if key in self.declined:
            return False
        parent = self.known.get(key) or self._started(key, python, wanted, env, begun)
        if parent is None or (parent.ready and not parent.hand(begun)):
            self._drop(parent)
            return False
        if not parent.ready:
            parent.waiting.append(begun)
        return True

    def _started(
        self, key: object, python: str, wanted: Json, env: dict[str, str], begun: Begun
    ) -> Imported | None:
        parent = Imported(key, wanted["modules"], max(0.0, float(wanted["within_s"])))
        words = [str(parent.within_s), os.getcwd(), *wanted["modules"]]
        try:
            bundle = self.bundle()
            try:
                parent.channel, parent.pid = _spawn(python, words, env, bundle, begun)
            finally:
                os.close(bundle)
        except OSError as error:
            self.declined.add(key)
            begun.request["note"] = declined_note(f"no process could be started ({error.strerror})")
            return None
        self.known[key] = parent
        return parent

    def _drop(self, parent: Imported | None) -> None:
        if parent is not None:
            self.known.pop(parent.key, None)
            parent.end()

    def hear(self, ready: list[int]) -> None:
        """Parents that are ready take who waits; what others say, or their end, is a reason not to wait."""
        for parent in list(self.known.values()):
            if parent.channel.fileno() in ready:
                self._hear(parent)
            elif not parent.ready and time.monotonic() >= parent.until:
                self._decline(parent, took_too_long(parent.named, parent.within_s))

    def _hear(self, parent: Imported) -> None:
        try:
            word = json.loads(parent.channel.recv(MESSAGE_BYTES) or b"{}")
        except BlockingIOError:
            return
        except (OSError, ValueError, RecursionError):
            word = {}
        said: Json = word if isinstance(word, dict) else {}
        if said.get("ready"):
            parent.ready = True
            waiting, parent.waiting = parent.waiting, []
            for begun in waiting:
                if not parent.hand(begun):
                    begun.fork()
        elif parent.ready:
            self._drop(parent)
        else:
            self._decline(parent, str(said.get("declined") or _why_ended(parent)))

    def _decline(self, parent: Imported, reason: str) -> None:
        """The first of those that wait says why."""
        self.declined.add(parent.key)
        self._drop(parent)
        for begun in parent.waiting[:1]:
            begun.request["note"] = declined_note(reason)
        for begun in parent.waiting:
            begun.fork()

    def release(self, trial_home: str) -> None:
        """A trial that is cancelled waits for no parent."""
        for parent in self.known.values():
            for begun in [each for each in parent.waiting if each.home == trial_home]:
                parent.waiting.remove(begun)
                begun.fork()

    def leave(self) -> None:
        """Nobody will be there to hear of a parent's word: who waits goes on from nothing."""
        for parent in list(self.known.values()):
            self._drop(parent)
            for begun in parent.waiting:
                begun.fork()


def _why_ended(parent: Imported) -> str:
    if time.monotonic() >= parent.began + parent.within_s:
        return took_too_long(parent.named, parent.within_s)
    return f"importing {parent.named} ended the interpreter"


def _spawn(
    python: str, words: list[str], env: dict[str, str], bundle: int, begun: Begun
) -> tuple[socket.socket, int]:
    """Our end of the channel to a new parent, and its process id."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    read, write = os.pipe()  # what its standard streams find, as a trial's do
    try:
        pid = os.fork()
        if pid == 0:
            _become_parent(python, words, env, (bundle, theirs.fileno()), write, begun)
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(read)
        os.close(write)
    ours.setblocking(False)
    return ours, pid


def _become_parent(
    python: str, words: list[str], env: dict[str, str], given: tuple[int, int], output: int, begun: Begun
) -> NoReturn:
    try:
        os.setsid()
        reset_signals()
        os.umask(begun.umask)
        folder = os.path.join(begun.home, "imports")  # with the trial's home it is cleared up
        os.mkdir(folder)
        os.chdir(folder)
        for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(source, target)
        for descriptor in given:
            os.set_inheritable(descriptor, True)
        os.execve(python, [python, "-c", _BOOT, *map(str, given), *words], env)
    finally:
        os._exit(127)


def parent_main(names: list[str], words: list[str]) -> NoReturn:
    """In the new process: import, say what came of it, and fork keepers until the agent has gone."""
    channel = socket.socket(fileno=int(words[0]))
    channel.set_inheritable(False)
    within_s, root, modules = float(words[1]), words[2], words[3:]
    serve = sys.modules["agent_prefork"].serve
    said = imported(modules, within_s, names, [""])
    try:
        os.chdir(root)
    except OSError as error:
        said = {"declined": f"the scratch folder cannot be entered ({error.strerror})"}
    with suppress(OSError):
        parent = Parent([channel.fileno()])
        channel.send(json.dumps(said).encode())
        if "ready" in said:
            serve(channel, parent)
    os._exit(0)


def serve(channel: socket.socket, parent: Parent) -> None:
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    keepers = Wards()
    while True:
        ready, _, _ = select.select([channel.fileno(), keepers.wake], [], [])
        clear(keepers.wake)
        keepers.lost()
        if channel.fileno() in ready and not _take(channel, parent, keepers):
            return


def _take(channel: socket.socket, parent: Parent, keepers: Wards) -> bool:
    """Fork the keeper of the trial that is handed to us; False when nobody hands us any more."""
    message, ancillary, _, _ = channel.recvmsg(MESSAGE_BYTES, socket.CMSG_SPACE(_DESCRIPTORS * 4))
    given = array.array("i")
    for _, _, content in ancillary:
        given.frombytes(content)
    for descriptor in given:
        os.set_inheritable(descriptor, False)
    if message and len(given) == _DESCRIPTORS:
        told = json.loads(message)
        door = socket.socket(fileno=given[0])
        begun = Begun.taken_over(told["home"], told["umask"], door, given[1], given[2])
        pid = begun.fork(parent)
        if pid:
            keepers.names[pid] = told["home"]
    else:
        for descriptor in given:
            os.close(descriptor)
    return bool(message)
