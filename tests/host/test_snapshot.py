"""The snapshot and what events make of it; values on the wire and back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from core import events as engine
from core.records import TrialRecord
from core.words import Status
from sessions.host import events as host
from sessions.host.codec import from_json
from sessions.host.event_log import MOST_WAITING, EventLog, Outbox
from sessions.host.events import Event, Numbered
from sessions.host.lines import line_of
from sessions.host.snapshot import ENDED_KEPT, Snapshot, fold

IDS = some.sampled_from(["aaaa", "bbbb", "cccc", "dddd"])
TEXTS = some.text(max_size=8)
SCORES = some.none() | some.floats(1, 100)
TRIALS = some.builds(
    TrialRecord, IDS, TEXTS, TEXTS, some.sampled_from(["screen", "gate"]), TEXTS, TEXTS,
    status=some.sampled_from(Status), score=SCORES, duration_s=SCORES,
    sweep_id=some.sampled_from([None, 1, 2]),
    overlay=some.dictionaries(TEXTS, some.integers() | TEXTS, max_size=2),
)  # fmt: skip
NUMBERS = some.integers(1, 3)
WORKS = some.builds(
    host.Work, NUMBERS, TEXTS, TEXTS, TEXTS, NUMBERS, NUMBERS, some.booleans(), some.floats(0, 9), some.none()
)
CLIENTS = some.builds(host.ClientView, NUMBERS, TEXTS, NUMBERS, TEXTS, some.floats(0, 9))
EVENTS: some.SearchStrategy[Event] = some.one_of(
    some.builds(engine.TrialBegan, TRIALS),
    some.builds(engine.TrialEnded, TRIALS),
    some.builds(engine.SweepBegan, NUMBERS, some.lists(IDS, unique=True).map(tuple), NUMBERS,
                some.just({"ok": 1}), TEXTS, some.booleans(), some.sampled_from(["", "cli"])),
    some.builds(engine.CandidateScreened, NUMBERS, IDS, some.sampled_from(Status), SCORES),
    some.builds(engine.CandidateMoved, NUMBERS, IDS, some.integers(0, 5)),
    some.builds(engine.CandidateRequeued, NUMBERS, IDS, some.sampled_from(Status), some.integers(0, 5)),
    some.builds(engine.SweepPaused, NUMBERS, TEXTS),
    some.builds(engine.SweepResumed, NUMBERS, TEXTS),
    some.builds(engine.SweepEnded, NUMBERS, some.sampled_from(["done", "stopped"]), TEXTS),
    some.builds(engine.SweepStep, TEXTS, NUMBERS, NUMBERS),
    some.builds(engine.GateStep, IDS, NUMBERS, NUMBERS, TEXTS),
    some.builds(engine.Note, TEXTS),
    some.builds(host.WorkAsked, WORKS),
    some.builds(host.WorkBegan, NUMBERS, some.floats(0, 9)),
    some.builds(host.WorkEnded, NUMBERS, TEXTS, NUMBERS, TEXTS),
    some.builds(host.WorkKept, NUMBERS),
    some.builds(host.TargetSeen, some.builds(host.TargetView, TEXTS, gpus=some.just((host.Gpu(0, "H200"),)))),
    some.builds(host.WorkspaceSeen, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS, some.booleans(),
                best=some.none() | some.builds(host.Best, IDS, SCORES, some.floats(0, 9))),
    some.builds(host.ClientCame, CLIENTS),
    some.builds(host.ClientLeft, NUMBERS),
    some.builds(host.HostLeaves, TEXTS),
)  # fmt: skip


def numbered(events: list[Event]) -> list[Numbered]:
    return [Numbered(seq, "cli", float(seq), event, seq % 2) for seq, event in enumerate(events, 1)]


@given(some.lists(EVENTS, max_size=30))
def test_every_order_of_events_makes_a_snapshot_that_the_wire_carries(events: list[Event]) -> None:
    here = there = Snapshot()
    for one in numbered(events):
        written = json.loads(json.dumps(one.to_json()))
        assert Numbered.from_json(written) == one
        line_of(one)
        here, there = fold(here, one), fold(there, Numbered.from_json(written))
    assert here == there == Snapshot.from_json(json.loads(json.dumps(here.to_json())))
    assert here.seq == len(events)
    if here.sweep is not None:
        assert len(set(here.sweep.waiting)) == len(here.sweep.waiting), "nobody waits twice"
        assert all(count > 0 for count in here.sweep.counts.values())


@given(some.lists(EVENTS, max_size=20), some.integers(0, 20))
def test_an_event_that_is_known_already_changes_nothing(events: list[Event], again: int) -> None:
    snapshot = Snapshot()
    for one in numbered(events):
        snapshot = fold(snapshot, one)
    for one in numbered(events)[:again]:
        assert fold(snapshot, one) is snapshot


def folded(*events: Event) -> Snapshot:
    snapshot = Snapshot()
    for one in numbered(list(events)):
        snapshot = fold(snapshot, one)
    return snapshot


TRIAL = TrialRecord("bbbb", "k", "dev", "screen", "local", "cli", sweep_id=1)
BEGAN = engine.SweepBegan(1, ("aaaa", "bbbb", "cccc"), 4, {"ok": 1}, "cli", True)


def test_a_screening_trial_leaves_the_queue_and_its_score_counts() -> None:
    now = folded(BEGAN, engine.TrialBegan(TRIAL))
    assert now.sweep is not None and now.trial == TRIAL
    assert (now.sweep.running, now.sweep.waiting) == ("bbbb", ("aaaa", "cccc"))
    ended = replace(TRIAL, status=Status.OK, score=7.0, duration_s=2.0)
    screened = engine.CandidateScreened(1, "bbbb", Status.OK, 7.0)
    now = folded(BEGAN, engine.TrialBegan(TRIAL), engine.TrialEnded(ended), screened)
    assert now.sweep is not None and now.trial is None and now.ended == (ended,)
    assert (now.sweep.running, now.sweep.counts) == ("", {"ok": 2})
    assert (now.sweep.best_score, now.sweep.best_candidate) == (7.0, "bbbb")
    assert (now.sweep.timed, now.sweep.timed_s, now.sweep.timed_s2) == (1, 2.0, 4.0)


def test_higher_may_be_better() -> None:
    seen = host.WorkspaceSeen("w", "/w", "k", "tflops", "", False)
    scores = [
        engine.CandidateScreened(1, one, Status.OK, score) for one, score in (("aaaa", 5.0), ("bbbb", 9.0))
    ]
    now = folded(seen, BEGAN, *scores)
    assert now.sweep is not None and now.sweep.best_candidate == "bbbb"
    now = folded(replace(seen, lower_is_better=True), BEGAN, *scores)
    assert now.sweep is not None and now.sweep.best_candidate == "aaaa"


def test_moved_cancelled_and_retried_candidates_stand_where_they_should() -> None:
    moved = engine.CandidateMoved(1, "cccc", 0)
    dropped = engine.CandidateScreened(1, "aaaa", Status.CANCELLED)
    again = engine.CandidateRequeued(1, "aaaa", Status.CANCELLED, 1)
    for events, waiting, counts in (
        ([moved], ("cccc", "aaaa", "bbbb"), {"ok": 1}),
        ([moved, dropped], ("cccc", "bbbb"), {"ok": 1, "cancelled": 1}),
        ([moved, dropped, again], ("cccc", "aaaa", "bbbb"), {"ok": 1}),
    ):
        now = folded(BEGAN, *events)
        assert now.sweep is not None and (now.sweep.waiting, now.sweep.counts) == (waiting, counts)


def test_a_sweep_does_not_outlive_the_work_that_ran_it() -> None:
    """It failed before it could say so; but where the host leaves, the next one goes on with it."""
    work = host.Work(7, "sweep_kernel_config", "cli", "kerneldeck sweep config", 1, 1, True, 1.0, None)
    begun = (host.WorkAsked(work), host.WorkBegan(7, 2.0), BEGAN)
    failed = host.WorkEnded(7, "storage", 1, "the disk is full")
    now = folded(*begun, failed)
    assert now.sweep is not None and now.work is None
    assert (now.sweep.state, now.sweep.reason, now.sweep.ended_s) == ("FAILED", "the disk is full", 4.0)
    for others in ((host.HostLeaves("it was stopped"), failed), (replace(failed, receipt=8),)):
        now = folded(*begun, *others)
        assert now.sweep is not None and now.sweep.state == "RUN"


def test_only_the_last_ended_trials_are_kept() -> None:
    trials = [engine.TrialEnded(replace(TRIAL, id=number)) for number in range(ENDED_KEPT + 5)]
    ended = folded(*trials).ended
    assert len(ended) == ENDED_KEPT and ended[0].id == ENDED_KEPT + 4


@pytest.mark.parametrize(
    "written", [{}, {"seq": 1}, {"event": {"type": "Nothing"}}, {"event": None}, {"event": {}}]
)
def test_what_is_no_event_is_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no event"):
        Numbered.from_json(written)


@pytest.mark.parametrize("written", [None, [], {"number": "one"}, {"number": 1}])
def test_what_is_no_value_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="no ClientView"):
        from_json(host.ClientView, written)


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert from_json(host.ClientLeft, {"number": 3, "more": True}) == host.ClientLeft(3)


def test_too_many_events_give_way_to_a_snapshot_and_answers_do_not() -> None:

    async def sent() -> list[object]:
        log = EventLog(Snapshot())
        outbox = Outbox(lambda: log.snapshot)
        log.watch(outbox, 0)
        outbox.put({"re": 1, "answer": {}})
        for number in range(MOST_WAITING + 2):
            log.tell(engine.Note(str(number)))
        got: list[object] = [await outbox.next(), await outbox.next()]
        log.tell(engine.Note("later"))
        return [*got, await outbox.next()]

    answer, snapshot, later = asyncio.run(sent())
    assert answer == {"re": 1, "answer": {}}
    assert isinstance(snapshot, dict) and snapshot["snapshot"]["last"] == str(MOST_WAITING + 1)
    assert isinstance(later, dict) and later["event"]["text"] == "later"


def test_of_telemetry_only_the_newest_is_sent() -> None:

    async def sent() -> list[object]:
        log = EventLog(Snapshot())
        outbox = Outbox(lambda: log.snapshot)
        log.watch(outbox, 0)
        for number in range(3):
            log.tell(host.TargetSeen(host.TargetView(rtt_ms=float(number))))
            log.tell(engine.Note(str(number)))
        return [await outbox.next() for _ in range(4)]

    told = [item["event"] for item in asyncio.run(sent()) if isinstance(item, dict)]
    assert [event["type"] for event in told] == ["Note", "Note", "TargetSeen", "Note"]
    assert told[2]["target"]["rtt_ms"] == 2
