"""Who holds a workspace, and whether that process still runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True, slots=True)
class Holder:
    """One process on one machine since one boot; `since_s` in Unix seconds.

    `started` is the process's start in the kernel's count, so that another process that later gets the
    same number is not taken for it. Fields are "" where the system does not tell.
    """

    pid: int
    command: str
    since_s: float
    user: str
    host: str
    machine: str
    boot: str
    started: str
    socket: str = ""  # where it can be asked, when it is a host
    lock: str = ""  # which file it locked, where it locked one

    @classmethod
    def here(cls, command: str, clock: Callable[[], float] = time.time, socket: str = "") -> Holder:
        """This process."""
        return cls(
            os.getpid(), command, clock(), _user(), os.uname().nodename, _line(_MACHINE_ID),
            _line(_BOOT_ID), process_start(os.getpid()), socket,
        )  # fmt: skip

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Holder | None:
        """The holder that was written; None when nothing readable was."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            return None

    def same_machine(self, other: Holder) -> bool:
        return self.host == other.host and self.machine == other.machine

    def is_gone(self) -> bool:
        """Whether the process has surely ended; only to be asked on its own machine."""
        if self.boot != _line(_BOOT_ID):
            return True
        start = process_start(self.pid)
        if start or self.started:
            return start != self.started
        return not _runs(self.pid)

    def described(self, here: Holder, now_s: float) -> str:
        """`kerneldeck sweep` (pid 4711, since 14:02:11), with user and machine where they differ."""
        details = [f"pid {self.pid}"]
        if self.user != here.user:
            details.append(f"user {self.user}")
        if not self.same_machine(here):
            details.append(f"on {self.host}")
        return f"`{self.command}` ({', '.join(details)}, since {_clock_time(self.since_s, now_s)})"


def process_start(pid: int) -> str:
    """When a process started, in the kernel's ticks since boot; "" when it is gone or not told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    # The command's name stands in brackets and may hold anything; the start is the 22nd field (proc(5)).
    fields = stat.rpartition(b")")[2].split()
    # A zombie has ended, whatever its parent has yet to notice.
    return "" if fields[0] == b"Z" else fields[19].decode()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _clock_time(when_s: float, now_s: float) -> str:
    when, now = time.localtime(when_s), time.localtime(now_s)
    same_day = when[:3] == now[:3]
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", when)


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
