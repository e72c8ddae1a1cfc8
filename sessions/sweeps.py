"""Rows of sweeps and of what happened in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from core.records import SweepRecord
from core.words import JsonObject
from sessions.database import SqlValue, insert, update
from sessions.rows import Rows, clean, json_object, json_text

STOPPED = "stopped"


class SweepRows(Rows):
    """Sweeps and their events."""

    def add_sweep(self, sweep: SweepRecord) -> SweepRecord:
        with self.database.transaction("store the sweep") as connection:
            return replace(sweep, id=insert(connection, "sweeps", _values(sweep)))

    def update_sweep(self, sweep: SweepRecord) -> None:
        """Store where the sweep stands. ValueError when it was never added."""
        with self.database.transaction("store the sweep") as connection:
            if not update(connection, "sweeps", sweep.id, _values(sweep)):
                raise ValueError(f"there is no sweep {sweep.id}")

    def sweep(self, sweep_id: int) -> SweepRecord | None:
        row = self.database.row("SELECT * FROM sweeps WHERE id = ?", (sweep_id,))
        return None if row is None else _sweep(row)

    def sweeps(self, limit: int = 50) -> list[SweepRecord]:
        """Sweeps, newest first."""
        found = self.database.rows("SELECT * FROM sweeps ORDER BY id DESC LIMIT ?", (limit,))
        return [_sweep(row) for row in found]

    def running_sweeps(self) -> list[SweepRecord]:
        """Sweeps that have not ended, oldest first."""
        found = self.database.rows("SELECT * FROM sweeps WHERE state = 'running' ORDER BY id")
        return [_sweep(row) for row in found]

    def stop_sweep(self, sweep: SweepRecord, reason: str) -> None:
        """End a sweep as stopped, with the reason in its summary."""
        summary = {**sweep.summary, "reason": reason}
        self.update_sweep(replace(sweep, state=STOPPED, summary=summary, ended_s=self.clock()))

    def add_sweep_events(self, sweep_id: int, events: Sequence[JsonObject]) -> None:
        """Store the next events of a sweep, all or none."""
        with self.database.transaction("store what happened in the sweep") as connection:
            sql = "SELECT COALESCE(MAX(number), 0) FROM sweep_events WHERE sweep_id = ?"
            (last,) = connection.execute(sql, (sweep_id,)).fetchone()
            connection.executemany(
                "INSERT INTO sweep_events (sweep_id, number, event, at_s) VALUES (?, ?, ?, ?)",
                [
                    (sweep_id, number, json_text(event), self.clock())
                    for number, event in enumerate(events, last + 1)
                ],
            )

    def sweep_events(self, sweep_id: int) -> list[JsonObject]:
        """What happened in a sweep, in its order."""
        sql = "SELECT event FROM sweep_events WHERE sweep_id = ? ORDER BY number"
        return [json_object(row["event"]) for row in self.database.rows(sql, (sweep_id,))]


def _values(sweep: SweepRecord) -> dict[str, SqlValue]:
    return {
        "contract_id": sweep.contract_id, "plan": json_text(sweep.plan), "actor": clean(sweep.actor),
        "created_s": sweep.created_s, "state": sweep.state, "summary": json_text(sweep.summary),
        "ended_s": sweep.ended_s, "target": clean(sweep.target), "detached": sweep.detached,
    }  # fmt: skip


def _sweep(row: sqlite3.Row) -> SweepRecord:
    return SweepRecord(
        plan=json_object(row["plan"]), contract_id=row["contract_id"], actor=row["actor"],
        created_s=row["created_s"], state=row["state"], summary=json_object(row["summary"]),
        ended_s=row["ended_s"], target=row["target"], detached=bool(row["detached"]), id=row["id"],
    )  # fmt: skip
