"""Collection keeps to its quotas and away from what must stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.records import Candidate, Checkpoint, DecisionRecord, FileVersion, TrialRecord
from core.words import Status
from sessions.gc import KEPT_WRITES, Quotas, collect
from sessions.journal import JournaledFiles
from sessions.store import SessionStore

CONTRACT = "contract-1"
FIRST = Candidate({"kernel.py": FileVersion("0" * 64)}, {"block": 0})
TRIAL = TrialRecord(FIRST.id, CONTRACT, "dev", "screen", "local", "cli")
OUTPUT_BYTES = 10_000
NOTHING = Quotas(0, 0, 0)


def trial(store: SessionStore, decision_id: int | None = None, ended: bool = True) -> int:
    """A stored trial with a result and 10 kB of output."""
    started = store.begin_trial(TRIAL)
    if ended:
        store.end_trial(started.ended(Status.OK, score=1.0, decision_id=decision_id), {"samples": [1] * 10})
    store.place.output_of(started.id).mkdir()
    (store.place.output_of(started.id) / "stdout").write_bytes(b"x" * OUTPUT_BYTES)
    return started.id


def checkpoint(store: SessionStore, content: bytes, trial_id: int | None = None) -> Checkpoint:
    files = {"kernel.py": FileVersion(store.blobs.put(content))}
    return Checkpoint(Candidate(files).id, CONTRACT, files, {}, 1.0, trial_id)


def decision(store: SessionStore, candidate_id: str, best_id: str) -> int:
    record = DecisionRecord(
        CONTRACT, candidate_id, best_id, "verify", "local", "same", None, 2, {}, [], 1, 1.0, "cli"
    )
    return store.add_decision(record).id


def with_samples(store: SessionStore) -> list[int]:
    """Trials that still have both result and output."""
    found = [one.id for one in store.trials(1000) if store.result(one.id) is not None]
    outputs = {int(folder.name) for folder in store.place.outputs.iterdir()}
    return sorted(outputs & set(found))


def aged(path: Path, age: int) -> Path:
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def test_the_oldest_samples_go_until_the_quota_holds(store: SessionStore) -> None:
    trials = [trial(store) for _ in range(5)]
    report = collect(store, Quotas(samples_bytes=2 * OUTPUT_BYTES + 1000))
    assert with_samples(store) == trials[-2:]
    assert report.samples.removed == 3
    assert report.samples.freed_bytes == report.freed_bytes > 3 * OUTPUT_BYTES
    assert report.samples.after_bytes == report.samples.before_bytes - report.samples.freed_bytes
    assert report.samples.after_bytes <= 2 * OUTPUT_BYTES + 1000
    assert [one.id for one in store.trials()] == trials[::-1]
    assert store.result(trials[0]) is None


def test_a_dry_run_tells_the_same_and_removes_nothing(store: SessionStore) -> None:
    trials = [trial(store) for _ in range(3)]
    store.blobs.put(b"unused")
    (store.place.staging / "left").mkdir()
    told = collect(store, NOTHING, dry_run=True)
    assert with_samples(store) == trials
    done = collect(store, NOTHING)
    assert (done.samples, done.blobs, done.staging) == (told.samples, told.blobs, told.staging)
    assert told.dry_run and not done.dry_run
    assert with_samples(store) == []
    assert collect(store, NOTHING).freed_bytes == 0


def test_without_a_quota_nothing_goes(store: SessionStore) -> None:
    trials = [trial(store)]
    unused = store.blobs.put(b"unused")
    assert collect(store, Quotas()).freed_bytes == 0
    assert with_samples(store) == trials
    assert store.blobs.has(unused)


def test_samples_behind_a_checkpoint_or_its_decisions_stay(store: SessionStore) -> None:
    evidence = trial(store)
    kept = checkpoint(store, b"best", evidence)
    store.keep(kept, None)
    as_best = trial(store, decision(store, "f" * 64, kept.id))
    as_candidate = trial(store, decision(store, kept.id, "e" * 64))
    trial(store, decision(store, "f" * 64, "e" * 64))
    running = trial(store, ended=False)
    trial(store)
    report = collect(store, NOTHING)
    assert with_samples(store) == [evidence, as_best, as_candidate]
    assert store.place.output_of(running).exists()
    assert report.samples.removed == 2
    assert report.samples.protected_bytes == report.samples.after_bytes


def test_output_of_a_trial_that_is_not_known_goes(store: SessionStore) -> None:
    (store.place.outputs / "77").mkdir()
    (store.place.outputs / "77" / "stdout").write_bytes(b"x" * 100)
    assert collect(store, NOTHING).samples.freed_bytes == 100
    assert list(store.place.outputs.iterdir()) == []


def test_the_oldest_unreachable_blobs_go(store: SessionStore) -> None:
    names = [store.blobs.put(bytes([number]) * 100) for number in range(4)]
    for age, name in enumerate(reversed(names)):
        aged(store.blobs.path(name), age)
    report = collect(store, Quotas(blobs_bytes=200))
    assert [store.blobs.has(name) for name in names] == [False, False, True, True]
    assert (report.blobs.freed_bytes, report.blobs.after_bytes) == (200, 200)


def test_blobs_that_something_rests_on_stay(store: SessionStore, files: JournaledFiles, root: Path) -> None:
    kept = checkpoint(store, b"best")
    store.keep(kept, None)
    sealed = store.blobs.put(b"benchmark")
    store.put_seal({"benchmark.py": FileVersion(sealed)})
    store.put_seal({})
    before = files.current()
    files.write({"kernel.py": FileVersion(store.blobs.put(b"applied"))}, {}, "apply")
    store.begin_write(files.current(), {"kernel.py": FileVersion(store.blobs.put(b"on its way"))}, "apply")
    unused = store.blobs.put(b"unused")
    report = collect(store, NOTHING)
    assert not store.blobs.has(unused)
    assert report.blobs.removed == 1
    assert {store.blobs.get(sha256) for sha256 in store.blobs.all()} == {
        b"best", b"benchmark", b"old kernel", b"{}", b"applied", b"on its way",
    }  # fmt: skip
    assert set(before) == {"kernel.py", "config.json"}


def test_what_was_replaced_long_ago_may_go(store: SessionStore) -> None:
    old = {"kernel.py": FileVersion(store.blobs.put(b"long ago"))}
    store.end_write(store.begin_write(old, {}, "first"), "done")
    for number in range(KEPT_WRITES):
        assert collect(store, NOTHING).blobs.removed == 0, number
        store.end_write(store.begin_write({}, {}, "later"), "done")
    assert collect(store, NOTHING).blobs.removed == 1


@pytest.mark.parametrize("area", ["staging", "linked"])
def test_the_oldest_staging_folders_and_linked_copies_go(store: SessionStore, area: str) -> None:
    folder = getattr(store.place, area)
    for name, age in (("new", 1), ("old", 2)):
        (folder / name).mkdir()
        (folder / name / "file").write_bytes(b"x" * 100)
        aged(folder / name, age)
    report = collect(store, Quotas(staging_bytes=150))
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert (report.staging.freed_bytes, report.staging.after_bytes) == (100, 100)


def test_removed_results_give_their_room_back(store: SessionStore) -> None:
    for _ in range(3):
        started = store.begin_trial(TRIAL)
        noise = os.urandom(200_000).hex()
        store.end_trial(started.ended(Status.OK), {"noise": noise})
    store.database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = store.place.database.stat().st_size
    collect(store, NOTHING)
    store.database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert store.place.database.stat().st_size < before / 2
