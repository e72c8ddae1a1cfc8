"""What the terminal is, as far as it can be told without asking it anything."""

from __future__ import annotations

import locale
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TextIO

_SMALLEST = (40, 12)
_COMFORTABLE = (80, 24)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what it is, whether that is fine, and what to do about it."""

    topic: str
    ok: bool
    said: str
    remedy: str = ""


def terminal_findings(environ: Mapping[str, str], stdout: TextIO) -> Iterator[Finding]:
    """Terminal, colours, size, characters."""
    if not stdout.isatty():
        yield Finding("terminal", True, "standard output is none: the app needs one, the commands do not")
    else:
        yield _size(stdout)
    yield _term(environ)
    yield _colours(environ)
    yield _characters()


def _size(stdout: TextIO) -> Finding:
    columns, lines = os.get_terminal_size(stdout.fileno())
    said = f"{columns}x{lines}"
    if columns < _SMALLEST[0] or lines < _SMALLEST[1]:
        return Finding("size", False, said, f"make it larger: {_SMALLEST[0]}x{_SMALLEST[1]} is the least")
    if columns < _COMFORTABLE[0] or lines < _COMFORTABLE[1]:
        return Finding("size", True, said, "one pane at a time is shown; all four from 80x24 on")
    return Finding("size", True, said)


def _term(environ: Mapping[str, str]) -> Finding:
    term = environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        remedy = "the app cannot draw here; `kerneldeck watch --plain` can. Else set TERM=xterm-256color"
        return Finding("TERM", False, term or "not set", remedy)
    if environ.get("TMUX") and not term.startswith(("tmux", "screen")):
        remedy = "inside tmux it should be tmux-256color; a start-up file of your shell may set it"
        return Finding("TERM", False, f"{term}, inside tmux", remedy)
    return Finding("TERM", True, term)


def colour_depth(environ: Mapping[str, str]) -> str:
    """How many colours may be used: none, 16, 256 or 16 million."""
    term = environ.get("TERM", "")
    if environ.get("NO_COLOR"):
        return "none"
    if environ.get("COLORTERM", "") in ("truecolor", "24bit") or term.endswith("-direct"):
        return "16 million"
    if "256" in term:
        return "256"
    return "none" if term in ("", "dumb", "unknown") else "16"


def _colours(environ: Mapping[str, str]) -> Finding:
    depth, said = colour_depth(environ), environ.get("COLORTERM", "")
    if environ.get("NO_COLOR"):
        return Finding("colours", True, "none, as NO_COLOR asks")
    told = f"{depth} (COLORTERM {said or 'not set'})"
    if depth == "16 million" and environ.get("TMUX"):
        remedy = "they look wrong? tmux passes them on only with: set -as terminal-features ',*:RGB'"
        return Finding("colours", True, told, remedy)
    if depth == "16":
        return Finding("colours", True, told, "a TERM with -256color gives more")
    return Finding("colours", depth != "none", told, "" if depth != "none" else "set TERM, see above")


def _characters() -> Finding:
    encoding = locale.getpreferredencoding(False)
    if encoding.upper().replace("-", "") == "UTF8":
        return Finding("characters", True, encoding)
    return Finding("characters", False, encoding, "set a UTF-8 locale: export LC_ALL=C.UTF-8")
