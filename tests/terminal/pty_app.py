"""The app on a pseudo-terminal of ours, with every byte that it writes counted."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence

from tests.cli.deck import DEADLINE_S


class PtyApp:
    """A child process whose terminal is ours; use it with `with`."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], cwd: str, size: tuple[int, int] = (80, 24)
    ) -> None:
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], list(words), dict(environment))
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.written = bytearray()
        self.code: int | None = None

    def read_until(self, seen: Callable[[bytes], bool], within_s: float = DEADLINE_S) -> bytes:
        """Everything written so far once `seen` is true of it; AssertionError when it never is."""
        deadline_s = time.monotonic() + within_s
        while not seen(bytes(self.written)):
            if not self._read(deadline_s - time.monotonic()):
                raise AssertionError(f"not seen within {within_s:g} s: {bytes(self.written)[-400:]!r}")
        return bytes(self.written)

    def read_for(self, seconds: float) -> int:
        """How many bytes come in so many seconds."""
        before, deadline_s = len(self.written), time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            self._read(left_s)
        return len(self.written) - before

    def _read(self, within_s: float) -> bool:
        ready, _, _ = select.select([self.handle], [], [], max(0.0, within_s))
        if not ready:
            return False
        try:
            came = os.read(self.handle, 65536)
        except OSError:
            return False
        self.written += came
        return bool(came)

    def press(self, keys: str) -> None:
        os.write(self.handle, keys.encode())

    def wait(self, within_s: float = DEADLINE_S) -> int:
        """The exit code, what the app still writes being read meanwhile."""
        deadline_s = time.monotonic() + within_s
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline_s:
                raise AssertionError("the app did not end")
            else:
                self._read(0.05)
        self._read(0.0)
        return self.code

    def __enter__(self) -> PtyApp:
        return self

    def __exit__(self, *error: object) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                self.wait(5.0)
            except AssertionError:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
        os.close(self.handle)
