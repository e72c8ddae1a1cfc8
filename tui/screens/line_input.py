"""One line to type, at the foot of the screen."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from tui.glyphs import Glyphs
from tui.line import line_of
from tui.paint import Paint
from tui.panes.lines_view import LinesView


class LineInput(ModalScreen[str | None]):
    """What was typed with Enter; None for Esc."""

    def __init__(self, label: str, value: str, paint: Paint, glyphs: Glyphs) -> None:
        super().__init__()
        self._label = label
        self.view = LinesView(paint, glyphs.ascii)
        self.input = Input(value, compact=True)
        self.input.cursor_blink = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.view
            yield self.input

    def on_mount(self) -> None:
        self.view.show((line_of((f" {self._label}", "dim")),))
        self.input.focus()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            self.dismiss(None)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.dismiss(self.input.value)
