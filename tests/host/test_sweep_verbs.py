"""Words to a running sweep, from other commands than the one that started it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import KerneldeckError
from tests.cli.deck import Deck, wait_until
from tests.host.hosting import client, command, gated, rows, until

WAITING = 3


@pytest.fixture
def sweeping(knobbed: Deck) -> Iterator[tuple[Deck, Path]]:
    """A detached sweep over blocks 4, 2 and 8 that stands in its trial of block 4, and what lets it go on."""
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    configs = [word for block in (4, 2, 8) for word in ("--config", json.dumps({"block": block}))]
    started = command(knobbed, "sweep", "config", *configs, "--detach")
    assert started.communicate()[1] == "" and started.returncode == 0
    wait_until(reached.exists, "the candidate")
    yield knobbed, go_on
    go_on.touch()


def queue(deck: Deck) -> list[str]:
    """Ids of the waiting candidates, as any client sees them."""

    async def look() -> list[str]:
        async with client(deck, readonly=True) as looker:
            sweep = (await looker.snapshot()).sweep
            assert sweep is not None
            return list(sweep.waiting)

    return asyncio.run(look())


def ended(deck: Deck) -> tuple[str, dict[str, int]]:
    """How the sweep ended, and its candidates."""

    async def follow() -> tuple[str, dict[str, int]]:
        async with client(deck, readonly=True) as looker:
            now = await until(looker, lambda now: now.sweep is not None and now.sweep.ended)
            assert now.sweep is not None
            return now.sweep.state, dict(now.sweep.counts)

    return asyncio.run(follow())


def test_a_sweep_is_paused_and_goes_on(sweeping: tuple[Deck, Path]) -> None:
    deck, go_on = sweeping
    assert "sweep #1 is paused; what runs goes on to its end" in deck.run("sweep", "pause").out
    assert "the sweep is paused already, by cli" in deck.fault("sweep", "pause")
    go_on.touch()
    wait_until(lambda: deck.seen()["history"] == {"ok": 3}, "the trial's end")
    told = json.loads(deck.run("host", "status", "--json").out)["snapshot"]["sweep"]
    assert (told["state"], told["paused_by"], told["running"]) == ("PAUSED", "cli", "")
    assert len(queue(deck)) == 2
    assert deck.json("sweep", "continue")["said"] == "sweep #1 goes on"
    assert ended(deck) == ("DONE", {"ok": 4})
    assert "no sweep runs" in deck.fault("sweep", "continue")


def test_candidates_are_moved_cancelled_and_tried_again(sweeping: tuple[Deck, Path]) -> None:
    deck, go_on = sweeping
    first, second = queue(deck)
    assert "was moved 1 sooner" in deck.run("sweep", "move", second[:12]).out
    assert queue(deck) == [second, first]
    assert f"{second[:12]} is cancelled" in deck.run("sweep", "cancel", second[:8]).out
    assert queue(deck) == [first]
    assert f"{second[:12]} waits again" in deck.run("sweep", "retry", second).out
    assert queue(deck) == [second, first]
    assert "only waiting candidates can be moved" in deck.fault("sweep", "move", rows_running(deck)[:12])
    assert "begins with 'ffffffffffff'" in deck.fault("sweep", "cancel", "ffffffffffff")
    assert "too short" in deck.fault("sweep", "cancel", "f")
    assert "no candidate is named" in deck.fault("sweep", "move")
    assert "by is no number of places" in deck.fault("sweep", "move", first[:12], "--by", "0")
    go_on.touch()
    assert ended(deck) == ("DONE", {"ok": 4})


def rows_running(deck: Deck) -> str:
    return str(rows(deck.root, "SELECT candidate_id FROM trials WHERE status IS NULL")[0][0])


def test_the_running_candidate_is_cancelled_and_the_sweep_goes_on(sweeping: tuple[Deck, Path]) -> None:
    deck, _ = sweeping
    assert "the running candidate is cancelled" in deck.run("sweep", "cancel").out
    assert ended(deck) == ("DONE", {"ok": 3, "cancelled": 1})


def test_a_sweep_is_stopped_for_good(sweeping: tuple[Deck, Path]) -> None:
    deck, _ = sweeping
    assert "sweep #1 is stopped" in deck.run("sweep", "stop").out
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("stopped",)], "its end on record")
    assert "sweep #7 does not run" in deck.fault("sweep", "stop", "--sweep", "7")


def test_a_sweep_obeys_also_after_others_were_sent_away(sweeping: tuple[Deck, Path]) -> None:
    deck, go_on = sweeping
    assert "is held by `kerneldeck sweep config`" in deck.fault("run", code=3)

    async def given_up() -> None:
        async with client(deck) as other:
            waiting = await other.submit("run_objective", {"mode": "final"})
            await other.cancel(waiting.receipt)
            with pytest.raises(KerneldeckError, match="interrupted"):
                await waiting.answer()

    asyncio.run(given_up())
    assert "sweep #1 is paused" in deck.run("sweep", "pause").out
    go_on.touch()
    assert "sweep #1 is stopped" in deck.run("sweep", "stop").out
    assert ended(deck)[0] == "STOPPED"


def test_by_json_and_by_call_it_is_the_same(sweeping: tuple[Deck, Path]) -> None:
    deck, _ = sweeping
    paused = deck.json("sweep", "pause")
    assert paused["operation"] == "pause_sweep" and paused["outcome"] == "pause"
    done = deck.run("call", "continue_sweep", '{"sweep": 1}').answer
    assert done["said"] == "sweep #1 goes on" and done["exit_code"] == 0
