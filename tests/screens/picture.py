"""A terminal's screen as a small SVG, its text as text: what `tmux capture-pane -e` gives, drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.color_triplet import ColorTriplet
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

_CELL, _LINE, _FONT, _EDGE = 8.4, 18, 14, 10
_INK, _PAPER = (215, 218, 224), (20, 23, 28)
_DIM = 0.45  # how far dim text goes towards the background
_THEME = TerminalTheme(
    _PAPER, _INK,
    [(20, 23, 28), (224, 108, 100), (126, 199, 126), (227, 179, 65), (100, 150, 224), (190, 130, 210),
     (90, 180, 190), (200, 204, 212)],
    [(110, 116, 126), (255, 123, 114), (150, 220, 150), (240, 200, 100), (127, 180, 255), (210, 160, 230),
     (120, 205, 215), (255, 255, 255)],
)  # fmt: skip
_GAP = re.compile(r" {2,}")
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">
<title>{title}</title>
<style>text{{font:{font}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
white-space:pre}}{styles}</style>
<rect width="100%" height="100%" rx="6" fill="{paper}"/>"""


@dataclass(frozen=True, slots=True)
class Look:
    """How a run of cells looks; `paper` is empty where it is the terminal's own."""

    ink: str
    paper: str
    bold: bool

    @property
    def css(self) -> str:
        return f"fill:{self.ink}" + (";font-weight:bold" if self.bold else "")


def svg_of(screen: str, columns: int, rows: int, title: str) -> str:
    """The screen, `columns` by `rows` cells with the colours' escape sequences in it, as an SVG."""
    looks: dict[str, str] = {}
    shapes = list(_shapes(screen, looks))
    styles = "".join(f".{name}{{{css}}}" for css, name in looks.items())
    head = _HEAD.format(
        width=columns * _CELL + 2 * _EDGE, height=rows * _LINE + 2 * _EDGE, title=escape(title), font=_FONT,
        styles=styles, paper=ColorTriplet(*_PAPER).hex,
    )  # fmt: skip
    return "\n".join([head, *shapes, "</svg>"]) + "\n"


def _shapes(screen: str, looks: dict[str, str]) -> Iterator[str]:
    console = Console(width=1000, color_system="truecolor", legacy_windows=False)
    for row, line in enumerate(AnsiDecoder().decode(screen)):  # a style lasts beyond the end of a line
        cell = 0
        for segment in line.render(console):
            text = segment.text.rstrip("\n")
            yield from _run(Segment(text, segment.style), cell, row, looks)
            cell += cell_len(text)


def _run(segment: Segment, cell: int, row: int, looks: dict[str, str]) -> Iterator[str]:
    look = _look(segment.style or Style())
    top = _EDGE + row * _LINE
    if look.paper and segment.text:
        width = cell_len(segment.text) * _CELL
        yield (
            f'<rect x="{_EDGE + cell * _CELL:.5g}" y="{top}" width="{width:.5g}" height="{_LINE}" '
            f'fill="{look.paper}"/>'
        )
    for text, start in _words(segment.text):
        name = looks.setdefault(look.css, f"s{len(looks)}")
        # The length holds the columns together whatever the font's cells are.
        yield (
            f'<text class="{name}" x="{_EDGE + (cell + start) * _CELL:.5g}" y="{top + 14}" '
            f'textLength="{cell_len(text) * _CELL:.5g}">{escape(text)}</text>'
        )


def _words(text: str) -> Iterator[tuple[str, int]]:
    """The pieces between gaps, each with the cell where it begins."""
    begin = 0
    for gap in [*_GAP.finditer(text), None]:
        end = gap.start() if gap else len(text)
        piece = text[begin:end]
        if piece.strip():
            yield piece.strip(), cell_len(text[:begin]) + len(piece) - len(piece.lstrip())
        begin = gap.end() if gap else end


def _look(style: Style) -> Look:
    ink, paper = _rgb(style.color, True), _rgb(style.bgcolor, False)
    if style.reverse:
        ink, paper = paper, ink
    if style.dim:
        ink = blend_rgb(ink, paper, _DIM)
    shown = "" if paper == ColorTriplet(*_PAPER) else paper.hex
    return Look(ink.hex, shown, bool(style.bold))


def _rgb(color: Color | None, foreground: bool) -> ColorTriplet:
    return (color or Color.default()).get_truecolor(_THEME, foreground=foreground)
