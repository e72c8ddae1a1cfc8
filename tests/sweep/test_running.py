"""Commands to a sweep whose trials run: real processes, the real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import Busy, KerneldeckError, StorageFault
from core.events import CandidateMoved, CandidateRequeued, CandidateScreened, SweepPaused, SweepResumed
from core.sweep.mailbox import HAS_ENDED
from core.sweep.plan import Cancel, Command, Move, Pause, Resume, Retry, StopAsked
from core.words import Status
from sessions.store import SessionStore
from tests.cli.deck import processes_with
from tests.sweep.live import Gated, Live, screened, store_of


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    """Blocks 1, 2, 4 and 8 score 131, 121, 101 and 141; the workspace holds 1, the screening of 2 waits."""
    gated = Gated(tmp_path / "knobs", "[ $block$mode = 2dev ]")
    yield gated
    gated.close()


def live(work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await work()

    asyncio.run(whole())


def told(sweep: Live, kind: type) -> list[Any]:
    return [event for event in sweep.events if isinstance(event, kind)]


def test_a_pause_lets_the_trial_end_and_the_next_one_wait(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        assert await sweep.ask(Pause("tui")) == ""
        assert await sweep.ask(Pause("cli")) == "the sweep is paused already, by tui"
        gated.let_go()
        await sweep.until(lambda _: len(told(sweep, CandidateScreened)) == 2)
        assert screened(gated.deck, 1) == [("start", "ok"), (2, "ok")]
        assert await sweep.ask(Resume("tui")) == ""
        answer = await sweep.answer()
        assert answer["winner"]["config"]["block"] == 4
        assert (told(sweep, SweepPaused), told(sweep, SweepResumed)) == (
            [SweepPaused(1, "tui")],
            [SweepResumed(1, "tui")],
        )

    live(work)


def test_a_cancelled_trial_ends_at_once_and_the_sweep_goes_on(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        running = gated.candidate(2)
        assert await sweep.ask(Cancel(running, "tui")) == ""
        answer = await sweep.answer()
        assert screened(gated.deck, 1) == [("start", "ok"), (2, "cancelled"), (4, "ok"), (8, "ok")]
        assert answer["screened"] == {"ok": 3, "cancelled": 1}
        assert answer["winner"]["config"]["block"] == 4 and answer["exit_code"] == 0
        assert CandidateScreened(1, running, Status.CANCELLED) in sweep.events

    live(work)
    assert processes_with(str(gated.deck.root)) == []


def test_waiting_candidates_are_moved_dropped_and_taken_back(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        four, eight = gated.candidate(4), gated.candidate(8)
        for command in (Move(eight, -1, "tui"), Cancel(four, "tui"), Retry(four, "tui"), Cancel(four, "tui")):
            assert await sweep.ask(command) == ""
        assert await sweep.ask(Move(four, 1, "tui")) == (
            f"{four[:12]} is cancelled; only waiting candidates can be moved"
        )
        gated.let_go()
        answer = await sweep.answer()
        assert screened(gated.deck, 1) == [("start", "ok"), (2, "ok"), (8, "ok")]
        assert answer["winner"]["config"]["block"] == 2
        assert told(sweep, CandidateMoved) == [CandidateMoved(1, eight, 0)]
        assert told(sweep, CandidateRequeued) == [CandidateRequeued(1, four, Status.CANCELLED, 1)]

    live(work)


def test_a_stop_ends_the_trial_and_reports_what_there_is(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        assert await sweep.ask(StopAsked("stopped by tui", "tui")) == ""
        answer = await sweep.answer()
        assert (answer["outcome"], answer["reason"]) == ("stopped", "stopped by tui")
        assert answer["exit_code"] == 130 and answer["screened"] == {"ok": 1}
        assert await sweep.ask(Resume("tui")) == HAS_ENDED
        with store_of(gated.deck) as store:
            assert store.running_sweeps() == [] and store.running_trials() == []

    live(work)
    assert processes_with(str(gated.deck.root)) == []


def test_a_comparison_is_cancelled_and_the_next_finalist_has_its_turn(tmp_path: Path) -> None:
    # Block 4, the leader, waits only in the deciding mode: in its comparison with the best.
    gated = Gated(tmp_path / "knobs", '[ $block = 4 ] && [ "$mode" = final ]')

    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        four = ""
        await sweep.until(lambda _: any(one.trial.overlay.get("block") == 4 and one.trial.purpose == "gate"
                                        for one in sweep.began()))  # fmt: skip
        four = gated.candidate(4)
        assert await sweep.ask(Cancel(four, "tui")) == ""
        answer = await sweep.answer()
        first, second = answer["confirmations"]
        assert (first["candidate"], first["verdict"], first["reason"]) == (four, None, "cancelled")
        assert second["accepted"] and answer["winner"]["config"]["block"] == 2

    live(work)
    gated.close()


def test_commands_that_come_together_are_answered_in_their_order(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        asked: list[Command] = [
            Pause("tui"),
            Pause("cli"),
            Resume("cli"),
            Resume("tui"),
            Cancel("nobody", "mcp"),
        ]
        answers = await asyncio.gather(*(sweep.ask(command) for command in asked))
        assert answers == [
            "", "the sweep is paused already, by tui", "", "the sweep is not paused",
            "nobody is no candidate of this sweep",
        ]  # fmt: skip
        gated.let_go()
        assert (await sweep.answer())["outcome"] == "done"

    live(work)


@pytest.mark.parametrize("fault", [StorageFault, Busy], ids=["a full disk", "a locked database"])
def test_what_cannot_be_stored_refuses_the_command_and_not_the_sweep(
    gated: Gated, monkeypatch: pytest.MonkeyPatch, fault: type[KerneldeckError]
) -> None:
    def refuses(*_: object) -> None:
        raise fault("cannot store what happened in the sweep: so it is")

    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        with monkeypatch.context() as patched:
            patched.setattr(SessionStore, "add_sweep_events", refuses)
            said = await sweep.ask(Pause("tui"))
        assert said.startswith("cannot store what happened") and said.endswith(
            "the sweep goes on without this"
        )
        gated.let_go()
        answer = await sweep.answer()
        assert answer["outcome"] == "done" and told(sweep, SweepPaused) == []

    live(work)
