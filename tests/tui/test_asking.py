"""What keys ask of the host and of the person, and what is typed ahead."""

from __future__ import annotations

import asyncio
from asyncio import run
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events

from sessions.host.client import HostKeyAsked
from tests.cli.deck import Deck
from tests.host.hosting import rows
from tests.tui.scripted import Shown, candidates, shown, snapshot
from tui.keymap import named_key


def test_keys_ask_the_host_and_their_receipt_is_shown_until_the_answer(root: Path) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True)) as screen:
            names = candidates(7)
            screen.host.held = asyncio.Event()
            await screen.wait_for("RUN       #3")
            await screen.press("p")
            await screen.wait_for("requested: pause sweep #7")
            screen.host.held.set()
            await screen.wait_for("pause done")
            await screen.press("j", "K", "J", "x")
            assert screen.host.asked == [
                ("pause", {}),
                ("move", {"candidate": names[3], "by": -1}),
                ("move", {"candidate": names[3], "by": 1}),
                ("cancel", {"candidate": names[3]}),
            ]
            paused = snapshot(waiting=4, ended=2)
            assert paused.sweep is not None
            await screen.tell(replace(paused, sweep=replace(paused.sweep, state="PAUSED", paused_by="mcp")))
            text = await screen.wait_for("PAUSED by mcp")
            assert "p resume" in text and "HELD" in text
            await screen.press("p")
            assert screen.host.asked[-1] == ("resume", {})

    run(look())


@pytest.mark.parametrize(("key", "asked"), [("X", "stop"), ("R", "restore_best_checkpoint"), ("x", "cancel")])
def test_what_cannot_be_undone_asks_with_the_safe_answer_chosen(root: Path, key: str, asked: str) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True)) as screen:
            await screen.wait_for("RUN       #3")
            for answer in ("enter", "escape", "n"):
                await screen.press(key)
                await screen.wait_for("[y]")
                await screen.press(answer)
                await screen.wait_for(lambda text: "[y]" not in text)
            assert screen.host.asked == []
            await screen.press(key, "right", "enter")
            await screen.wait_for(lambda text: "[y]" not in text)
            await screen.pilot.pause()
            assert [name for name, _ in screen.host.asked] == [asked]

    run(look())


def test_reading_only_dims_and_says_why(root: Path) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True), readonly=True) as screen:
            assert "reads only" in (await screen.wait_for("RUN       #3")).splitlines()[0]
            for key in ("p", "x", "X", "J", "v", "R", "a", "n", "A", "b", "t"):
                await screen.press(key)
                await screen.wait_for("this app only reads (--readonly)")
                screen.app.deck.say("-")
            assert screen.host.asked == []

    run(look())


def type_at_once(screen: Shown, text: str) -> None:
    """As a paste comes, or what was typed while the line was slow: all before the first has an effect."""
    for character in text:
        screen.app.post_message(events.Key(named_key(character), character))


def test_what_is_typed_ahead_is_text_where_text_is_asked_for_and_no_command(root: Path) -> None:
    Deck(root).run("run")
    [(contract,)] = rows(root, "SELECT id FROM contracts")
    first = snapshot(waiting=3, ended=1, running=True)
    assert first.workspace is not None
    own = replace(first.workspace, contract_id=contract)

    async def look() -> None:
        async with shown(root, replace(first, workspace=own)) as screen:
            await screen.press("4")
            await screen.wait_for("#1 OK")
            type_at_once(screen, "/faXp")
            await screen.wait_for("faXp")
            await screen.press("escape")
            type_at_once(screen, ":Xp")
            await screen.wait_for("no command fits Xp")
            assert screen.app.screen is not screen.app.main and screen.host.asked == []
            assert "are dropped" not in screen.text()

    run(look())


def test_help_lists_every_key_of_the_pane_and_the_prompt_does_them(root: Path) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True), (150, 60)) as screen:
            await screen.wait_for("RUN       #3")
            await screen.press("question_mark")
            text = await screen.wait_for("Keys of Queue")
            for action in screen.app.keymap.in_pane("queue"):
                assert action.doc in text
            await screen.press("escape", "colon", *"sweep pa")
            await screen.wait_for("pause or resume")
            await screen.press("enter")
            await screen.wait_for("pause done")
            assert screen.host.asked == [("pause", {})]

    run(look())


def test_a_fault_in_a_handler_is_a_sentence_and_the_app_goes_on(root: Path) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=4, ended=2, running=True)) as screen:
            await screen.wait_for("RUN       #3")
            screen.app.main.queue.move = lambda by: 1 / 0  # type: ignore[assignment, return-value, method-assign]
            await screen.press("j")
            await screen.wait_for("internal fault in nav.down: ZeroDivisionError")
            await screen.press("1")
            await screen.wait_for("[1]Context")

    run(look())


@pytest.mark.parametrize(("key", "trusted"), [("enter", False), ("y", True)])
def test_an_unknown_host_key_is_asked_about_with_its_fingerprint(root: Path, key: str, trusted: bool) -> None:
    async def look() -> None:
        async with shown(root, snapshot()) as screen:
            asked = HostKeyAsked("h200-3", "h200-3", "ssh-ed25519", "SHA256:abcdef", "~/.ssh/known_hosts")
            answer = asyncio.ensure_future(screen.app.deck.host_key(asked))
            text = await screen.wait_for("SHA256:abcdef")
            assert "Do not connect" in text and "known_hosts" in text
            await screen.press(key)
            assert await answer is trusted

    run(look())
