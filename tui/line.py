"""Lines of the screen as values: spans of text, each with a role that the theme gives a style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len

from tui.plain import fit


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text, harmless already (`plain`); `role` is one of tui.paint's."""

    text: str
    role: str = ""


Line: TypeAlias = tuple[Span, ...]
Lines: TypeAlias = tuple[Line, ...]
BLANK: Line = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a row; of those that do not fit, the one with the highest rank goes first."""

    line: Line
    rank: int = 0


def line_of(*pieces: str | Span | tuple[str, str]) -> Line:
    """A line from texts, (text, role) pairs and spans; empty texts are left out."""
    spans = (piece if isinstance(piece, Span) else _span(piece) for piece in pieces)
    return tuple(span for span in spans if span.text)


def _span(piece: str | tuple[str, str]) -> Span:
    return Span(piece) if isinstance(piece, str) else Span(*piece)


def width_of(line: Line) -> int:
    return sum(cell_len(span.text) for span in line)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line)


def cut(line: Line, width: int, ascii_glyphs: bool = False) -> Line:
    """The line in at most `width` cells."""
    if width_of(line) <= width:
        return line
    kept: list[Span] = []
    for span in line:
        room = width - width_of(tuple(kept))
        kept.append(Span(fit(span.text, room, ascii_glyphs), span.role))
        if cell_len(span.text) > room:
            break
    return tuple(span for span in kept if span.text)


def row(parts: Iterable[Part], width: int, between: str = "  ", ascii_glyphs: bool = False) -> Line:
    """The parts side by side, as many as fit; the last one that stays is cut when even it does not."""
    kept = [part for part in parts if part.line]
    while len(kept) > 1 and _width_of(kept, between) > width:
        kept.remove(max(reversed(kept), key=lambda part: part.rank))
    return cut(joined([part.line for part in kept], between), width, ascii_glyphs)


def _width_of(parts: Sequence[Part], between: str) -> int:
    return sum(width_of(part.line) for part in parts) + len(between) * (len(parts) - 1)


def joined(lines: Sequence[Line], between: str) -> Line:
    spans: list[Span] = []
    for number, line in enumerate(lines):
        if number and between:
            spans.append(Span(between, "dim"))
        spans.extend(line)
    return tuple(spans)


def spread(left: Line, right: Line, width: int, ascii_glyphs: bool = False) -> Line:
    """`left` at the left edge and `right` at the right one; without room for both, `right` goes."""
    room = width - width_of(left) - width_of(right)
    if room < 2:
        return cut(left, width, ascii_glyphs)
    return (*left, Span(" " * room), *right)
