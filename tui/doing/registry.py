"""Handlers of actions by id, kept as they are declared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.app import KerneldeckApp

Handler = Callable[["KerneldeckApp"], Awaitable[None]]
HANDLERS: dict[str, Handler] = {}


def handles(*ids: str) -> Callable[[Handler], Handler]:
    """Keep the handler for these actions."""

    def keep(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(ids, handler))
        return handler

    return keep
