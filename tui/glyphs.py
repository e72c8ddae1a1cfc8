"""The few signs beyond letters, each with its ASCII form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    ascii: bool
    rule: str
    divider: str
    cursor: str
    full: str
    empty: str
    levels: str
    micro: str
    plus_minus: str


UNICODE = Glyphs(
    False, "\N{BOX DRAWINGS LIGHT HORIZONTAL}", "\N{BOX DRAWINGS LIGHT VERTICAL}", ">",
    "\N{FULL BLOCK}", "\N{LIGHT SHADE}", " ▁▂▃▄▅▆▇█", "µ", "±",
)  # fmt: skip
ASCII = Glyphs(True, "-", "|", ">", "#", ".", " .:-=+*#@", "u", "+-")


def glyphs_of(ascii_only: bool) -> Glyphs:
    return ASCII if ascii_only else UNICODE
