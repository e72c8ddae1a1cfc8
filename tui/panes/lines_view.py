"""A widget of ready lines, which repaints exactly the lines that differ."""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tui.line import Line, Lines, changed_ranges, text_of
from tui.paint import Paint
from tui.plain import ascii_only, plain


def strip_of(line: Line, paint: Paint, ascii_glyphs: bool, width: int, base: str = "") -> Strip:
    """The line as the screen library paints it, in exactly `width` cells.

    Whatever a line was made of, nothing that a terminal would act on passes here.
    """
    under = paint.style(base)
    segments = [
        Segment(ascii_only(safe) if ascii_glyphs else safe, under + paint.style(span.role))
        for span in line
        if (safe := span.text if span.text.isprintable() else plain(span.text))
    ]
    return Strip(segments).adjust_cell_length(width, under)


def refresh_changed(widget: Widget, y: int, before: Line, after: Line) -> None:
    """Have those cells of the widget's row painted in which the lines differ."""
    width = widget.size.width
    ranges = changed_ranges(before, after)
    if regions := [Region(start, y, min(end, width) - start, 1) for start, end in ranges if start < width]:
        widget.refresh(*regions)


class LinesView(Widget):
    """Lines from the top, cut at the edge; `base` is the role behind all of them."""

    def __init__(self, paint: Paint, ascii_glyphs: bool, base: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self._paint = paint
        self._ascii = ascii_glyphs
        self._base = base
        self._lines: Lines = ()

    @property
    def text(self) -> str:
        return "\n".join(text_of(line) for line in self._lines)

    def show(self, lines: Lines) -> None:
        """Show these; only rows that changed are painted again."""
        before, self._lines = self._lines, lines
        for number in range(max(len(before), len(lines))):
            old = before[number] if number < len(before) else ()
            refresh_changed(self, number, old, lines[number] if number < len(lines) else ())

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else ()
        return strip_of(line, self._paint, self._ascii, self.size.width, self._base)


class ScrolledLines(ScrollView, can_focus=True):
    """Lines that scroll where they are more than the screen has; only what differs repaints."""

    def __init__(self, paint: Paint, ascii_glyphs: bool, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paint = paint
        self._ascii = ascii_glyphs
        self._make: Callable[[int], Lines] = lambda _: ()
        self._lines: Lines = ()

    @property
    def text(self) -> str:
        return "\n".join(text_of(line) for line in self._lines)

    def show(self, make: Callable[[int], Lines]) -> None:
        """Show what `make` gives for a width, now and after each change of size."""
        self._make = make
        width = self.size.width or self.app.size.width  # until it has its place, the whole screen's
        before, self._lines = self._lines, make(width)
        if len(before) != len(self._lines) or self.virtual_size.width != width:
            self.virtual_size = Size(width, len(self._lines))
        top = self.scroll_offset.y
        for number in range(top, top + self.size.height):
            if before[number : number + 1] != self._lines[number : number + 1]:
                self.refresh(Region(0, number - top, self.size.width, 1))

    def on_resize(self) -> None:
        self.show(self._make)

    def move(self, by: int) -> None:
        self.scroll_to(y=max(0, self.scroll_offset.y + by), animate=False)

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        line = self._lines[number] if 0 <= number < len(self._lines) else ()
        return strip_of(line, self._paint, self._ascii, self.size.width)
