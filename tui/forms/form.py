"""A form on the screen: fields below each other, what follows from them, and the keys at the foot."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult

from core.words import JsonObject
from tui.forms.fields import Field
from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, Lines, line_of, wrapped
from tui.paint import Paint
from tui.panes.lines_view import LinesView, ScrolledLines
from tui.plain import plain
from tui.screens.layer import Layer

_STEPS = {"up": -1, "shift+tab": -1, "down": 1, "tab": 1}
_LETTERS = {"k": -1, "j": 1}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a form ends with: the operation, its arguments, and the command line that says the same."""

    operation: str
    arguments: JsonObject
    command: str


class FormScreen(Layer[Asked | None]):
    """Arrows go through the fields, Enter starts, Esc gives up. Faulty fields keep the form open."""

    DEFAULT_CSS = """
    FormScreen { background: ansi_default; layout: vertical; }
    FormScreen .edge { height: 1; width: 1fr; }
    FormScreen .told { height: auto; max-height: 8; width: 1fr; }
    FormScreen ScrolledLines { height: 1fr; width: 1fr; scrollbar-size: 0 0; background: ansi_default; }
    """
    KEYS = "Enter start  Esc give up  arrows  space take or leave"

    def __init__(self, title: str, fields: Sequence[Field], paint: Paint, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.fields = tuple(fields)
        self.here = 0
        self.glyphs = glyphs
        self._title = title
        self._title_line = LinesView(paint, glyphs.ascii, base="bar")
        self.body = ScrolledLines(paint, glyphs.ascii)
        self.told = LinesView(paint, glyphs.ascii)
        self._foot = LinesView(paint, glyphs.ascii)
        self._title_line.add_class("edge")
        self._foot.add_class("edge")
        self.told.add_class("told")

    # What a form of its own says

    def asked(self) -> Asked | None:
        """What the fields ask for; None when a field is faulty."""
        raise NotImplementedError

    def told_lines(self) -> Lines:
        """What follows from the fields."""
        return ()

    # The same for all

    def compose(self) -> ComposeResult:
        yield self._title_line
        yield self.body
        yield self.told
        yield self._foot

    def on_mount(self) -> None:
        self._title_line.show((line_of(f" {plain(self._title)}"),))
        self._foot.show((line_of((f" {self.KEYS}", "dim")),))
        self.body.focus()
        self.show()

    def on_resize(self, event: events.Resize) -> None:
        self.show()

    def show(self) -> None:
        """Show the fields as they are now."""
        self.body.show(self._lines)
        told = wrapped(self.told_lines(), max(20, self.app.size.width - 1))[:8]
        self.told.styles.height = len(told)
        self.told.show(told)
        self._keep_in_sight()

    def _lines(self, width: int) -> Lines:
        return tuple(
            field.line(number == self.here, width, self.glyphs) for number, field in enumerate(self.fields)
        )

    def _keep_in_sight(self) -> None:
        top, height = self.body.scroll_offset.y, max(1, self.body.size.height)
        if self.here < top:
            self.body.move(self.here - top)
        elif self.here >= top + height:
            self.body.move(self.here - top - height + 1)

    @property
    def field(self) -> Field:
        return self.fields[self.here]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        letters = {} if self.field.typing else _LETTERS
        if event.key == "escape":
            self.dismiss(None)
        elif event.key == "enter":
            self._start()
        elif event.key in _STEPS or event.key in letters:
            step = _STEPS.get(event.key) or letters[event.key]
            self.here = (self.here + step) % len(self.fields)
            self.show()
        elif self.field.key(event.key, event.character):
            self.show()

    def _start(self) -> None:
        """End with what is asked for, or go to the first field that is faulty."""
        asked = self.asked()
        if asked is not None:
            self.dismiss(asked)
            return
        faulty = [number for number, field in enumerate(self.fields) if field.fault]
        self.here = faulty[0] if faulty else self.here
        self.show()


def command_text(words: Sequence[str]) -> str:
    """A command line that a shell takes as it stands."""
    return " ".join(shlex.quote(word) for word in words)


def command_line(command: str) -> Line:
    return line_of((" the same from a shell: ", "dim"), (plain(command), "key"))
