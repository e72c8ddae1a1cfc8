"""Rows of decisions and of the floors they learn."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.records import DecisionRecord
from core.words import JsonObject
from sessions.database import SqlValue, insert
from sessions.rows import Rows, clean, json_object, json_text, pack, unpack_list, where

if TYPE_CHECKING:
    from core.measure.floor import Floor

EVIDENCE_WINDOW = 20


class DecisionRows(Rows):
    """Decisions, floors."""

    def add_decision(self, decision: DecisionRecord, trials: Sequence[int] = ()) -> DecisionRecord:
        """Store a verdict with its evidence; the record with its id.

        `trials` are the ids of the trials it rests on: their samples then outlive collection while its
        candidate or best is a checkpoint.
        """
        with self.database.transaction("store the decision") as connection:
            stored = replace(decision, id=insert(connection, "decisions", _values(decision)))
            connection.executemany(
                "UPDATE trials SET decision_id = ? WHERE id = ?", [(stored.id, trial) for trial in trials]
            )
        return stored

    def decision(self, decision_id: int) -> DecisionRecord | None:
        row = self.database.row("SELECT * FROM decisions WHERE id = ?", (decision_id,))
        return None if row is None else _decision(row)

    def decisions(self, limit: int = 50, contract_id: str | None = None) -> list[DecisionRecord]:
        """Decisions, newest first."""
        clause, values = where({"contract_id": contract_id})
        sql = f"SELECT * FROM decisions{clause} ORDER BY id DESC LIMIT ?"
        return [_decision(row) for row in self.database.rows(sql, [*values, limit])]

    def sweep_decisions(self, sweep_id: int, after: int = 0) -> list[DecisionRecord]:
        """Decisions of a sweep with a higher id than `after`, oldest first."""
        sql = "SELECT * FROM decisions WHERE sweep_id = ? AND id > ? ORDER BY id"
        return [_decision(row) for row in self.database.rows(sql, (sweep_id, after))]

    def best_evidence(self, contract_id: str, best_id: str) -> list[JsonObject]:
        """The processes of the last decisions against this best, oldest first, at most EVIDENCE_WINDOW."""
        sql = "SELECT evidence FROM decisions WHERE contract_id = ? AND best_id = ? ORDER BY id DESC LIMIT ?"
        found = self.database.rows(sql, (contract_id, best_id, EVIDENCE_WINDOW))
        processes = [process for row in reversed(found) for process in unpack_list(row["evidence"])]
        return processes[-EVIDENCE_WINDOW:]

    def floor(self, key: str) -> Floor:
        """What was learned of the noise under `key`; the start values when nothing was."""
        from core.measure.floor import Floor

        row = self.database.row("SELECT ss, nu, aa, n_aa FROM floors WHERE key = ?", (key,))
        return Floor(row["ss"], row["nu"], row["aa"], row["n_aa"]) if row else Floor()

    def put_floor(self, key: str, floor: Floor) -> None:
        values = (key, floor.ss, floor.nu, floor.aa, floor.n_aa, self.clock())
        with self.database.transaction("store the noise floor") as connection:
            connection.execute(
                "INSERT OR REPLACE INTO floors (key, ss, nu, aa, n_aa, updated_s) VALUES (?, ?, ?, ?, ?, ?)",
                values,
            )


def _values(decision: DecisionRecord) -> dict[str, SqlValue]:
    return {
        "contract_id": decision.contract_id, "candidate_id": decision.candidate_id,
        "best_id": decision.best_id, "purpose": decision.purpose, "target": clean(decision.target),
        "verdict": decision.verdict, "gain": decision.gain, "processes": decision.processes,
        "outcome": json_text(decision.outcome), "evidence": pack(decision.evidence),
        # As text: a seed may have more digits than SQLite's integers.
        "seed": str(decision.seed), "created_s": decision.created_s, "actor": clean(decision.actor),
        "sweep_id": decision.sweep_id,
    }  # fmt: skip


def _decision(row: sqlite3.Row) -> DecisionRecord:
    return DecisionRecord(
        contract_id=row["contract_id"], candidate_id=row["candidate_id"], best_id=row["best_id"],
        purpose=row["purpose"], target=row["target"], verdict=row["verdict"], gain=row["gain"],
        processes=row["processes"], outcome=json_object(row["outcome"]),
        evidence=unpack_list(row["evidence"]), seed=int(row["seed"]), created_s=row["created_s"],
        actor=row["actor"],
        sweep_id=row["sweep_id"], id=row["id"],
    )  # fmt: skip
