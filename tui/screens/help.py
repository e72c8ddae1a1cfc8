"""The keys of a pane, each with what it does and the command line that it stands for."""

from __future__ import annotations

from collections.abc import Iterator

from tui.actions import PANES, Action
from tui.keymap import Keymap, shown_key
from tui.line import Line, Lines, line_of, wrapped
from tui.lines.frame import label_of, why_dimmed
from tui.paint import Paint
from tui.plain import padded
from tui.screens.pages import Page
from tui.showing import Showing

_KEYS_WIDTH, _LABEL_WIDTH = 15, 14


def help_lines(pane: str, showing: Showing, keymap: Keymap) -> Iterator[Line]:
    """The pane's own keys first, then those of all panes."""
    own = [action for action in keymap.in_pane(pane) if action.panes != PANES]
    everywhere = [action for action in keymap.in_pane(pane) if action.panes == PANES]
    for title, actions in ((f"{pane.capitalize()} only", own), ("Everywhere", everywhere)):
        if actions:
            yield line_of((f" {title}", "title"))
            for action in actions:
                yield from _told(action, showing, keymap)
            yield ()


def _told(action: Action, showing: Showing, keymap: Keymap) -> Iterator[Line]:
    command = f" ({action.verb})" if action.verb else ""
    keys = " ".join(shown_key(key) for key in keymap.keys.get(action.id, ()))
    why = why_dimmed(action, showing)
    role = "off" if why else "key"
    yield line_of(
        (f"  {padded(keys, _KEYS_WIDTH)}", role), (padded(label_of(action, showing), _LABEL_WIDTH), "strong"),
        f" {action.doc}", (command, "dim"),
    )  # fmt: skip
    if why:
        yield line_of((f"  {' ' * (_KEYS_WIDTH + _LABEL_WIDTH)} not now: {why.partition(': ')[2]}", "off"))


class HelpScreen(Page):
    """Made from the registry, so that it cannot be behind it."""

    def __init__(self, pane: str, showing: Showing, keymap: Keymap, paint: Paint) -> None:
        super().__init__(f"Keys of {pane.capitalize()}", paint, showing.glyphs)
        self._lines = list(help_lines(pane, showing, keymap))

    def lines(self, width: int) -> Lines:
        return wrapped(self._lines, width, 3 + _KEYS_WIDTH + _LABEL_WIDTH)
