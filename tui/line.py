"""Lines of the screen as values: spans of text, each with a role that the theme gives a style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from rich.cells import cell_len, get_character_cell_size

from tui.plain import fit


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text, harmless already (`plain`); `role` is one of tui.paint's."""

    text: str
    role: str = ""


Line: TypeAlias = tuple[Span, ...]
Lines: TypeAlias = tuple[Line, ...]
Cells: TypeAlias = list[tuple[str, str]]
BLANK: Line = ()
_READABLE = 12
_CHEAPER_THAN_A_MOVE = 12  # cells: going elsewhere and setting the style again is as many bytes


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a row; of those that do not fit, the one with the highest rank goes first.

    One that `cuts` is shortened rather than left out while some of it can be read.
    """

    line: Line
    rank: int = 0
    cuts: bool = False


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
    while len(kept) > 1 and (beyond := _width_of(kept, between) - width) > 0:
        number = kept.index(max(reversed(kept), key=lambda part: part.rank))
        room = width_of(kept[number].line) - beyond
        if not kept[number].cuts or room < _READABLE:
            del kept[number]
        else:
            kept[number] = Part(cut(kept[number].line, room, ascii_glyphs), kept[number].rank)
    return cut(joined([part.line for part in kept], between), width, ascii_glyphs)


def _width_of(parts: Sequence[Part], between: str) -> int:
    return sum(width_of(part.line) for part in parts) + len(between) * (len(parts) - 1)


def changed_ranges(before: Line, after: Line) -> list[tuple[int, int]]:
    """From which cell on, and up to which, two lines look different; what differs nearby is one range."""
    old, new = _cells(before), _cells(after)
    if old == new:
        return []
    ranges: list[tuple[int, int]] = []
    for number, (was, now) in enumerate(zip_longest(old, new)):
        if was == now:
            continue
        if ranges and number - ranges[-1][1] < _CHEAPER_THAN_A_MOVE:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    # Where one wide character replaces another, their second cells are the same.
    return [(start, end + 1 if end < len(new) and not new[end][0] else end) for start, end in ranges]


def _cells(line: Line) -> Cells:
    """What stands in each cell, and in which role; the second cell of a wide character holds nothing."""
    cells: Cells = []
    for span in line:
        if span.text.isascii():
            cells += [(character, span.role) for character in span.text]
            continue
        for character in span.text:
            cells += [(character, span.role), ("", span.role)][: get_character_cell_size(character)]
    return cells


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


def wrapped(lines: Iterable[Line], width: int, indent: int = 2) -> Lines:
    """The lines with what is beyond `width` on lines of its own, moved in; broken at blanks if there are."""
    return tuple(piece for line in lines for piece in _wrapped(line, width, indent))


def _wrapped(line: Line, width: int, indent: int) -> Iterable[Line]:
    if width_of(line) <= width or width <= indent + 4:
        return (line,)
    # A label at the left stays alone in its column.
    hanging = len(line[0].text) if line[0].role == "dim" and len(line[0].text) < width // 2 else indent
    made: list[list[Span]] = [[]]
    used = 0
    for span in line:
        for word in _words(span.text):
            size = cell_len(word)
            if used and used + cell_len(word.rstrip()) > width:
                made.append([Span(" " * hanging)])
                used, word = hanging, word.lstrip()
                size = cell_len(word)
            room = width - used
            shown = word.rstrip() if size > room else word  # blanks at the edge are no text
            made[-1].append(Span(fit(shown, room), span.role))
            used += size
    return tuple(_merged(spans) for spans in made)


def _words(text: str) -> Iterable[str]:
    """Pieces that end with their blanks."""
    start = 0
    for number in range(1, len(text)):
        if text[number - 1] == " " and text[number] != " ":
            yield text[start:number]
            start = number
    yield text[start:]


def _merged(spans: Sequence[Span]) -> Line:
    merged: list[Span] = []
    for span in spans:
        if merged and merged[-1].role == span.role:
            merged[-1] = Span(merged[-1].text + span.text, span.role)
        else:
            merged.append(span)
    return tuple(merged)
