"""Rows of what was asked for and how far it got: operations, the journal of writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.records import FileSet, OperationRecord
from sessions.database import SqlValue, insert, update
from sessions.rows import Rows, clean, files_of, files_text, json_object, json_text


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One write of the mutable files, from `old` to `new` (a path that is absent: no such file).

    `state`: intent (begun), done, undone (failed and put back) or left (a file was edited by hand after
    an interruption and stays so). Times are Unix seconds.
    """

    state: str
    reason: str
    old: FileSet
    new: FileSet
    at_s: float
    ended_s: float | None
    note: str
    id: int


class ProgressRows(Rows):
    """Operations, journal."""

    def add_operation(self, operation: OperationRecord) -> OperationRecord:
        values: dict[str, SqlValue] = {
            "operation": operation.operation, "actor": clean(operation.actor),
            "arguments": json_text(operation.arguments), "started_s": operation.started_s,
            "duration_s": operation.duration_s, "outcome": operation.outcome,
            "exit_code": operation.exit_code,
        }  # fmt: skip
        with self.database.transaction("store the operation") as connection:
            return replace(operation, id=insert(connection, "operations", values))

    def operations(self, limit: int = 50) -> list[OperationRecord]:
        """Operations, newest first."""
        found = self.database.rows("SELECT * FROM operations ORDER BY id DESC LIMIT ?", (limit,))
        return [
            OperationRecord(
                row["operation"], row["actor"], json_object(row["arguments"]), row["started_s"],
                row["duration_s"], row["outcome"], row["exit_code"], row["id"],
            )
            for row in found
        ]  # fmt: skip

    def begin_write(self, old: FileSet, new: FileSet, reason: str) -> int:
        """A journal row in state intent; its id."""
        values: dict[str, SqlValue] = {
            "state": "intent", "reason": clean(reason), "old": files_text(old), "new": files_text(new),
            "at_s": self.clock(), "note": "",
        }  # fmt: skip
        with self.database.transaction("store what is about to be written") as connection:
            return insert(connection, "journal", values)

    def end_write(self, row_id: int, state: str, note: str = "") -> None:
        """Close a journal row: done, undone or left."""
        with self.database.transaction("store what was written") as connection:
            update(
                connection, "journal", row_id, {"state": state, "note": clean(note), "ended_s": self.clock()}
            )

    def unfinished_writes(self) -> list[JournalRow]:
        """Journal rows that were begun and not closed, oldest first."""
        return _journal(self.database.rows("SELECT * FROM journal WHERE state = 'intent' ORDER BY id"))

    def journal(self, limit: int = 50) -> list[JournalRow]:
        """Journal rows, newest first."""
        return _journal(self.database.rows("SELECT * FROM journal ORDER BY id DESC LIMIT ?", (limit,)))


def _journal(found: Sequence[sqlite3.Row]) -> list[JournalRow]:
    return [
        JournalRow(
            row["state"], row["reason"], files_of(row["old"]), files_of(row["new"]), row["at_s"],
            row["ended_s"], row["note"], row["id"],
        )
        for row in found
    ]  # fmt: skip
