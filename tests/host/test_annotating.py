"""Annotations while a sweep runs: written at once, told to all who watch, refused to who only reads."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sessions.host.events import Annotated, Numbered
from sessions.host.wire import ToldFault
from tests.cli.deck import DEADLINE_S, Deck, wait_until
from tests.host.hosting import client, command, gated, rows, until


@pytest.fixture
def sweeping(knobbed: Deck) -> tuple[Deck, Path]:
    """A detached sweep that stands in its trial of block 4, after one that was recorded before."""
    knobbed.run("run")
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    started = command(knobbed, "sweep", "config", "--config", json.dumps({"block": 4}), "--detach")
    assert started.communicate()[1] == "" and started.returncode == 0
    wait_until(reached.exists, "the candidate")
    return knobbed, go_on


def running(deck: Deck) -> int:
    return len(rows(deck.root, "SELECT id FROM trials WHERE status IS NULL"))


def test_a_note_and_a_baseline_wait_for_nothing_that_runs(sweeping: tuple[Deck, Path]) -> None:
    deck, go_on = sweeping
    assert deck.json("note", "1", "before the sweep", "--tag", "start")["outcome"] == "noted"
    assert deck.json("baseline", "1")["outcome"] == "set"
    (now,) = rows(deck.root, "SELECT id FROM trials WHERE status IS NULL")
    assert deck.json("note", str(now[0]), "--tag", "stands")["tags"] == ["stands"]
    assert f"trial #{now[0]} has no score: it runs still" in deck.fault("baseline", str(now[0]))
    assert running(deck) == 1
    go_on.touch()
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("done",)], "the sweep's end")
    assert rows(deck.root, "SELECT COUNT(*) FROM trials WHERE status = 'cancelled'") == [(0,)]


def test_whoever_watches_is_told_at_once(sweeping: tuple[Deck, Path]) -> None:
    deck, _ = sweeping

    async def watch() -> tuple[str, int | None]:
        async with client(deck, readonly=True) as watcher, client(deck, actor="tui") as asker:
            await until(watcher, lambda now: now.pid > 0)
            answer = await asker.call("set_baseline", {"record": "1"})
            now = await until(watcher, lambda now: now.annotated > 0 and bool(
                now.workspace and now.workspace.baseline))  # fmt: skip
            assert now.work is not None and now.work.operation == "sweep_kernel_config"
            assert now.queue == () and now.workspace is not None
            assert answer.content["said"] == await told(watcher)
            return answer.content["outcome"], now.workspace.baseline

    async def told(watcher: object) -> str:
        async with client(deck, readonly=True) as later, asyncio.timeout(DEADLINE_S):
            async for update in later.updates(after=0):
                if isinstance(update, Numbered) and isinstance(update.event, Annotated):
                    return update.event.said
        raise AssertionError("the updates ended")

    assert asyncio.run(watch()) == ("set", 1)
    assert running(deck) == 1


def test_who_only_reads_annotates_nothing(sweeping: tuple[Deck, Path]) -> None:
    deck, _ = sweeping

    async def ask() -> None:
        async with client(deck, readonly=True) as looker:
            await looker.call("note_trial", {"trial": 1, "tags": ["mine"]})

    with pytest.raises(ToldFault, match="only looks on"):
        asyncio.run(ask())
    assert rows(deck.root, "SELECT * FROM notes") == []
