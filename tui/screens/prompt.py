"""The command line at the foot: every action by its name, with what fits so far above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from tui.actions import Action
from tui.keymap import Keymap
from tui.line import Line, line_of
from tui.lines.frame import why_dimmed
from tui.panes.lines_view import LinesView
from tui.plain import padded, plain
from tui.screens.layer import Layer

if TYPE_CHECKING:
    from tui.app import KerneldeckApp

_MOST = 8
_NAME_WIDTH = 28
_KEY_WIDTH = 10  # Shift+Tab


def name_of(action: Action) -> str:
    """What to type: the verb without the program, else the label."""
    return action.verb.removeprefix("kerneldeck ").strip() or action.label


def matching(words: str, keymap: Keymap, pane: str, only: Sequence[str] = ()) -> list[Action]:
    """The actions of the pane whose name begins with the words, then those that hold all of them."""
    asked = words.lower().split()
    found = [one for one in keymap.in_pane(pane) if one.id in only or not only]
    found = [one for one in found if one.id != "app.commands"]
    scored = []
    for number, action in enumerate(found):
        name = name_of(action).lower()
        told = f"{name} {action.label} {action.id} {action.doc}".lower()
        if all(word in told for word in asked):
            scored.append((not name.startswith(words.lower().strip()), number, action))
    return [action for _, _, action in sorted(scored, key=lambda one: one[:2])]


class Prompt(Layer[None]):
    """Enter does the first one; Esc closes."""

    def __init__(self, deck_app: KerneldeckApp, only: Sequence[str] = ()) -> None:
        super().__init__()
        self._only = only
        self._app = deck_app
        self.choices: list[Action] = []
        self.chosen = 0
        glyphs = deck_app.deck.showing.glyphs
        self.view = LinesView(deck_app.paint, glyphs.ascii)
        self.input = Input(placeholder="a command, or words of what it does", compact=True)
        self.input.cursor_blink = False

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.view
            yield self.input

    def on_mount(self) -> None:
        self.input.focus()
        self._show("")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self.chosen = 0
        self._show(event.value)

    def _show(self, words: str) -> None:
        self.choices = matching(words, self._app.keymap, self._app.main.pane, self._only)[:_MOST]
        lines = [self._line(number, action) for number, action in enumerate(self.choices)]
        self.view.show(tuple(lines) or (line_of((f" no command fits {plain(words)}", "warn")),))

    def _line(self, number: int, action: Action) -> Line:
        why = why_dimmed(action, self._app.deck.showing)
        role = "cursor" if number == self.chosen else "off" if why else "strong"
        told = f"not now: {why.partition(': ')[2]}" if why else action.doc
        key = padded(self._app.keymap.shown(action.id), _KEY_WIDTH)
        return line_of((f" {key}", "key"), (padded(name_of(action), _NAME_WIDTH), role), (f" {told}", "dim"))

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            self.dismiss()
        elif event.key in ("up", "down", "tab"):
            step = -1 if event.key == "up" else 1
            self.chosen = (self.chosen + step) % max(1, len(self.choices))
            self._show(self.input.value)
        elif event.is_printable and event.character:
            self.input.insert_text_at_cursor(event.character)  # typed ahead
        else:
            return
        event.stop()
        event.prevent_default()

    @on(Input.Submitted)
    async def _submitted(self) -> None:
        chosen = self.choices[self.chosen] if self.choices else None
        self.dismiss()
        if chosen is not None:
            await self._app.do(chosen)
