"""Keys typed ahead, and faults of our own: neither ends the app, and no trace reaches the screen."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from textual import events

from tests.tui.scripted import Shown, shown, snapshot
from tui.keymap import Keymap
from tui.main_screen import MainScreen
from tui.screens.layer import Layer

OPENED = {"a page": ("question_mark", "q"), "a question": ("X", "n"), "commands": ("colon", "escape")}


@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
def test_what_is_closed_twice_takes_nothing_else_with_it(root: Path, opened: tuple[str, str]) -> None:
    opens, closes = opened

    async def body() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True)) as screen:
            await screen.press(opens)
            layer = await _layer(screen)
            for _ in range(3):  # as keys come that were typed ahead: before the first has had its effect
                layer.post_message(events.Key(closes, None))
            await screen.pilot.pause()
            assert isinstance(screen.app.screen, MainScreen)
            await screen.press("4")
            await screen.wait_for("[4]History")
            assert screen.host.asked == []

    asyncio.run(body())


async def _layer(screen: Shown) -> Layer[object]:
    while not isinstance(screen.app.screen, Layer) or not screen.app.screen.is_mounted:
        await screen.pilot.pause()
    return screen.app.screen


def test_a_handler_that_fails_is_told_and_the_app_goes_on(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def body() -> None:
        async with shown(root, snapshot(waiting=4), size=(150, 40)) as screen:
            monkeypatch.setattr(Keymap, "action_of", lambda *_: 1 / 0)
            await screen.press("4")
            await screen.wait_for("internal fault: ZeroDivisionError: division by zero; please report")
            monkeypatch.undo()
            await screen.press("4")
            await screen.wait_for("[4]History")

    asyncio.run(body())
    kept = list(tmp_path.glob("kerneldeck-fault-*.txt"))
    assert kept and "ZeroDivisionError" in kept[0].read_text()


def test_an_answer_that_cannot_be_read_is_told_and_no_longer_waited_for(root: Path) -> None:
    async def body() -> None:
        async with shown(root, snapshot()) as screen:
            deck = screen.app.deck
            deck.annotate("note_trial", {}, "kerneldeck note 1", "a note")
            await screen.wait_for("internal fault in a note: KeyError")
            assert deck.showing.requested == ()

    asyncio.run(body())


def test_a_fault_while_following_is_shown_as_a_loss_and_following_goes_on(root: Path) -> None:
    async def body() -> None:
        async with shown(root, snapshot()) as screen:
            screen.host.lose(ZeroDivisionError("so it is"))
            await screen.wait_for("connected again")
            assert any("internal fault: ZeroDivisionError" in one for one in screen.app.deck.messages)

    asyncio.run(body())
