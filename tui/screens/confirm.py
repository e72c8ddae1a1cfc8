"""A question before something that cannot be undone: verbs on both answers, the safe one chosen at first."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from tui.glyphs import Glyphs
from tui.line import Line, line_of
from tui.paint import Paint
from tui.panes.lines_view import LinesView

_OTHER = frozenset({"left", "right", "h", "l", "tab", "shift+tab", "up", "down", "j", "k"})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, what it costs, and the two answers as verbs; `keep` is the one that changes nothing."""

    asked: str
    cost: str
    keep: str
    act: str


class Confirm(ModalScreen[bool]):
    """True for the answer that acts. y and n answer at once, Enter takes the chosen one, Esc keeps."""

    CSS = """
    Confirm { align: center middle; background: ansi_default 0%; }
    Confirm > Vertical {
        width: 72; max-width: 100%; height: 8; border: solid ansi_yellow; background: ansi_default; padding: 0 1;
    }
    Confirm LinesView { height: 6; width: 1fr; }
    """

    def __init__(self, question: Question, paint: Paint, glyphs: Glyphs) -> None:
        super().__init__()
        self.question = question
        self.acting = False
        self.view = LinesView(paint, glyphs.ascii)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.view

    def on_mount(self) -> None:
        self._show()

    def _show(self) -> None:
        question = self.question
        keep, act = f" {question.keep} ", f" {question.act} "
        answers: Line = line_of(
            (f"[n]{keep}", "" if self.acting else "cursor"), "   ", (f"[y]{act}", "cursor" if self.acting else ""),
        )  # fmt: skip
        hint = line_of(("y or n, or arrows and Enter; Esc keeps", "dim"))
        self.view.show((line_of((question.asked, "strong")), line_of(question.cost), (), answers, (), hint))

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in ("y", "Y"):
            self.dismiss(True)
        elif event.key in ("n", "N", "escape", "q"):
            self.dismiss(False)
        elif event.key == "enter":
            self.dismiss(self.acting)
        elif event.key in _OTHER:
            self.acting = not self.acting
            self._show()
