"""What lies over the main screen: a page, a form, a question."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from tui.sturdy import Sturdy

T = TypeVar("T")


class Layer(Sturdy, ModalScreen[T]):
    """A screen that ends once: keys typed ahead still reach it when it has ended."""

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """End with that result; nothing where this has ended already or another screen lies over it."""
        if not self.is_mounted or self.app.screen is not self:
            return AwaitComplete()
        ended: AwaitComplete = super().dismiss(result)
        return ended
