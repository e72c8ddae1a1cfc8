"""One SQLite file, opened for writing or only for reading.

Writers use a write-ahead log, so that readers go on meanwhile; on a network file system, where the log's
shared memory cannot work, the rollback journal. `synchronous=FULL`: a commit is on disk when it returns.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.errors import StorageFault
from sessions import schema
from sessions.faults import shown, storing

SqlValue = str | bytes | int | float | None

_BUSY_S = 10.0


class Database:
    """A connection with transactions that are whole or nothing, and faults told as sentences."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection
        self._connection.row_factory = sqlite3.Row
        self._one_at_a_time = threading.RLock()

    @contextmanager
    def transaction(self, action: str, wait_for_disk: bool = True) -> Iterator[sqlite3.Connection]:
        """A write transaction: committed at the end, rolled back on any exception.

        Without `wait_for_disk` a power cut (not a kill) may lose it until the next transaction is on
        disk. StorageFault "cannot {action}: …" when the disk is full, read-only or failing.
        """
        with self._one_at_a_time, storing(action, self.path):
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if wait_for_disk else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def rows(self, sql: str, values: Sequence[SqlValue] = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._one_at_a_time, storing("read the state of record", self.path):
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Sequence[SqlValue] = ()) -> sqlite3.Row | None:
        """The first row of a query."""
        with self._one_at_a_time, storing("read the state of record", self.path):
            found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
            return found

    def ids(self, sql: str, values: Sequence[SqlValue] = ()) -> array[int]:
        """The first column of a query, whole numbers, 8 bytes each."""
        with self._one_at_a_time, storing("read the state of record", self.path):
            cursor = self._connection.cursor()
            cursor.row_factory = None
            return array("q", (value for (value,) in cursor.execute(sql, values)))

    def shrink(self) -> None:
        """Give the pages that removed rows left back to the disk."""
        with self._one_at_a_time, storing("shrink the state of record", self.path):
            # As a script: it is stepped once a page, and `execute` would step it once.
            self._connection.executescript("PRAGMA incremental_vacuum")

    def close(self) -> None:
        self._connection.close()


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, SqlValue]) -> int:
    """Insert one row (table and columns are names of ours, never input); its id."""
    columns, marks = ", ".join(values), ", ".join("?" * len(values))
    cursor = connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))
    return int(cursor.lastrowid or 0)


def update(connection: sqlite3.Connection, table: str, row_id: int, values: Mapping[str, SqlValue]) -> int:
    """Set columns of the row with that id; how many rows there were (0 or 1)."""
    columns = ", ".join(f"{name} = ?" for name in values)
    cursor = connection.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), row_id))
    return cursor.rowcount


def open_for_writing(path: Path, network: bool) -> Database:
    """Open or create the file, brought to the newest schema.

    StorageFault when it is no database of ours or the disk refuses, SchemaFault when it is newer; in
    both cases the file stays as it is.
    """
    with storing("open the state of record", path):
        _refuse_other_files(path)
        connection = _connect(str(path))
        try:
            _prepare(connection, path, network)
        except BaseException:
            connection.close()
            raise
    return Database(connection, path)


def open_for_reading(path: Path) -> Database | None:
    """Open the file without writing to it; None when there is no history in it yet.

    Needs no lock, works while another process writes, and on a read-only disk. An older schema is
    lifted in a copy in memory.
    """
    with storing("read the state of record", path):
        if not path.exists():
            return None
        _refuse_other_files(path)
        connection = _connect_readonly(path)
        try:
            version = schema.version_of(connection, path)
            if version == 0:
                connection.close()
                return None
            if version < len(schema.MIGRATIONS):
                connection = _lifted_in_memory(connection, path)
        except BaseException:
            connection.close()
            raise
    return Database(connection, path)


def _refuse_other_files(path: Path) -> None:
    """SQLite itself would take a file of one byte for an empty database."""
    if path.exists() and path.stat().st_size == 1:
        raise StorageFault(
            f"{shown(path)} is not a SQLite database", "move that file away to start a new history"
        )


def _connect(name: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(name, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=uri)


def _prepare(connection: sqlite3.Connection, path: Path, network: bool) -> None:
    version = schema.version_of(connection, path)
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute(f"PRAGMA journal_mode = {'DELETE' if network else 'WAL'}").fetchone()
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    schema.migrate(connection, path)


def _connect_readonly(path: Path) -> sqlite3.Connection:
    # Opened for writing where possible: only so can SQLite undo what a killed writer left half done.
    connection = _connect(f"{path.as_uri()}?mode=rw", uri=True)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            raise
        return _connect_immutable(path)
    return connection


def _connect_immutable(path: Path) -> sqlite3.Connection:
    # A write-ahead log needs a file beside it even to read. Where none can be made nothing is writing
    # either, and a file without a log or journal is whole as it stands.
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    if any(log.exists() and log.stat().st_size > 0 for log in beside):
        raise StorageFault(
            f"cannot read the state of record: {shown(path)} is not writable and its last writer was cut off",
            "run it once where the folder is writable, or copy it and name that with KERNELDECK_STATE_DIR",
        )
    return _connect(f"{path.as_uri()}?immutable=1", uri=True)


def _lifted_in_memory(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    memory = _connect(":memory:")
    connection.backup(memory)
    connection.close()
    memory.execute("BEGIN")
    schema.lift(memory, schema.version_of(memory, path))
    memory.execute("COMMIT")
    return memory
