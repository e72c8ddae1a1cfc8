"""The line in which the history's filter is typed; what a word does not mean is said beside it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from core.errors import KerneldeckError
from sessions.history import HistoryReader
from sessions.history_filter import FIELDS
from tui.glyphs import UNICODE, Glyphs
from tui.line import line_of, wrapped
from tui.paint import Paint
from tui.panes.lines_view import LinesView
from tui.plain import plain

_HELP = "Enter filters, Esc closes; ok bad oom faster dev knob=value tag:word #12 !word text"


class FilterBar(Vertical):
    """Hidden until `open`. Enter filters with what is there, Esc closes and changes nothing."""

    DEFAULT_CSS = """
    FilterBar { height: 3; width: 1fr; display: none; background: ansi_default; }
    FilterBar Input { height: 1; border: none; padding: 0 1; background: ansi_default; }
    FilterBar LinesView { height: 2; width: 1fr; }
    """

    @dataclass
    class Filtered(Message):
        """The history is to show what these words mean; they mean something."""

        words: str

    class Closed(Message):
        """The bar is gone; whoever had the focus may have it back."""

    def __init__(
        self, reader: HistoryReader, paint: Paint, glyphs: Glyphs = UNICODE, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._reader = reader
        self.input = Input(placeholder="filter", compact=True)
        self.input.cursor_blink = False
        self.told = LinesView(paint, glyphs.ascii)

    def compose(self) -> ComposeResult:
        yield self.input
        yield self.told

    def open(self, words: str) -> None:
        """Show the bar with these words in it."""
        self.display = True
        self.input.value = words
        self.input.cursor_position = len(words)
        self.screen.set_focus(self.input)  # at once: the next key is its already
        self._tell(words)

    def close(self) -> None:
        self.display = False
        self.post_message(self.Closed())

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        self._tell(event.value)

    def _tell(self, words: str) -> bool:
        """Say what is wrong with the words, or what could be typed; whether they mean something."""
        try:
            self._reader.check(words)
        except KerneldeckError as error:
            said = (line_of(" ", (plain(error.sentence), "bad"), (f": {plain(error.hint)}", "dim")),)
            self.told.show(wrapped(said, max(20, self.app.size.width - 1))[:2])
            return False
        knobs = " ".join(self._reader.scope.knobs)
        more = f" knobs: {plain(knobs)}" if knobs else f" fields: {' '.join(FIELDS)}"
        self.told.show((line_of((f" {_HELP}", "dim")), line_of((more, "dim"))))
        return True

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._tell(event.value):
            self.post_message(self.Filtered(event.value.strip()))
            self.close()

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.close()
