"""A full-screen page of lines: scrolls with the usual keys, closes with Esc or q."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult

from tui.glyphs import Glyphs
from tui.line import Lines, Span, line_of, wrapped
from tui.paint import Paint
from tui.panes.lines_view import LinesView, ScrolledLines
from tui.plain import plain
from tui.screens.layer import Layer

_STEPS = {
    "j": 1,
    "down": 1,
    "k": -1,
    "up": -1,
    "g": -1_000_000,
    "home": -1_000_000,
    "G": 1_000_000,
    "end": 1_000_000,
}
_PAGES = {"pagedown": 1, "ctrl+d": 1, "space": 1, "pageup": -1, "ctrl+u": -1}
CLOSE_KEYS = frozenset({"escape", "q", "enter", "question_mark", "at"})


class Page(Layer[None]):
    """`title` above, lines below, the keys at the foot."""

    def __init__(self, title: str, paint: Paint, glyphs: Glyphs) -> None:
        super().__init__()
        self._heading = title
        self.title_line = LinesView(paint, glyphs.ascii, base="bar")
        self.body = ScrolledLines(paint, glyphs.ascii)
        self.foot = LinesView(paint, glyphs.ascii)
        self.title_line.add_class("edge")
        self.foot.add_class("edge")

    def lines(self, width: int) -> Lines:
        """What the page shows in a terminal so wide."""
        return ()

    def compose(self) -> ComposeResult:
        yield self.title_line
        yield self.body
        yield self.foot

    def on_mount(self) -> None:
        self.title_line.show((line_of(f" {self._heading}"),))
        self.foot.show((line_of(" ", ("j k", "key"), " scroll  ", ("Esc", "key"), " close"),))
        self.body.focus()
        self.show()

    def show(self) -> None:
        self.body.show(self.lines)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in CLOSE_KEYS:
            self.dismiss()
        elif event.key in _STEPS:
            self.body.move(_STEPS[event.key])
        elif event.key in _PAGES:
            self.body.move(_PAGES[event.key] * max(1, self.body.size.height - 1))


class LinesPage(Page):
    """Texts, one a line."""

    def __init__(self, title: str, texts: Sequence[str], paint: Paint, glyphs: Glyphs) -> None:
        super().__init__(title, paint, glyphs)
        self._texts = texts

    def lines(self, width: int) -> Lines:
        return wrapped([(Span(f" {plain(text)}"),) for text in self._texts], width)
