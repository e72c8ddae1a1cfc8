"""Faults of ours: a sentence for people; the trace is kept in a file, never shown on a screen."""

from __future__ import annotations

import tempfile
import traceback


def internal_sentence(error: BaseException, doing: str = "") -> str:
    """What is told of a programming error, met while `doing` something."""
    return f"internal fault{doing and f' in {doing}'}: {type(error).__name__}: {error}"


def keep_trace(error: BaseException) -> str:
    """What to do about it: report the file that the trace is in, where there is room for one."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="kerneldeck-fault-", suffix=".txt", delete=False, errors="backslashreplace"
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return "please report it"
    return f"please report it with {file.name}"
