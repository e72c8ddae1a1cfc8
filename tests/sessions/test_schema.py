"""What is done with a state file that is older, newer, or none of ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from core.errors import SchemaFault, StorageFault
from core.records import Candidate, SweepRecord, TrialNote, TrialRecord
from core.words import Status
from sessions import schema
from sessions.state_dir import StatePlace, create
from sessions.store import open_read, open_write

LIFTED = ("ALTER TABLE contracts ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'",)
NEWEST = len(schema.MIGRATIONS)
BROKEN = ("ALTER TABLE contracts ADD COLUMN colour TEXT", "ALTER TABLE absent ADD COLUMN colour TEXT")


@pytest.fixture
def older(place: StatePlace, monkeypatch: pytest.MonkeyPatch) -> StatePlace:
    """A state of the version before the newest."""
    with open_write(place) as store:
        store.put_contract("c", {"a": 1})
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, LIFTED))
    return place


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def test_an_older_file_is_lifted_and_kept_beside(older: StatePlace) -> None:
    with open_write(older) as store:
        (row,) = store.database.rows("SELECT id, colour FROM contracts")
        assert tuple(row) == ("c", "blue")
    assert version(older.database) == NEWEST + 1
    before = older.database.with_name(f"state.sqlite3.v{NEWEST}")
    assert version(before) == NEWEST
    connection = sqlite3.connect(before)
    assert connection.execute("SELECT id FROM contracts").fetchall() == [("c",)]
    connection.close()


def test_a_reader_lifts_an_older_file_in_memory_only(older: StatePlace) -> None:
    before = older.database.read_bytes()
    reading = open_read(older)
    assert reading is not None
    with reading:
        (row,) = reading.database.rows("SELECT colour FROM contracts")
        assert row["colour"] == "blue"
    assert older.database.read_bytes() == before
    assert version(older.database) == NEWEST


def test_a_sweep_of_the_first_version_is_one_of_a_command(
    place: StatePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as first:
        first.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        with open_write(place) as store, store.database.transaction("test") as connection:
            connection.execute("INSERT INTO contracts VALUES ('c', '{}', 1.0)")
            connection.execute("INSERT INTO sweeps VALUES (7, 'c', '{}', 'cli', 1.0, 'running', '{}', NULL)")
    with open_write(place) as store:
        assert store.running_sweeps() == [SweepRecord({}, "c", "cli", 1.0, id=7)]
        assert store.sweep_events(7) == []
    assert version(place.database) == NEWEST


@pytest.mark.parametrize("opened", [open_write, open_read])
def test_the_records_of_an_older_version_can_be_noted_and_compared_with(
    place: StatePlace, monkeypatch: pytest.MonkeyPatch, opened: object
) -> None:
    with monkeypatch.context() as second:
        second.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        with open_write(place) as store:
            store.put_contract("c", {})
            store.add_candidate(Candidate({}, {}))
            trial = TrialRecord(Candidate({}, {}).id, "c", "dev", "run", "local", "cli")
            begun = store.begin_trial(trial)
            store.end_trial(begun.ended(Status.OK, score=7.0), None)
    with opened(place) as store:  # type: ignore[operator]
        assert store.note(1) == TrialNote() and store.baseline("c") is None
    if opened is open_read:
        assert version(place.database) == 2
        return
    with open_write(place) as store:
        store.set_baseline("c", 1)
        store.put_note(1, TrialNote("of long ago", ("old",)))
        found = store.baseline("c")
        assert found is not None and (found.trial_id, found.scores) == (1, {"dev": 7.0})
        assert store.note(1) == TrialNote("of long ago", ("old",))


def test_a_migration_that_fails_leaves_the_older_file(
    older: StatePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:NEWEST], BROKEN))
    with pytest.raises(sqlite3.OperationalError, match="absent"):
        open_write(older)
    assert version(older.database) == NEWEST
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:NEWEST], LIFTED))
    with open_write(older) as store:
        assert [contract.id for contract in store.contracts()] == ["c"]


@pytest.mark.parametrize("opened", [open_write, open_read])
def test_a_newer_file_is_refused_with_both_versions_and_what_to_do(place: StatePlace, opened: object) -> None:
    open_write(place).close()
    connection = sqlite3.connect(place.database)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    before = place.database.read_bytes()
    with pytest.raises(SchemaFault, match=rf"version 7, .* \(up to {len(schema.MIGRATIONS)}\)") as caught:
        opened(place)  # type: ignore[operator]
    assert "update Kerneldeck" in caught.value.hint
    assert caught.value.exit_code == 2
    assert place.database.read_bytes() == before


@pytest.mark.parametrize("opened", [open_write, open_read])
@pytest.mark.parametrize("content", [b"x", b"not a database " * 1000])
def test_a_file_that_is_no_database_is_never_overwritten(
    place: StatePlace, opened: object, content: bytes
) -> None:
    create(place)
    place.database.write_bytes(content)
    with pytest.raises(StorageFault, match="is not a SQLite database"):
        opened(place)  # type: ignore[operator]
    assert place.database.read_bytes() == content


@pytest.mark.parametrize("opened", [open_write, open_read])
def test_another_programs_database_is_left_alone(place: StatePlace, opened: object) -> None:
    create(place)
    connection = sqlite3.connect(place.database)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = place.database.read_bytes()
    with pytest.raises(StorageFault, match="another program"):
        opened(place)  # type: ignore[operator]
    assert place.database.read_bytes() == before


def test_a_damaged_file_is_said(place: StatePlace) -> None:
    open_write(place).close()
    whole = place.database.read_bytes()
    place.database.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
    with pytest.raises(StorageFault, match="damaged"):
        open_write(place)


def test_a_file_that_was_created_and_never_filled_is_new(place: StatePlace) -> None:
    create(place)
    place.database.touch()
    assert open_read(place) is None
    with open_write(place) as store:
        assert store.counts_by_status() == {}


def test_a_network_file_system_gets_the_rollback_journal(place: StatePlace) -> None:
    with open_write(place) as store:
        assert store.database.row("PRAGMA journal_mode")[0] == "wal"  # type: ignore[index]
    with open_write(StatePlace(place.workspace, place.folder, network=True)) as store:
        assert store.database.row("PRAGMA journal_mode")[0] == "delete"  # type: ignore[index]
        assert store.trials(status=Status.OK) == []
