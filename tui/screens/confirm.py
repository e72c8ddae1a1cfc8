"""A question before something that cannot be undone: verbs on both answers, the safe one chosen at first."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from tui.glyphs import Glyphs
from tui.line import line_of, wrapped
from tui.paint import Paint
from tui.panes.lines_view import LinesView
from tui.screens.layer import Layer

_OTHER = frozenset({"left", "right", "h", "l", "tab", "shift+tab", "up", "down", "j", "k"})


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, what it costs, and the two answers as verbs; `keep` is the one that changes nothing."""

    asked: str
    cost: str
    keep: str
    act: str


class Confirm(Layer[bool]):
    """True for the answer that acts. y and n answer at once, Enter takes the chosen one, Esc keeps."""

    def __init__(self, question: Question, paint: Paint, glyphs: Glyphs) -> None:
        super().__init__()
        self.question = question
        self.acting = False
        self.view = LinesView(paint, glyphs.ascii)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self.view

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    def _show(self) -> None:
        question = self.question
        keep, act = f" {question.keep} ", f" {question.act} "
        roles = ("", "cursor") if self.acting else ("cursor", "")
        answers = line_of((f"[n]{keep}", roles[0]), "   ", (f"[y]{act}", roles[1]))
        hint = line_of(("y or n, or arrows and Enter; Esc keeps", "dim"))
        told = wrapped((line_of((question.asked, "strong")), line_of(question.cost)), self.view.size.width, 0)
        lines = (*told, (), *wrapped((answers,), self.view.size.width, 0), (), hint)
        self.view.styles.height = len(lines)
        self.view.show(lines)

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
