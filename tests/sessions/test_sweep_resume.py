"""A sweep whose process has gone goes on from its rows: each trial counted once, the same report."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import ArgumentFault, ChangedMeanwhile
from core.events import CandidateScreened, Event, GateStep, SweepBegan, TrialEnded
from core.records import Candidate
from core.sweep.executor import SweepExecutor
from core.sweep.plan import Cancel, Pause, Resume
from sessions.binding import call, declared
from sessions.gc import reachable_blobs
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot, fold
from sessions.session import Caller, open_session
from sessions.state_dir import locate
from sessions.store import open_write
from tests.sweep.live import Gated, Live, ended, screened, store_of

Work = Callable[[], Awaitable[None]]


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    """Blocks 1, 2, 4 and 8 score 131, 121, 101 and 141; the workspace holds 1, the screening of 4 waits."""
    gated = Gated(tmp_path / "knobs", "[ $block$mode = 4dev ]")
    yield gated
    gated.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of the same sweep, never cut off."""
    gated = Gated(tmp_path_factory.mktemp("whole") / "knobs", "false")
    try:
        return run(gated, "sweep_kernel_config")
    finally:
        gated.close()


def live(work: Work) -> None:
    async def whole() -> None:
        await work()

    asyncio.run(whole())


def run(gated: Gated, operation: str, **arguments: object) -> dict[str, Any]:
    """The answer of a call that runs a sweep to its end."""

    async def whole() -> dict[str, Any]:
        sweep = Live(gated.deck)
        sweep.start(operation, **arguments)
        return await sweep.answer()

    return asyncio.run(whole())


def cut_off_in_screening(gated: Gated) -> None:
    """A sweep whose process goes while block 4 is screened."""

    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(4)
        await sweep.cut_off()

    live(work)


IDS = {"candidate": "", "best": "", "decision": 0, "trial": 0}  # which row it is, and what the test laid out


def told_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What of an answer does not depend on how often its process went."""
    same = (
        "outcome", "reason", "how", "seed", "mode", "metric", "unit", "screened", "kept", "unwritten",
        "exit_code",
    )  # fmt: skip
    return {name: answer[name] for name in same} | {
        "leaders": [row | IDS for row in answer["leaders"]],
        "gates": [gate | IDS for gate in answer["confirmations"]],
        "gate": answer["gate"] | IDS,
        "winner": answer["winner"] | IDS,
        "baseline": answer["baseline"]["outcome"],
    }


def counted(gated: Gated, sweep_id: int = 1) -> Counter[object]:
    """How many screening trials of each candidate say something of it."""
    return Counter(block for block, status in screened(gated.deck, sweep_id) if status != "cancelled")


ONCE = Counter({"start": 1, 2: 1, 4: 1, 8: 1})


def test_it_goes_on_where_it_was_cut_off_and_tells_the_same(
    gated: Gated, undisturbed: dict[str, Any]
) -> None:
    cut_off_in_screening(gated)
    with store_of(gated.deck) as store:
        assert [sweep.state for sweep in store.sweeps()] == ["running"]
    gated.let_go()
    answer = run(gated, "resume_sweep")
    assert told_of(answer) == told_of(undisturbed)
    assert screened(gated.deck, 1) == [("start", "ok"), (2, "ok"), (4, "cancelled"), (4, "ok"), (8, "ok")]
    assert '"block": 4' in gated.deck.read("config.json")


def test_whoever_watches_it_go_on_sees_what_scored_best_before(gated: Gated) -> None:
    cut_off_in_screening(gated)
    two = gated.candidate(2)

    events: list[Event] = []

    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start("resume_sweep")
        await sweep.until_screening(4)
        events.extend(sweep.events)
        await sweep.cut_off()

    live(work)
    began = next(event for event in events if isinstance(event, SweepBegan))
    seen = fold(Snapshot(), Numbered(1, "test", 0.0, began)).sweep
    assert seen is not None and (seen.best_score, seen.best_candidate) == (121, two)


def ended_screen(event: Event) -> bool:
    return isinstance(event, TrialEnded) and event.trial.purpose == "screen"


def gate_step(event: Event) -> bool:
    return isinstance(event, GateStep)


@pytest.mark.parametrize("at", [ended_screen, gate_step])
def test_processes_that_go_after_every_step_count_each_trial_once(
    tmp_path: Path, undisturbed: dict[str, Any], at: Callable[[Event], bool]
) -> None:
    """Each process does one step and goes before the sweep has heard of it."""
    gated = Gated(tmp_path / "knobs", "false")
    answers: list[dict[str, Any]] = []
    processes = 0

    async def one_process() -> None:
        sweep = Live(gated.deck)
        sweep.start("resume_sweep" if processes else "sweep_kernel_config")
        whole = asyncio.ensure_future(sweep.answer())
        step = asyncio.ensure_future(sweep.until(lambda events: any(map(at, events))))
        await asyncio.wait({whole, step}, return_when=asyncio.FIRST_COMPLETED)
        if whole.done():
            answers.append(whole.result())
            step.cancel()
        else:
            whole.cancel()
            await sweep.cut_off()

    while not answers:
        live(one_process)
        processes += 1
    gated.close()
    assert told_of(answers[0]) == told_of(undisturbed)
    assert screened(gated.deck, 1) == [("start", "ok"), (2, "ok"), (4, "ok"), (8, "ok")]
    assert processes == {ended_screen: 5, gate_step: 3}[at]


def test_a_paused_sweep_goes_on_paused_with_its_order(gated: Gated) -> None:
    async def first() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(4)
        assert await sweep.ask(Pause("tui")) == ""
        await sweep.cut_off()

    async def second() -> None:
        sweep = Live(gated.deck)
        sweep.start("resume_sweep")
        await sweep.until(lambda events: any(isinstance(one, SweepBegan) for one in events))
        (began,) = (one for one in sweep.events if isinstance(one, SweepBegan))
        assert (began.paused_by, began.detached, len(began.waiting)) == ("tui", True, 2)
        assert began.counts == {"ok": 2}
        # What was cut off runs to its end, as it would have; nothing behind it.
        gated.let_go()
        await sweep.until(lambda events: any(isinstance(one, CandidateScreened) for one in events))
        assert counted(gated) == Counter({"start": 1, 2: 1, 4: 1})
        assert await sweep.ask(Resume("cli")) == ""
        assert (await sweep.answer())["kept"]

    live(first)
    live(second)
    assert counted(gated) == ONCE


def test_commands_outlive_the_process(gated: Gated) -> None:
    async def first() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(4)
        assert await sweep.ask(Cancel(gated.candidate(8), "tui")) == ""
        await sweep.cut_off()

    live(first)
    gated.let_go()
    answer = run(gated, "resume_sweep")
    assert answer["screened"] == {"ok": 3, "cancelled": 1}
    assert counted(gated) == Counter({"start": 1, 2: 1, 4: 1})


def test_a_cancelled_trial_is_not_run_again(gated: Gated) -> None:
    """Its process goes after the command was heard and before the trial has ended for it."""

    async def first() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(4)
        assert await sweep.ask(Cancel(gated.candidate(4), "tui")) == ""
        await sweep.cut_off()

    live(first)
    answer = run(gated, "resume_sweep")
    assert counted(gated) == Counter({"start": 1, 2: 1, 8: 1})
    assert answer["winner"]["config"]["block"] == 2


def test_a_sweep_of_a_command_ends_with_it(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck, detached=False)
        sweep.start()
        await sweep.until_screening(4)
        await sweep.cut_off()

    live(work)
    with store_of(gated.deck) as store:
        (sweep,) = store.sweeps()
    assert (sweep.state, sweep.summary["reason"]) == ("stopped", "interrupted")
    assert run(gated, "resume_sweep")["outcome"] == "stopped", "it is only reported"
    assert counted(gated) == Counter({"start": 1, 2: 1})


def test_a_command_that_goes_while_its_winner_is_kept_has_kept_it(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = SweepExecutor._written

    async def work() -> None:
        sweep = Live(gated.deck, detached=False)
        gone: list[asyncio.Task[None]] = []

        def going(executor: SweepExecutor, winner: Candidate) -> str:
            if not gone:
                gone.append(asyncio.create_task(sweep.cut_off()))
            return written(executor, winner)

        monkeypatch.setattr(SweepExecutor, "_written", going)
        sweep.start()
        await sweep.until(ended)
        await gone[0]

    gated.let_go()
    live(work)
    with store_of(gated.deck) as store:
        (sweep,) = store.sweeps()
        assert (sweep.state, sweep.summary["reason"]) == ("done", "kept")
        assert len(store.best_history()) == 2, "the first best and the winner"
    assert '"block": 4' in gated.deck.read("config.json")


def test_one_that_became_detached_while_it_ran_goes_on(gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck, detached=False)
        sweep.start()
        await sweep.until_screening(4)
        with open_write(locate(gated.deck.root)) as store:
            (record,) = store.running_sweeps()
            store.update_sweep(replace(record, detached=True))
        await sweep.cut_off()

    live(work)
    gated.let_go()
    assert run(gated, "resume_sweep")["kept"]
    assert counted(gated) == ONCE


def test_an_ended_sweep_is_reported_again(gated: Gated) -> None:
    gated.let_go()
    answer = run(gated, "sweep_kernel_config")
    trials = len(screened(gated.deck, 1))
    assert run(gated, "resume_sweep", sweep=1) == answer
    assert run(gated, "resume_sweep") == answer
    assert len(screened(gated.deck, 1)) == trials
    with pytest.raises(ArgumentFault, match="there is no sweep 9"):
        run(gated, "resume_sweep", sweep=9)


def edit(gated: Gated) -> None:
    gated.deck.config(block=8, warps=2)


def change_contract(gated: Gated) -> None:
    toml = gated.deck.read("kerneldeck.toml")
    gated.deck.write("kerneldeck.toml", toml.replace('benchmark.sh", "dev"', 'benchmark.sh", "dev", "now"'))


def find_a_better_one(gated: Gated) -> None:
    config = gated.deck.read("config.json")
    gated.deck.config(block=4, warps=1)
    answer = asyncio.run(call(declared("guarded_final_verify"), {}, gated.deck.root, Caller("test"), _ignore))
    assert answer.content["outcome"] == "kept"
    gated.deck.write("config.json", config)


def spoil_the_record(gated: Gated) -> None:
    with open_write(locate(gated.deck.root)) as store:
        (record,) = store.running_sweeps()
        store.update_sweep(
            replace(record, plan={**record.plan, "machine": {"finalists": 2, "colour": "blue"}})
        )


def _ignore(_: Event) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edit, "the workspace was edited since: config.json"),
        (change_contract, "its contract is another now"),
        (find_a_better_one, "another best stands now"),
        (spoil_the_record, "its record cannot be read"),
    ],
)
def test_it_does_not_go_on_where_what_it_rests_on_has_changed(
    gated: Gated, change: Callable[[Gated], None], reason: str
) -> None:
    cut_off_in_screening(gated)
    change(gated)
    before = screened(gated.deck, 1)
    with pytest.raises(ChangedMeanwhile, match=f"sweep 1 cannot go on and is stopped: {reason}"):
        run(gated, "resume_sweep")
    with store_of(gated.deck) as store:
        (sweep,) = store.sweeps()
    assert sweep.state == "stopped" and sweep.ended_s is not None
    assert screened(gated.deck, 1) == before


def test_it_goes_on_only_on_its_target(gated: Gated) -> None:
    cut_off_in_screening(gated)
    with open_write(locate(gated.deck.root)) as store:
        (record,) = store.running_sweeps()
        store.update_sweep(replace(record, target="ssh:gpu1"))
    with pytest.raises(ArgumentFault, match="runs on ssh:gpu1, and this is local") as refused:
        run(gated, "resume_sweep")
    assert refused.value.hint == "name it: --target ssh:gpu1"
    with store_of(gated.deck) as store:
        assert [sweep.state for sweep in store.sweeps()] == ["running"], "nothing is lost by the wrong word"


def test_the_next_command_leaves_a_detached_sweep_on_record(gated: Gated) -> None:
    cut_off_in_screening(gated)
    notes: list[Event] = []
    with open_session(gated.deck.root, Caller("test"), notes.append) as session:
        assert [sweep.id for sweep in session.store.running_sweeps()] == [1]
        kept = reachable_blobs(session.store)
        candidates = (
            session.store.candidate(one) for one in session.store.running_sweeps()[0].plan["candidates"]
        )
        assert {v.sha256 for one in candidates if one for v in one.files.values()} <= kept
    gated.let_go()
    assert run(gated, "resume_sweep", sweep=1)["kept"]


def test_a_kept_winner_is_not_kept_twice(gated: Gated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process goes after the winner is the best, and before that is written or heard."""

    def gone(*_: object) -> None:
        raise SystemExit

    gated.let_go()
    with monkeypatch.context() as patched, pytest.raises(SystemExit):
        patched.setattr(SweepExecutor, "_written", gone)
        run(gated, "sweep_kernel_config")
    assert '"block": 1' in gated.deck.read("config.json")
    answer = run(gated, "resume_sweep")
    assert answer["kept"] and answer["unwritten"] == ""
    assert '"block": 4' in gated.deck.read("config.json")
    with store_of(gated.deck) as store:
        assert len(store.best_history()) == 2, "the first best and the winner"
