"""The store as the engine and the readers see it."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from subprocess import Popen

import pytest

from core.errors import StorageFault
from core.measure.floor import Floor
from core.records import (
    Candidate,
    Checkpoint,
    DecisionRecord,
    FileVersion,
    OperationRecord,
    SweepRecord,
    TrialRecord,
)
from core.words import Status
from sessions.state_dir import StatePlace
from sessions.store import SessionStore, open_read, open_write

CONTRACT = "contract-1"
FIRST = Candidate({"kernel.py": FileVersion("0" * 64)}, {"block": 0})
TRIAL = TrialRecord(
    FIRST.id, CONTRACT, "dev", "screen", "local", "cli:anna", overlay={"block": 64, "fast": True}
)
DECISION = DecisionRecord(
    contract_id=CONTRACT, candidate_id=FIRST.id, best_id="b" * 64, purpose="verify", target="local",
    verdict="faster", gain=0.031, processes=4, outcome={"interval": [0.02, 0.04]},
    evidence=[{"d": -0.03, "a": 0.001}, {"d": -0.029, "a": -0.002}], seed=2**80 + 1, created_s=12.5,
    actor="cli:anna",
)  # fmt: skip


def checkpoint(store: SessionStore, content: bytes, **more: object) -> Checkpoint:
    files = {"kernel.py": FileVersion(store.blobs.put(content), True)}
    kept = Checkpoint(Candidate(files).id, CONTRACT, files, {"block": 64}, created_s=1.0)
    return replace(kept, **more)  # type: ignore[arg-type]


def ran(store: SessionStore, candidate: Candidate, score: float | None, mode: str = "dev") -> TrialRecord:
    store.add_candidate(candidate)
    started = store.begin_trial(
        replace(TRIAL, candidate_id=candidate.id, mode=mode, overlay=candidate.overlay)
    )
    ended = started.ended(Status.OK if score is not None else Status.CRASH, score=score)
    store.end_trial(ended, None)
    return ended


def numbered(number: int) -> Candidate:
    return Candidate({"kernel.py": FileVersion(f"{number:064x}")}, {"block": number})


def test_a_trial_comes_back_as_it_ended(store: SessionStore) -> None:
    started = store.begin_trial(TRIAL)
    assert store.trial(started.id) == started
    assert store.running_trials() == [started]
    result = {
        "cases": [{"name": "a", "samples": {"launch_us": {"blocks": [[1.5, 2.25]] * 100}}}],
        "x": "é\ud800",
    }
    ended = started.ended(
        Status.OK, score=3.25, duration_s=1.5, exit_code=0, channel="file", output_dir="/o", verifier=True
    )
    store.end_trial(ended, result)
    assert store.trial(started.id) == ended
    assert store.result(started.id) == result
    assert store.running_trials() == []


def test_a_trial_that_tells_no_time_starts_now(store: SessionStore) -> None:
    assert store.begin_trial(TRIAL).started_s > 1e9
    assert store.begin_trial(replace(TRIAL, started_s=7.0)).started_s == 7.0


def test_a_trial_ends_once_and_with_a_status(store: SessionStore) -> None:
    started = store.begin_trial(TRIAL)
    with pytest.raises(ValueError, match="no status"):
        store.end_trial(started, None)
    store.end_trial(started.ended(Status.OOM), {"n": 1})
    with pytest.raises(ValueError, match="not running"):
        store.end_trial(started.ended(Status.OK), {"n": 2})
    assert store.trials(1)[0].status is Status.OOM
    assert store.result(started.id) == {"n": 1}


def test_a_reason_with_an_undecodable_file_name_is_kept_escaped(store: SessionStore) -> None:
    started = store.begin_trial(TRIAL)
    store.end_trial(started.ended(Status.CRASH, "no \udcff.so"), None)
    assert store.trials(1)[0].reason == r"no \udcff.so"


def test_trials_are_found_by_what_they_are(store: SessionStore) -> None:
    first, second = numbered(1), numbered(2)
    sweep = store.add_sweep(SweepRecord({}, CONTRACT, "cli", 1.0))
    one = ran(store, first, 5.0)
    two = ran(store, second, None)
    three = ran(store, first, 4.0, mode="final")
    four = store.begin_trial(replace(TRIAL, sweep_id=sweep.id))
    assert [trial.id for trial in store.trials()] == [four.id, three.id, two.id, one.id]
    assert [trial.id for trial in store.trials(2)] == [four.id, three.id]
    assert store.trials(mode="final") == [three]
    assert store.trials(status=Status.CRASH) == [two]
    assert store.trials(candidate_id=first.id, mode="dev") == [one]
    assert store.trials(sweep_id=sweep.id) == [four]
    assert store.trials(contract_id="another") == []
    assert store.counts_by_status() == {Status.OK: 2, Status.CRASH: 1, None: 1}
    assert store.counts_by_status("another") == {}


def test_contracts_and_candidates_keep_their_first_description(store: SessionStore) -> None:
    store.put_contract(CONTRACT, {"objective": "other"})
    found = store.contract(CONTRACT)
    assert found is not None and found.description == {"objective": "total_us"}
    assert store.contract("another") is None
    odd = Candidate({"a b\n'\udcff-": FileVersion("1" * 64, True)}, {"block": 3})
    store.add_candidate(odd)
    store.add_candidate(odd)
    assert store.candidate(odd.id) == odd
    assert store.candidate("f" * 64) is None
    assert store.candidate_ids(odd.id[:8]) == [odd.id]
    assert store.candidate_ids("") == sorted([odd.id, FIRST.id])


def test_seals_are_a_history(store: SessionStore) -> None:
    assert store.seal() is None
    store.put_seal({"benchmark.py": FileVersion("1" * 64)}, CONTRACT)
    newer = store.put_seal({"benchmark.py": FileVersion("2" * 64)}, "contract-2")
    assert store.seal() == newer
    assert [seal.contract_id for seal in store.seals()] == ["contract-2", CONTRACT]


def test_the_newest_kept_checkpoint_stands_and_the_earlier_stay_known(store: SessionStore) -> None:
    assert store.best(CONTRACT) is None
    decision = store.add_decision(DECISION)
    first, second = (
        checkpoint(store, b"1"),
        checkpoint(store, b"2", anchor=97.5, note="from a sweep", created_s=2.0),
    )
    store.keep(first, None)
    store.keep(second, decision.id)
    assert store.best(CONTRACT) == second
    store.keep(first, None)
    assert store.best(CONTRACT) == first
    assert store.best("another") is None
    assert store.checkpoints(CONTRACT) == [second, first]
    history = [(row.checkpoint_id, row.decision_id) for row in store.best_history(CONTRACT)]
    assert history == [(first.id, None), (second.id, decision.id), (first.id, None)]


def test_one_content_is_a_checkpoint_of_several_contracts(store: SessionStore) -> None:
    store.put_contract("contract-2", {})
    here = checkpoint(store, b"1")
    there = replace(here, contract_id="contract-2", created_s=9.0)
    store.keep(here, None)
    store.keep(there, None)
    assert store.checkpoint(here.id, CONTRACT) == here
    assert store.checkpoint(here.id) == there
    assert store.best(CONTRACT) == here


def test_keeping_again_adds_newer_evidence_only(store: SessionStore) -> None:
    trial = ran(store, FIRST, 1.0)
    kept = checkpoint(store, b"1", anchor=9.5, note="first", trial_id=trial.id)
    store.keep(kept, None)
    store.keep(replace(kept, anchor=None, note="", trial_id=None, created_s=99.0), None)
    assert store.best(CONTRACT) == kept
    store.keep(replace(kept, anchor=9.0), None)
    best = store.best(CONTRACT)
    assert best is not None and best.anchor == 9.0


def test_a_checkpoint_that_could_not_be_restored_is_never_kept(store: SessionStore) -> None:
    lost = checkpoint(store, b"1")
    store.blobs.remove(lost.files["kernel.py"].sha256)
    with pytest.raises(StorageFault, match="is not kept"):
        store.keep(lost, None)
    assert store.best(CONTRACT) is None
    assert store.checkpoints() == []


def test_anchor_values_are_the_last_twenty_newest_last(store: SessionStore) -> None:
    for value in range(25):
        store.add_anchor_value(CONTRACT, "a", float(value))
    store.add_anchor_value(CONTRACT, "b", 99.0)
    assert store.anchor_values(CONTRACT, "a") == [float(value) for value in range(5, 25)]
    assert store.anchor_values("another", "a") == []


def test_a_decision_comes_back_with_its_evidence_and_its_trials(store: SessionStore) -> None:
    trial = ran(store, FIRST, 1.0)
    stored = store.add_decision(DECISION, trials=[trial.id])
    assert stored == replace(DECISION, id=stored.id)
    assert store.decision(stored.id) == stored
    assert store.decisions(contract_id=CONTRACT) == [stored]
    assert store.decisions(contract_id="another") == []
    assert [found.id for found in store.trials(decision_id=stored.id)] == [trial.id]
    assert store.decision(stored.id + 1) is None


def test_a_floor_starts_as_the_engine_says_and_is_kept_by_its_key(store: SessionStore) -> None:
    assert store.floor("here") == Floor()
    store.put_floor("here", Floor(0.5, 7.5, 0.25, 3.0))
    store.put_floor("here", Floor(0.75, 8.5, 0.125, 4.0))
    assert store.floor("here") == Floor(0.75, 8.5, 0.125, 4.0)
    assert store.floor("there") == Floor()


def test_a_sweep_is_updated_in_place(store: SessionStore) -> None:
    sweep = store.add_sweep(SweepRecord({"seed": 5}, CONTRACT, "cli", 1.0))
    assert store.running_sweeps() == [sweep]
    done = replace(sweep, state="done", summary={"kept": True}, ended_s=9.0)
    store.update_sweep(done)
    assert store.sweep(sweep.id) == done
    assert store.sweeps() == [done]
    assert store.running_sweeps() == []
    with pytest.raises(ValueError, match="no sweep"):
        store.update_sweep(replace(sweep, id=77))


def test_operations_are_listed_newest_first(store: SessionStore) -> None:
    first = store.add_operation(OperationRecord("run_objective", "cli", {"mode": "dev"}, 1.0, 2.0, "done", 0))
    second = store.add_operation(OperationRecord("apply", "mcp", {}, 3.0, 0.1, "workspace.changed", 2))
    assert store.operations() == [second, first]
    assert store.operations(1) == [second]


def test_a_failing_write_leaves_nothing_of_itself(store: SessionStore) -> None:
    kept = checkpoint(store, b"1")
    with pytest.raises(Exception, match="FOREIGN KEY"):
        store.keep(kept, decision_id=77)
    assert store.checkpoints() == []


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_a_ranking_is_by_the_median_of_each_candidate(store: SessionStore, direction: str) -> None:
    order = random.Random(5)
    scores: dict[str, list[tuple[float, int]]] = {}
    with store.database.transaction("fill the history") as connection:
        for trial_id in range(1, 4001):
            candidate = numbered(order.randrange(300))
            score = float(order.randrange(200))
            ok, mode = order.random() < 0.8, order.choice(["dev", "final"])
            connection.execute("INSERT OR IGNORE INTO candidates VALUES (?, '{}', '{}')", (candidate.id,))
            connection.execute(
                "INSERT INTO trials VALUES (?, ?, ?, ?, 'screen', 'local', 'cli', 0, '{}', ?, '', '', ?, 1.0,"
                " NULL, NULL, '', '', NULL, NULL)",
                (trial_id, candidate.id, CONTRACT, mode, "ok" if ok else "crash", score),
            )
            if ok and mode == "dev":
                scores.setdefault(candidate.id, []).append((score, trial_id))
    sign = 1 if direction == "lower" else -1
    best = {name: min(found, key=lambda pair: (sign * pair[0], pair[1])) for name, found in scores.items()}
    median = {name: statistics.median(score for score, _ in found) for name, found in scores.items()}
    expected = sorted(best, key=lambda name: (sign * median[name], name))
    ranked = store.rank(CONTRACT, "dev", 50, direction)
    assert [(row.candidate_id, row.score, row.trial_id) for row in ranked] == [
        (name, *best[name]) for name in expected[:50]
    ]
    assert [(row.count, row.median) for row in ranked] == [
        (len(scores[name]), median[name]) for name in expected[:50]
    ]
    assert len(store.rank(CONTRACT, "dev", 10_000)) == len(scores)


def test_a_ranking_tells_the_best_trial(store: SessionStore) -> None:
    ran(store, numbered(1), 5.0)
    best = ran(store, numbered(1), 4.0)
    ran(store, numbered(1), None)
    (row,) = store.rank(CONTRACT, "dev")
    assert (row.trial_id, row.overlay, row.verifier, row.purpose) == (best.id, {"block": 1}, False, "screen")
    assert row.started_s == best.started_s
    assert store.rank(CONTRACT, "final") == []
    assert store.rank("another", "dev") == []


def test_reading_makes_no_state(place: StatePlace) -> None:
    assert open_read(place) is None
    assert not place.folder.exists()


WRITE_TRIALS = """
import sys
from dataclasses import replace
from pathlib import Path
from core.records import Candidate, FileVersion, TrialRecord
from core.words import Status
from sessions.state_dir import locate
from sessions.store import open_write
store = open_write(locate(Path(sys.argv[1])))
candidate = Candidate({"k": FileVersion("1" * 64)})
store.put_contract("c", {})
store.add_candidate(candidate)
for number in range(20):
    trial = store.begin_trial(TrialRecord(candidate.id, "c", "dev", "run", "local", "cli"))
    store.end_trial(trial.ended(Status.OK, score=float(number)), {"samples": [number] * 1000})
    with store.database.transaction("hold a write open") as connection:
        connection.execute("UPDATE trials SET reason = 'not committed yet'")
        print("ended", number, flush=True)
        sys.stdin.readline()
        connection.execute("UPDATE trials SET reason = ''")
"""


@pytest.mark.parametrize("network", ["0", "1"])
def test_readers_see_every_ended_trial_while_another_process_writes(
    place: StatePlace, start_python: Callable[..., Popen[str]], network: str
) -> None:
    writer = start_python(WRITE_TRIALS, place.workspace, KERNELDECK_ASSUME_NETWORK_FS=network)
    assert writer.stdin and writer.stdout
    for number in range(20):
        assert writer.stdout.readline() == f"ended {number}\n"
        reading = open_read(place)
        assert reading is not None
        with reading:
            assert reading.counts_by_status() == {Status.OK: number + 1}
            assert reading.rank("c", "dev")[0].score == 0.0
            assert reading.result(reading.trials(1)[0].id) == {"samples": [number] * 1000}
            assert reading.trials(1)[0].reason == ""
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert writer.wait(60) == 0


def test_a_reader_cannot_write(store: SessionStore, place: StatePlace) -> None:
    reading = open_read(place)
    assert reading is not None
    with reading, pytest.raises(StorageFault, match="read-only"):
        reading.begin_trial(TRIAL)
    assert store.trials() == []


@pytest.mark.parametrize("network", ["0", "1"])
def test_an_ended_trial_outlives_a_killed_writer(
    place: StatePlace, start_python: Callable[..., Popen[str]], network: str
) -> None:
    writer = start_python(WRITE_TRIALS, place.workspace, KERNELDECK_ASSUME_NETWORK_FS=network)
    assert writer.stdout
    assert writer.stdout.readline() == "ended 0\n"
    writer.kill()
    writer.wait(60)
    reading = open_read(place)
    assert reading is not None
    with reading:
        assert reading.counts_by_status() == {Status.OK: 1}
    with open_write(place) as store:
        assert store.trials(1)[0].reason == ""
