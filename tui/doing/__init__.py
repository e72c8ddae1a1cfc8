"""What each action does, by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.actions import PANES, Action
from tui.doing import annotating, forms, looking, reading, steering
from tui.doing.registry import HANDLERS

if TYPE_CHECKING:
    from tui.app import KerneldeckApp

__all__ = ["HANDLERS", "annotating", "do", "forms", "looking", "reading", "steering"]


async def do(app: KerneldeckApp, action: Action) -> None:
    """Carry the action out in the open pane."""
    name = action.id.partition(".")[2]
    if action.id.startswith("pane.") and name in PANES:
        app.main.open_pane(name)
    elif action.id.startswith("nav.") and name != "back":
        looking.move(app, name)
    else:
        await HANDLERS[action.id](app)
