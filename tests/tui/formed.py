"""A screen of the app on its own, for the tests of forms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen


class Harness(App[None]):
    """Shows one screen and keeps what it ended with."""

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self.shown = screen
        self.ended: list[object] = []

    def on_mount(self) -> None:
        self.push_screen(self.shown, self.ended.append)


Body = Callable[[Harness, "Pilot[None]"], Awaitable[None]]


def shown(screen: object, body: Body, size: tuple[int, int] = (80, 24)) -> Harness:
    app = Harness(screen)  # type: ignore[arg-type]

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await body(app, pilot)
            await pilot.pause()

    asyncio.run(run())
    return app
