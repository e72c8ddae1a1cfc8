"""The tables of the state of record, and how an older version becomes the newest.

`MIGRATIONS[n]` lifts version n to n + 1; the file's `user_version` counts those applied. A migration
that was released is never edited: a change of the tables is a new entry.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from core.errors import SchemaFault, StorageFault
from sessions.faults import shown

APPLICATION_ID = 0x4B444B31  # marks a SQLite file as ours

_RECORDS = (
    "CREATE TABLE contracts (id TEXT PRIMARY KEY, description TEXT NOT NULL, created_s REAL NOT NULL)",
    "CREATE TABLE candidates (id TEXT PRIMARY KEY, files TEXT NOT NULL, overlay TEXT NOT NULL)",
    """CREATE TABLE sweeps (
        id INTEGER PRIMARY KEY,
        contract_id TEXT NOT NULL REFERENCES contracts(id),
        plan TEXT NOT NULL, actor TEXT NOT NULL, created_s REAL NOT NULL,
        state TEXT NOT NULL, summary TEXT NOT NULL, ended_s REAL)""",
    """CREATE TABLE decisions (
        id INTEGER PRIMARY KEY,
        contract_id TEXT NOT NULL REFERENCES contracts(id),
        candidate_id TEXT NOT NULL, best_id TEXT NOT NULL,
        purpose TEXT NOT NULL, target TEXT NOT NULL, verdict TEXT NOT NULL,
        gain REAL, processes INTEGER NOT NULL, outcome TEXT NOT NULL, evidence BLOB NOT NULL,
        seed TEXT NOT NULL, created_s REAL NOT NULL, actor TEXT NOT NULL,
        sweep_id INTEGER REFERENCES sweeps(id))""",
    """CREATE TABLE trials (
        id INTEGER PRIMARY KEY,
        candidate_id TEXT NOT NULL REFERENCES candidates(id),
        contract_id TEXT NOT NULL REFERENCES contracts(id),
        mode TEXT NOT NULL, purpose TEXT NOT NULL, target TEXT NOT NULL, actor TEXT NOT NULL,
        verifier INTEGER NOT NULL, overlay TEXT NOT NULL,
        status TEXT, reason TEXT NOT NULL, stage TEXT NOT NULL, score REAL,
        started_s REAL NOT NULL, duration_s REAL, exit_code INTEGER,
        channel TEXT NOT NULL, output_dir TEXT NOT NULL,
        sweep_id INTEGER REFERENCES sweeps(id), decision_id INTEGER REFERENCES decisions(id))""",
    # zlib-compressed JSON, raw samples inside; a table of its own keeps the trials narrow to walk.
    "CREATE TABLE results (trial_id INTEGER PRIMARY KEY REFERENCES trials(id), payload BLOB NOT NULL)",
    """CREATE TABLE checkpoints (
        id TEXT NOT NULL, contract_id TEXT NOT NULL REFERENCES contracts(id),
        files TEXT NOT NULL, overlay TEXT NOT NULL, created_s REAL NOT NULL,
        trial_id INTEGER REFERENCES trials(id), anchor REAL, note TEXT NOT NULL,
        PRIMARY KEY (contract_id, id))""",
    # The newest row of a contract stands; the older ones are its history.
    """CREATE TABLE bests (
        id INTEGER PRIMARY KEY,
        contract_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
        decision_id INTEGER REFERENCES decisions(id), since_s REAL NOT NULL,
        FOREIGN KEY (contract_id, checkpoint_id) REFERENCES checkpoints(contract_id, id))""",
)

_ASIDE = (
    """CREATE TABLE anchors (
        id INTEGER PRIMARY KEY, contract_id TEXT NOT NULL, checkpoint_id TEXT NOT NULL,
        value REAL NOT NULL, at_s REAL NOT NULL)""",
    """CREATE TABLE floors (
        key TEXT PRIMARY KEY, ss REAL NOT NULL, nu REAL NOT NULL, aa REAL NOT NULL, n_aa REAL NOT NULL,
        updated_s REAL NOT NULL)""",
    """CREATE TABLE journal (
        id INTEGER PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL,
        old TEXT NOT NULL, new TEXT NOT NULL, at_s REAL NOT NULL, ended_s REAL, note TEXT NOT NULL)""",
    """CREATE TABLE seals (
        id INTEGER PRIMARY KEY, contract_id TEXT NOT NULL, files TEXT NOT NULL, since_s REAL NOT NULL)""",
    """CREATE TABLE operations (
        id INTEGER PRIMARY KEY, operation TEXT NOT NULL, actor TEXT NOT NULL, arguments TEXT NOT NULL,
        started_s REAL NOT NULL, duration_s REAL NOT NULL, outcome TEXT NOT NULL,
        exit_code INTEGER NOT NULL)""",
    """CREATE TABLE holder (
        id INTEGER PRIMARY KEY CHECK (id = 1), description TEXT NOT NULL)""",
)

# Each candidate's standing in a ranking, kept by the triggers below: a ranking then reads as many rows as
# it shows, however long the history.
_STANDINGS = (
    """CREATE TABLE standings (
        contract_id TEXT NOT NULL, mode TEXT NOT NULL, candidate_id TEXT NOT NULL,
        median REAL NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (contract_id, mode, candidate_id)) WITHOUT ROWID""",
    "CREATE INDEX standings_ranked ON standings(contract_id, mode, median, candidate_id)",
)
_SAME = """contract_id = NEW.contract_id AND mode = NEW.mode AND candidate_id = NEW.candidate_id
            AND status = 'ok' AND score IS NOT NULL"""
_COUNTED = f"(SELECT COUNT(*) FROM trials WHERE {_SAME})"
_RESTAND = f"""
    WHEN NEW.status = 'ok' AND NEW.score IS NOT NULL BEGIN
        INSERT OR REPLACE INTO standings (contract_id, mode, candidate_id, median, count)
        SELECT NEW.contract_id, NEW.mode, NEW.candidate_id, AVG(score), {_COUNTED}
        FROM (SELECT score FROM trials WHERE {_SAME} ORDER BY score
              LIMIT 2 - {_COUNTED} % 2 OFFSET ({_COUNTED} - 1) / 2);
    END"""
_TRIGGERS = (
    f"CREATE TRIGGER trial_stored AFTER INSERT ON trials {_RESTAND}",
    f"CREATE TRIGGER trial_ended AFTER UPDATE OF status, score ON trials {_RESTAND}",
)

_INDEXES = (
    # A ranking reads this and nothing else of the trials; equal scores lie in the order of their ids.
    """CREATE INDEX trials_ranked ON trials(contract_id, mode, candidate_id, score)
        WHERE status = 'ok' AND score IS NOT NULL""",
    "CREATE INDEX trials_by_candidate ON trials(candidate_id)",
    "CREATE INDEX trials_by_status ON trials(status)",
    "CREATE INDEX trials_by_sweep ON trials(sweep_id) WHERE sweep_id IS NOT NULL",
    "CREATE INDEX trials_by_decision ON trials(decision_id) WHERE decision_id IS NOT NULL",
    "CREATE INDEX bests_by_contract ON bests(contract_id, id)",
    "CREATE INDEX checkpoints_by_id ON checkpoints(id)",
    "CREATE INDEX anchors_by_checkpoint ON anchors(contract_id, checkpoint_id, id)",
    "CREATE INDEX decisions_by_contract ON decisions(contract_id, id)",
    "CREATE INDEX sweeps_running ON sweeps(id) WHERE state = 'running'",
    "CREATE INDEX journal_unfinished ON journal(id) WHERE state = 'intent'",
)

# What happens in a sweep is stored before it counts, so that another process can go on with it.
_SWEEPS_GO_ON = (
    "ALTER TABLE sweeps ADD COLUMN target TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE sweeps ADD COLUMN detached INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE sweep_events (
        sweep_id INTEGER NOT NULL REFERENCES sweeps(id), number INTEGER NOT NULL,
        event TEXT NOT NULL, at_s REAL NOT NULL, PRIMARY KEY (sweep_id, number)) WITHOUT ROWID""",
)

# What people say of the records. A contract's newest baseline stands; without a trial it has none any more.
# Tags stand between blanks, so that one is found by ` tag `.
_ANNOTATIONS = (
    """CREATE TABLE baselines (
        id INTEGER PRIMARY KEY,
        contract_id TEXT NOT NULL REFERENCES contracts(id),
        trial_id INTEGER REFERENCES trials(id), since_s REAL NOT NULL)""",
    "CREATE INDEX baselines_by_contract ON baselines(contract_id, id)",
    """CREATE TABLE notes (
        trial_id INTEGER PRIMARY KEY REFERENCES trials(id),
        text TEXT NOT NULL, tags TEXT NOT NULL, at_s REAL NOT NULL)""",
)

Migration = Sequence[str]
MIGRATIONS: tuple[Migration, ...] = (
    (*_RECORDS, *_ASIDE, *_STANDINGS, *_INDEXES, *_TRIGGERS),
    _SWEEPS_GO_ON,
    _ANNOTATIONS,
)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of an open file; 0 for a new one.

    SchemaFault when it is newer than we know, StorageFault when it is another program's database.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    blank = application == 0 and version == 0 and not _has_tables(connection)
    if application != APPLICATION_ID and not blank:
        raise StorageFault(
            f"{shown(path)} is a SQLite database of another program",
            "move it away, or name another folder for the state with KERNELDECK_STATE_DIR",
        )
    if version > len(MIGRATIONS):
        raise SchemaFault(
            f"the state of record {shown(path)} has schema version {version}, newer than this Kerneldeck "
            f"knows (up to {len(MIGRATIONS)})",
            "update Kerneldeck, or move that file away to start a new history",
        )
    return version


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring an open file to the newest version in one transaction; an older one is copied beside first."""
    version = version_of(connection, path)
    if version == len(MIGRATIONS):
        return
    if version > 0:
        _copy_beside(connection, path, version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again inside: another process may have been faster.
        lift(connection, version_of(connection, path))
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def lift(connection: sqlite3.Connection, version: int) -> None:
    """Run the migrations from `version` on, inside the transaction of the caller."""
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _copy_beside(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Keep `path` as it is now as `….v<version>`; a copy from an earlier attempt is written anew."""
    unfinished = path.with_name(f"{path.name}.v{version}.writing")
    unfinished.unlink(missing_ok=True)
    copy = sqlite3.connect(unfinished)
    try:
        connection.backup(copy)
    finally:
        copy.close()
    unfinished.replace(path.with_name(f"{path.name}.v{version}"))


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
