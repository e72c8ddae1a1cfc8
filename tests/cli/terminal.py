"""The command on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

from tests.cli.deck import DEADLINE_S, environment


def on_a_terminal(
    *words: str,
    cwd: Path,
    columns: int = 80,
    env: Mapping[str, str | None] | None = None,
    typed: bytes = b"",
    after: bytes = b"",
) -> tuple[int, str]:
    """Exit code of the command, and all that it wrote to a terminal of that width.

    `typed` is typed once `after` has been written there, ahead of everything when that is empty.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    changes = {"TERM": "xterm-256color", "NO_COLOR": None, "CI": None, **(env or {})}
    command = subprocess.Popen(
        [sys.executable, "-m", "kerneldeck", *words], cwd=cwd, env=environment(changes),
        stdin=its, stdout=its, stderr=its, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # a typed Ctrl-C is a signal then
    )  # fmt: skip
    os.close(its)
    if not after:
        os.write(ours, typed)
    written = b""
    try:
        while chunk := _read(ours, command):
            due = after in written + chunk and after not in written
            written += chunk
            if due:
                os.write(ours, typed)
    except OSError:  # how a terminal says that its last user has gone
        pass
    os.close(ours)
    code = command.wait(timeout=DEADLINE_S)
    text = written.decode("utf-8", "replace")
    assert "Traceback" not in text, text
    return code, text


def _read(terminal: int, command: subprocess.Popen[bytes]) -> bytes:
    """What was written next; a command that writes nothing for too long is ended."""
    ready, _, _ = select.select([terminal], [], [], DEADLINE_S)
    if not ready:
        command.kill()
        raise AssertionError("the command neither writes nor ends")
    return os.read(terminal, 65536)
