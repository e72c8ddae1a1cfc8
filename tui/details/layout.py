"""Shared shapes of the details: headings, pairs, foreign text in lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, Span, line_of
from tui.plain import padded, plain

MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class Sheet:
    """What lines are laid out for."""

    width: int
    height: int = 24
    glyphs: Glyphs = UNICODE

    @property
    def inner(self) -> int:
        return max(20, self.width - 2)


def heading(text: str, more: str = "") -> Line:
    return line_of((f" {text}", "title"), (f"  {more}" if more else "", "dim"))


def pairs(rows: Sequence[tuple[str, str, str]], sheet: Sheet) -> Iterator[Line]:
    """Names with their values and the values' roles; empty values are left out, long ones broken."""
    shown = [(name, plain(value), role) for name, value, role in rows if value]
    widest = min(20, max((len(name) for name, _, _ in shown), default=0))
    for name, value, role in shown:
        for number, part in enumerate(broken(value, sheet.inner - widest - 3)):
            yield line_of((f"  {padded('' if number else name, widest)} ", "dim"), (part, role))


def broken(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(10, width), break_on_hyphens=False) or [""]


def foreign(text: str, most: int = MOST_LINES, role: str = "", numbered: bool = False) -> Iterator[Line]:
    """The last `most` lines of a text, each as it is but for what would steer a terminal."""
    lines = text.splitlines()
    left_out = len(lines) - most
    if left_out > 0:
        yield line_of((f"  {left_out:,} lines before these", "dim"))
    for number, one in enumerate(lines[-most:], max(0, left_out) + 1):
        lead = (f"{number:>5} ", "dim") if numbered else ("  ", "")
        yield line_of(lead, Span(plain(one.expandtabs(4)), role))
