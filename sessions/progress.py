"""Rows of what was asked for and how far it got: sweeps, operations, the journal of writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.records import FileSet, OperationRecord, SweepRecord
from sessions.database import SqlValue, insert, update
from sessions.rows import Rows, clean, files_of, files_text, json_object, json_text

STOPPED = "stopped"


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
    """Sweeps, operations, journal."""

    def add_sweep(self, sweep: SweepRecord) -> SweepRecord:
        with self.database.transaction("store the sweep") as connection:
            return replace(sweep, id=insert(connection, "sweeps", _sweep_values(sweep)))

    def update_sweep(self, sweep: SweepRecord) -> None:
        """Store where the sweep stands. ValueError when it was never added."""
        with self.database.transaction("store the sweep") as connection:
            if not update(connection, "sweeps", sweep.id, _sweep_values(sweep)):
                raise ValueError(f"there is no sweep {sweep.id}")

    def sweep(self, sweep_id: int) -> SweepRecord | None:
        row = self.database.row("SELECT * FROM sweeps WHERE id = ?", (sweep_id,))
        return None if row is None else _sweep(row)

    def sweeps(self, limit: int = 50) -> list[SweepRecord]:
        """Sweeps, newest first."""
        return [
            _sweep(row)
            for row in self.database.rows("SELECT * FROM sweeps ORDER BY id DESC LIMIT ?", (limit,))
        ]

    def running_sweeps(self) -> list[SweepRecord]:
        return [_sweep(row) for row in self.database.rows("SELECT * FROM sweeps WHERE state = 'running'")]

    def stop_sweep(self, sweep: SweepRecord, reason: str) -> None:
        """End a sweep as stopped, with the reason in its summary."""
        summary = {**sweep.summary, "reason": reason}
        self.update_sweep(replace(sweep, state=STOPPED, summary=summary, ended_s=self.clock()))

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


def _sweep_values(sweep: SweepRecord) -> dict[str, SqlValue]:
    return {
        "contract_id": sweep.contract_id, "plan": json_text(sweep.plan), "actor": clean(sweep.actor),
        "created_s": sweep.created_s, "state": sweep.state, "summary": json_text(sweep.summary),
        "ended_s": sweep.ended_s,
    }  # fmt: skip


def _sweep(row: sqlite3.Row) -> SweepRecord:
    return SweepRecord(
        plan=json_object(row["plan"]), contract_id=row["contract_id"], actor=row["actor"],
        created_s=row["created_s"], state=row["state"], summary=json_object(row["summary"]),
        ended_s=row["ended_s"], id=row["id"],
    )  # fmt: skip


def _journal(found: Sequence[sqlite3.Row]) -> list[JournalRow]:
    return [
        JournalRow(
            row["state"], row["reason"], files_of(row["old"]), files_of(row["new"]), row["at_s"],
            row["ended_s"], row["note"], row["id"],
        )
        for row in found
    ]  # fmt: skip
