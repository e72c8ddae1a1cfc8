"""A pane: its head of one line, and its body when it is open."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from tui.line import Line
from tui.paint import Paint
from tui.panes.lines_view import LinesView


class Pane(Vertical):
    """`name` is one of tui.actions.PANES; the body gets the focus while the pane is the open one."""

    def __init__(self, name: str, body: Widget, paint: Paint, ascii_glyphs: bool) -> None:
        super().__init__(id=f"pane-{name}")
        self.pane = name
        self.head = LinesView(paint, ascii_glyphs, id=f"head-{name}")
        self.head.add_class("head")
        self.body = body
        self.body.add_class("body")

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.body

    def show_head(self, line: Line) -> None:
        self.head.show((line,))
