"""Foreign text (kernel output, file names, errors) as one harmless line, and widths in terminal cells."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len, get_character_cell_size

_AS_SPACE = frozenset("\t\n\r\v\f\x85\u2028\u2029")
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})  # controls, direction marks, halves of surrogates
_SELECTORS = range(0xFE00, 0xFE10)  # they change a width that terminals disagree about
_STAND_IN = "\N{MIDDLE DOT}"
_ELLIPSIS, _ELLIPSIS_ASCII = "\N{HORIZONTAL ELLIPSIS}", "~"


@lru_cache(maxsize=4096)
def _safe(character: str) -> str:
    if character in _AS_SPACE or unicodedata.category(character) == "Zs":
        return " "
    if unicodedata.category(character) in _UNSAFE or ord(character) in _SELECTORS:
        return _STAND_IN
    return character


def plain(text: object, longest: int = 2000) -> str:
    """`text` on one line, without anything that a terminal or a markup would act on.

    Line ends and tabs become spaces, other controls a middle dot; what is beyond `longest` is cut.
    """
    cut = str(text)[:longest]
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(map(_safe, cut))


def ascii_only(text: str) -> str:
    """`text` in ASCII: what has no ASCII form becomes a question mark, one for each cell."""
    if text.isascii():
        return text
    spoken = text.translate(_SPOKEN)
    return "".join(one if one.isascii() else "?" * get_character_cell_size(one) for one in spoken)


_SPOKEN = str.maketrans({
    "\N{MICRO SIGN}": "u", "\N{GREEK SMALL LETTER MU}": "u", _STAND_IN: ".", _ELLIPSIS: "~",
    "\N{EN DASH}": "-", "\N{EM DASH}": "-", "\N{MULTIPLICATION SIGN}": "x", "\N{PLUS-MINUS SIGN}": "+-",
    "\N{DEGREE SIGN}": "",
})  # fmt: skip


def fit(text: str, width: int, ascii_glyphs: bool = False) -> str:
    """`text` in at most `width` cells; what was cut off is told by an ellipsis."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    mark = _ELLIPSIS_ASCII if ascii_glyphs else _ELLIPSIS
    return _cut(text, width - 1) + mark


def _cut(text: str, width: int) -> str:
    kept, used = 0, 0
    for character in text:
        used += get_character_cell_size(character)
        if used > width:
            break
        kept += 1
    return text[:kept]


def padded(text: str, width: int, right: bool = False, ascii_glyphs: bool = False) -> str:
    """`text` in exactly `width` cells."""
    shown = fit(text, width, ascii_glyphs)
    blanks = " " * (width - cell_len(shown))
    return blanks + shown if right else shown + blanks
