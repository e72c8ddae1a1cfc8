"""Work in forked processes, waited for together with everything that they leave behind."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

PR_SET_CHILD_SUBREAPER = 36
DEADLINE_S = 120
REPO = Path(__file__).resolve().parents[2]
Said: TypeAlias = list[dict[str, Any]]


def adopt_orphans() -> None:
    """What a child of ours leaves behind becomes our child, and can be waited for."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def say(report: int, **said: object) -> None:
    """One line of what a child has to report."""
    os.write(report, json.dumps(said).encode() + b"\n")


def in_child(work: Callable[[int], None]) -> tuple[int, Said]:
    """Run `work` in a forked process with a descriptor to report to; its wait status and what it said.

    An exception is said as {"fault": trace}. Returns when the process and all that it left behind ended.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            work(write)
        except BaseException:
            say(write, fault=traceback.format_exc())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        said = [json.loads(line) for line in stream]
    status, left = wait_for_all(pid)
    return status, said + [{"fault": sentence} for sentence in left]


def finished(work: Callable[[int], None]) -> Said:
    """Run `work` in a forked process; what it said, once it ended as it should."""
    status, said = in_child(work)
    faults = [one["fault"] for one in said if "fault" in one]
    assert status == 0 and not faults, faults or f"wait status {status}"
    return said


def start_program(words: list[str], output: Path) -> int:
    """Start a program whose output goes to a file; its pid."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPO), "KERNELDECK_HOST_IDLE_S": "0"}
    return os.posix_spawn(words[0], words, environment, file_actions=actions)


def wait_for_all(pid: int) -> tuple[int, list[str]]:
    """The wait status of `pid`, when no child is left, adopted ones included.

    What has not ended by itself after DEADLINE_S is killed, and named in the sentences.
    """
    wanted = 0
    left: list[str] = []
    with _alarm():
        while True:
            try:
                ended, status = os.waitpid(-1, 0)
                wanted = status if ended == pid else wanted
            except ChildProcessError:
                return wanted, left
            except TimeoutError:
                left += [f"still runs after {DEADLINE_S} s: {_end(child)}" for child in _children()]


@contextmanager
def _alarm() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE_S, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _children() -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            parent = (process / "stat").read_bytes().rpartition(b")")[2].split()[1:2]
            if parent == [str(os.getpid()).encode()]:
                found.append(int(process.name))
    return found


def _end(pid: int) -> str:
    """Kill a process; its command line."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    os.kill(pid, signal.SIGKILL)
    return words.strip()
