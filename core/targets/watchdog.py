"""The process that watches one trial from outside: its output, its deadline, and that nothing of it stays.

Imported by `supervisor.py`, which stands beside it and forks one watchdog a trial. Standard library
only and Python 3.8's syntax, like that file.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any, NoReturn

    from core.targets.capped_file import CappedFile, drain, pump
    from core.targets.forked import Parent

    Request = dict[str, Any]
    Reply = dict[str, Any]
else:
    from capped_file import CappedFile, drain, pump

LINGER_S = 0.2  # helpers of a trial that has ended may need a moment to notice
REAP_DEADLINE_S = 10.0
LOOK_AGAIN_S = 0.05
LONGEST_WAIT_S = 3600.0
MOST_SURVIVORS = 20
_MOST_CPU_S = 1 << 31
_SURELY = 0.5  # the limit and what is told afterwards are measured by different clocks
TRIAL_OOM_SCORE = b"500"
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"


class Failed(Exception):
    """A trial that could not be started or watched to its end; `stage` says where."""

    def __init__(self, stage: str, reason: str | None) -> None:
        super().__init__(reason)
        self.stage = stage


class Watchdog:
    """Supervises one trial from outside its process group until nothing of it is left.

    With a `parent`, whose child the watchdog itself is, the trial is forked with what that has imported.
    """

    def __init__(self, request: Request, starter: int, parent: Parent | None = None) -> None:
        self.request = request
        self.starter = starter
        self.parent = parent
        self.deadline: float = time.monotonic() + request["wall_s"]
        self.kill_from: float | None = None  # when asking to end turns into killing
        self.ended_by = "itself"
        self.cancel_asked = False
        self.pid = 0
        self.status: int | None = None
        self.outputs: list[CappedFile] = []  # stdout, stderr
        self.streams: dict[int, CappedFile] = {}  # descriptors still open
        self.asked: set[int] = set()  # processes that were asked to end
        self.orphans: set[int] = set()  # groups of processes that have ended
        self.wake = wake_on_signals()
        signal.signal(signal.SIGTERM, self._note_cancel)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _note_cancel(self, *_: object) -> None:
        """Only a note: the wake-up pipe makes the loop act on it."""
        self.cancel_asked = True

    def run(self) -> Reply:
        """The reply to the request, once nothing of the trial is left; Failed when there is none to give."""
        oom_before = oom_kills()
        self._open_outputs()
        began = time.monotonic()
        self._start()
        while self.status is None and not self._given_up():
            self._wait_for_news(self._next_deadline())
            self._reap()
            if self.status is None:
                self._enforce()
        duration_s = time.monotonic() - began
        left_behind, survivors = self._end_descendants()
        self._close_outputs()
        if os.getppid() != self.starter:
            raise Failed("lost", "the supervisor process was ended")
        status = self.status
        return {
            "id": self.request["id"],
            "exit_code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            "ended_by": "cpu" if self._used_up() else self.ended_by,
            "duration_s": duration_s,
            "stdout_left_out": self.outputs[0].left_out,
            "stdout_lost": self.outputs[0].lost,
            "left_behind": left_behind,
            "survivors": survivors[:MOST_SURVIVORS],
            "oom_kills": oom_kills() - oom_before,
        }

    def _used_up(self) -> bool:
        """Whether the limit on CPU time ended it: by its own signal, which a shell tells as an exit code.

        Who ignores that one is killed a second later.
        """
        cpu_s, status = self.request.get("cpu_s"), self.status
        if not cpu_s or status is None or self.ended_by != "itself":
            return False
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return True
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status) - 128
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        enough = used.ru_utime + used.ru_stime >= _SURELY * cpu_s
        return enough and ended in (signal.SIGXCPU, signal.SIGKILL)

    def _open_outputs(self) -> None:
        try:
            for name in ("stdout", "stderr"):
                self.outputs.append(CappedFile(self.request[name]))
        except OSError as error:
            raise Failed("scratch", f"its output cannot be kept: {error.strerror}") from None

    def _close_outputs(self) -> None:
        for descriptor, capped in self.streams.items():
            drain(descriptor, capped)
        for capped in self.outputs:
            capped.close()

    def _start(self) -> None:
        """Fork the trial; Failed with the reason when its command cannot be executed."""
        try:
            out, err = os.pipe(), os.pipe()
            failure_read, failure_write = os.pipe()  # closed by a successful exec
            watchdog = os.getpid()
            self.pid = os.fork()
        except OSError as error:
            raise Failed("spawn", error.strerror) from None
        if self.pid == 0:
            self._become_trial(watchdog, (out[1], err[1]), failure_write)
        for end in (out[1], err[1], failure_write):
            os.close(end)
        stage, _, reason = os.read(failure_read, 4096).decode("utf-8", "replace").partition(" ")
        os.close(failure_read)
        if stage:
            os.waitpid(self.pid, 0)
            raise Failed(stage, reason)
        self.streams = {out[0]: self.outputs[0], err[0]: self.outputs[1]}
        for read in self.streams:
            os.set_blocking(read, False)

    def _become_trial(self, watchdog: int, outputs: tuple[int, int], failure: int) -> NoReturn:
        stage = "spawn"
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != watchdog:
                os._exit(127)
            reset_signals()
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            limit_cpu(self.request.get("cpu_s"))
            offer_to_oom_killer()
            null = os.open(os.devnull, os.O_RDONLY)
            for target, source in enumerate((null, *outputs)):
                os.dup2(source, target)
            stage = "scratch"
            os.chdir(self.request["cwd"])
            stage = "spawn"
            if self.parent is not None:
                self.parent.become(self.request["argv"], self.request["env"])
            os.execvpe(self.request["argv"][0], self.request["argv"], self.request["env"])
        except BaseException as error:
            reason = getattr(error, "strerror", None) or str(error)
            os.write(failure, f"{stage} {reason}".encode("utf-8", "replace")[:4000])
        os._exit(127)

    def _given_up(self) -> bool:
        """A process in the hands of a hanging driver cannot be killed: it is reported, not waited for."""
        return self.kill_from is not None and time.monotonic() >= self.kill_from + REAP_DEADLINE_S

    def _next_deadline(self) -> float:
        if self.kill_from is None:
            return self.deadline
        return time.monotonic() + LOOK_AGAIN_S

    def _wait_for_news(self, until: float) -> None:
        """Until output, an ended process, a signal or the deadline; output goes to its file."""
        wait_s = min(max(0.0, until - time.monotonic()), LONGEST_WAIT_S)
        ready, _, _ = select.select([self.wake, *self.streams], [], [], wait_s)
        for descriptor in ready:
            if descriptor == self.wake:
                clear(self.wake)
            elif not pump(descriptor, self.streams[descriptor]):
                del self.streams[descriptor]
                os.close(descriptor)

    def _reap(self) -> bool:
        """Collect ended processes, adopted ones too; whether any is left."""
        while True:
            try:
                self.orphans.add(group_of_ended())
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = status

    def _enforce(self) -> None:
        """Ask to end on cancel or at the deadline; after the grace period kill."""
        now = time.monotonic()
        if self.kill_from is None and (self.cancel_asked or now >= self.deadline):
            self.ended_by = "cancel" if self.cancel_asked else "timeout"
            self.kill_from = now + self.request["grace_s"]
        if self.kill_from is not None and now >= self.kill_from:
            below = descendants(os.getpid())
            kill_groups((self.pid, *below.values()))
            signal_each(below, signal.SIGKILL)
        elif self.kill_from is not None:
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        """Each process of the trial once, those too that were just being forked the last time."""
        below = descendants(os.getpid()) if LINUX else {self.pid: self.pid}
        signal_each(below.keys() - self.asked, signal.SIGTERM)
        self.asked.update(below)

    def _end_descendants(self) -> tuple[int, list[int]]:
        """Kill what the trial left behind; how many there were, and those that could not be ended."""
        until = time.monotonic() + LINGER_S if self.kill_from is None else self.kill_from
        while self._reap() and time.monotonic() < until:
            if self.kill_from is not None:
                self._ask_to_end()
            self._wait_for_news(min(until, time.monotonic() + LOOK_AGAIN_S))
        if not LINUX:
            kill_groups([self.pid])
        self.orphans.clear()
        first: dict[int, int] | None = None
        left: dict[int, int] = {}
        deadline = (self.kill_from or time.monotonic()) + REAP_DEADLINE_S
        # Whoever is orphaned becomes our child: without children there is no process to look for. With
        # some, none may be seen all the same: one that forks and exits over and over is always elsewhere.
        while self._reap():
            left = descendants(os.getpid())
            first = left if first is None else first
            if time.monotonic() >= deadline:
                break
            kill_groups((*left.values(), *self.orphans))
            signal_each(left, signal.SIGKILL)
            self._wait_for_news(time.monotonic() + 0.01)
        else:
            left = {}
        return 0 if first is None else max(1, len(first)), list(left)


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere orphans that leave the process group are not seen."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def wake_on_signals() -> int:
    """A descriptor that becomes readable when a signal has arrived that a Python handler takes."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return read


def clear(wake: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(wake, 4096)


def reset_signals() -> None:
    """As a program started from a shell finds them: nothing ignored, nothing blocked."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def limit_cpu(cpu_s: float | None) -> None:
    """For each process from here on by itself; whole seconds."""
    if cpu_s:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        wanted = min(math.ceil(cpu_s), _MOST_CPU_S)
        most = wanted + 1 if hard == resource.RLIM_INFINITY else min(wanted + 1, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (min(wanted, most), most))


def offer_to_oom_killer() -> None:
    """When memory runs out the kernel is to end the trial, not those who keep its record."""
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, TRIAL_OOM_SCORE)
        os.close(score)


def descendants(root: int, spared: Collection[int] = ()) -> dict[int, int]:
    """Living processes below `root` and the group of each, without those `spared` and below.

    By /proc; zombies do not count.
    """
    children: dict[int, list[tuple[int, int]]] = {}
    for pid in _process_ids():
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if len(fields) > 2 and fields[0] not in (b"Z", b"X") and pid not in spared:
            children.setdefault(int(fields[1]), []).append((pid, int(fields[2])))
    found: dict[int, int] = {}
    frontier = [root]
    while frontier:
        below = [child for parent in frontier for child in children.get(parent, ())]
        found.update(below)
        frontier = [pid for pid, _ in below]
    return found


def _process_ids() -> list[int]:
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _read(path: str) -> bytes:
    """A small file of the kernel's; empty when it is not there (any more)."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def group_of_ended() -> int:
    """The group of a child that has ended and is still to be collected; 0 for none."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) if LINUX else None
    return os.getpgid(ended.si_pid) if ended else 0


def kill_groups(groups: Iterable[int]) -> None:
    """All of a group at once, so that none gets away by forking; never our own group."""
    for group in set(groups) - {0, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def oom_kills() -> int:
    """Processes that the kernel ended for memory so far: in our control group, else on this machine."""
    groups = [line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith(b"0::")]
    events = _read(f"/sys/fs/cgroup{os.fsdecode(groups[0])}/memory.events") if groups else b""
    counts = [line.split()[1] for line in (events or _read("/proc/vmstat")).splitlines()
              if line.startswith(b"oom_kill ")]  # fmt: skip
    return int(counts[0]) if counts else 0
