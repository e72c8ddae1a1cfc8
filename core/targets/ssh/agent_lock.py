"""One trial a GPU: a `flock` whose descriptor the trial inherits, so that it ends with the last process.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH103, PTH116, PTH118

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.targets.ssh.wire import Fault, Json
    from core.targets.watchdog import PR_SET_PDEATHSIG, prctl
else:
    from watchdog import PR_SET_PDEATHSIG, prctl
    from wire import Fault

_NAME = re.compile("[A-Za-z0-9_-]{1,80}")


def default_folder() -> str:
    """On a local disk: a lock on a network's file system may hold for one machine only, or not at all.

    KERNELDECK_LOCK_FOLDER names another, for containers that share a GPU and not their /dev/shm.
    """
    named = os.environ.get("KERNELDECK_LOCK_FOLDER")
    if named:
        return named
    base = next((path for path in ("/dev/shm", "/var/tmp") if os.access(path, os.W_OK | os.X_OK)), "/tmp")
    return f"{base}/kerneldeck-{os.getuid()}"


class Lock:
    """The lock of the device `name` in `folder`; whoever waits for it waits in the kernel."""

    def __init__(self, folder: str, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise Fault("lock", f"{ascii(name)[:80]} names no GPU")
        self.name = name
        self.path = os.path.join(folder, f"{name}.lock")
        self.descriptor = -1
        _check_folder(folder)

    def take(self, holder: Json, wait_s: float, wait: Callable[[int, float], None]) -> None:
        """Hold it and say for whom; Fault in stage lock, with the holder, when it is not to be had.

        `wait(descriptor, until)` returns when the descriptor is readable, time is up or nobody wants it.
        """
        until = time.monotonic() + wait_s
        while True:
            self.descriptor = self._opened()
            if not self._locked() and not self._queue(until, wait):
                raise self._refusal(wait_s)
            if self._still_there():
                break
            self.release()
        content = json.dumps(holder).encode()
        with suppress(OSError):  # a full disk: then nobody can say who holds it
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, content, 0)
        os.set_inheritable(self.descriptor, True)

    def release(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _opened(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise Fault("lock", f"the lock {self.path} cannot be opened: {error.strerror}") from None

    def _locked(self) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _queue(self, until: float, wait: Callable[[int, float], None]) -> bool:
        """A child of ours waits in the kernel; the lock belongs to the description that we share."""
        if time.monotonic() >= until:
            return False
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            _wait_in_kernel(self.descriptor)
        os.close(write)
        wait(read, until)
        os.set_blocking(read, False)
        with suppress(BlockingIOError):
            os.read(read, 1)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)
        os.close(read)
        return self._locked()

    def _still_there(self) -> bool:
        """Whether the file that we locked is the one that others find under its name."""
        try:
            found, ours = os.stat(self.path), os.fstat(self.descriptor)
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)

    def _refusal(self, wait_s: float) -> Fault:
        holder = _holder(self.descriptor)
        self.release()
        waited = f" (waited {wait_s:g} s)" if wait_s else ""
        return Fault(
            "lock", f"{self.name} is held by {_told(holder)}{waited}", "wait for it, or use another GPU"
        )


def _wait_in_kernel(descriptor: int) -> None:
    status = 1
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        status = 0
    finally:
        os._exit(status)


def _check_folder(folder: str) -> None:
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        status = os.lstat(folder)
    except OSError as error:
        raise Fault("lock", f"the folder of the locks, {folder}, cannot be used: {error.strerror}") from None
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    if not ours:
        raise Fault("lock", f"the folder of the locks, {folder}, is not ours alone", "remove it there")


def _holder(descriptor: int) -> Json | None:
    try:
        holder = json.loads(os.pread(descriptor, 1 << 14, 0))
    except (OSError, ValueError, RecursionError):
        return None
    return holder if isinstance(holder, dict) else None


def _told(holder: Json | None) -> str:
    if holder is None:
        return "somebody who does not say so"
    since_s = holder.get("since_s")
    begun = age = ""
    if isinstance(since_s, (int, float)):
        begun = time.strftime(" since %Y-%m-%d %H:%M:%S UTC", time.gmtime(since_s))
        age = f", {max(0.0, time.time() - since_s):.0f} s"
    words = " on ".join(str(holder.get(key, "?"))[:80] for key in ("name", "host"))
    return f"{words} (process {holder.get('pid', '?')} there){begun}{age}"
