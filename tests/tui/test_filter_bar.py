"""The filter's line, while it is typed."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from tests.tui.seeding import History
from tui.history.filter_bar import FilterBar
from tui.paint import paint_of

PAINT = paint_of("auto", "256")


class Bar(App[None]):
    def __init__(self, history: History) -> None:
        super().__init__()
        self.bar = FilterBar(history.reader, PAINT)
        self.words: list[str] = []
        self.closed = 0

    def compose(self) -> ComposeResult:
        yield self.bar

    def on_filter_bar_filtered(self, message: FilterBar.Filtered) -> None:
        self.words.append(message.words)

    def on_filter_bar_closed(self) -> None:
        self.closed += 1


def test_the_filter_says_what_is_wrong_while_it_is_typed(history: History) -> None:
    async def run() -> None:
        app = Bar(history)
        async with app.run_test(size=(80, 24)) as pilot:
            assert not app.bar.display
            app.bar.open("ok ")
            await pilot.press(*"x=1")
            assert "x is no knob and no field of the history" in app.bar.told.text
            await pilot.press("enter")
            assert app.words == [] and app.bar.display
            await pilot.press("backspace", "backspace", "backspace")
            assert "knobs: BLOCK_M num_warps schedule" in app.bar.told.text
            await pilot.press("enter")
            assert app.words == ["ok"] and app.closed == 1 and not app.bar.display
            app.bar.open("oom")
            await pilot.press("x", "escape")
            assert app.words == ["ok"] and app.closed == 2

    asyncio.run(run())
