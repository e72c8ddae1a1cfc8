"""The app in a process of its own, and one that puts the terminal right however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import termios
from collections.abc import Callable

from core.errors import KerneldeckError
from sessions.fault_file import keep_trace

# What the app may have switched on: mouse, focus, paste, newer keys, hidden cursor.
_MODES_OFF = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2048l"
    "\x1b[<u\x1b[?25h\x1b[?7h\x1b[0m"
)
# Also puts the cursor where it was before: what was printed since would be written over.
_SCREEN_OFF = "\x1b[?1049l"
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
HOW_TO_RETURN = "what runs goes on; to see it again: kerneldeck tui"


def guarded(run: Callable[[], int]) -> int:
    """`run` in a child process; its exit code, or 1 after the terminal was put right where it was killed."""
    before = _terminal()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _end_with_parent()
        os._exit(_outcome(run))
    return _watch(child, before)


def _outcome(run: Callable[[], int]) -> int:
    """The child: every fault is told here, since only its number gets back."""
    try:
        code = run()
    except KerneldeckError as fault:
        _say(f"kerneldeck: {fault.sentence}" + (f"\n  {fault.hint}" if fault.hint else ""))
        code = fault.exit_code
    except BaseException as error:
        told = f"{type(error).__name__}: {error}; {keep_trace(error)}"
        _say(f"kerneldeck: the app failed: {told}\n  {HOW_TO_RETURN}")
        code = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _say(words: str) -> None:
    """To whoever still has the terminal open."""
    with contextlib.suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def _end_with_parent() -> None:
    """A child whose parent is killed leaves too, by the signal that a closed terminal sends."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGHUP)


def _watch(child: int, before: list[object] | None) -> int:
    def pass_on(number: int, _frame: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    kept = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    kept[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        if code not in (0,):
            _put_right(before, _MODES_OFF)
        return code
    _put_right(before, _SCREEN_OFF + _MODES_OFF)
    name = signal.Signals(os.WTERMSIG(status)).name
    _say(f"kerneldeck: the app was ended by {name}\n  {HOW_TO_RETURN}")
    return 1


def _terminal() -> list[object] | None:
    with contextlib.suppress(termios.error, OSError, ValueError):
        return termios.tcgetattr(sys.stdin.fileno())
    return None


def _put_right(before: list[object] | None, signs: str) -> None:
    """The modes and the screen as they were; a terminal that is gone needs nothing."""
    with contextlib.suppress(termios.error, OSError, ValueError):
        if before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)  # type: ignore[arg-type]
        os.write(sys.stderr.fileno(), signs.encode())
