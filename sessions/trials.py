"""Rows of trials and their results: the history, and the ranking over it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from core.records import TrialRecord
from core.targets.job import TargetFacts
from core.words import JsonObject, Overlay, Status
from sessions.database import SqlValue, insert, update
from sessions.rows import Rows, clean, json_object, json_text, pack, unpack_object, where

INTERRUPTED = "interrupted"

_RANKED = "contract_id = ? AND mode = ? AND status = 'ok' AND score IS NOT NULL"


@dataclass(frozen=True, slots=True)
class RankRow:
    """A candidate's best trial in one contract and mode, beside how its `count` ok trials spread.

    `score` and `median` are in the objective's unit; verifier, purpose and time are the best trial's.
    """

    trial_id: int
    candidate_id: str
    score: float
    median: float
    count: int
    overlay: Overlay
    verifier: bool
    purpose: str
    started_s: float


class TrialRows(Rows):
    """Trials, results, rankings."""

    def begin_trial(self, trial: TrialRecord) -> TrialRecord:
        """Store a started trial; the record with its id. Contract and candidate must be stored before."""
        started = trial if trial.started_s else replace(trial, started_s=self.clock())
        values = _identity(started) | _ending(started)
        with self.database.transaction("store the start of a trial") as connection:
            return replace(started, id=insert(connection, "trials", values))

    def end_trial(self, trial: TrialRecord, result: JsonObject | None) -> None:
        """Store how the trial ended, with its whole parsed result (raw samples included).

        ValueError when the trial has no status, or was ended before: every trial ends once.
        """
        if trial.status is None:
            raise ValueError(f"trial {trial.id} has no status to end with")
        payload = None if result is None else pack(result)
        with self.database.transaction("store the end of a trial") as connection:
            open_ = connection.execute("SELECT 1 FROM trials WHERE id = ? AND status IS NULL", (trial.id,))
            if open_.fetchone() is None:
                raise ValueError(f"trial {trial.id} is not running")
            update(connection, "trials", trial.id, _ending(trial))
            if payload is not None:
                insert(connection, "results", {"trial_id": trial.id, "payload": payload})

    def trial(self, trial_id: int) -> TrialRecord | None:
        row = self.database.row("SELECT * FROM trials WHERE id = ?", (trial_id,))
        return None if row is None else _trial(row)

    def trials(
        self,
        limit: int = 50,
        *,
        mode: str | None = None,
        status: Status | None = None,
        contract_id: str | None = None,
        candidate_id: str | None = None,
        sweep_id: int | None = None,
        decision_id: int | None = None,
    ) -> list[TrialRecord]:
        """Trials that match all that is given, newest first."""
        conditions: dict[str, SqlValue] = {
            "mode": mode, "status": status and status.value, "contract_id": contract_id,
            "candidate_id": candidate_id, "sweep_id": sweep_id, "decision_id": decision_id,
        }  # fmt: skip
        clause, values = where(conditions)
        sql = f"SELECT * FROM trials{clause} ORDER BY id DESC LIMIT ?"
        return [_trial(row) for row in self.database.rows(sql, [*values, limit])]

    def running_trials(self) -> list[TrialRecord]:
        """Trials that started and have not ended, oldest first."""
        found = self.database.rows("SELECT * FROM trials WHERE status IS NULL ORDER BY id")
        return [_trial(row) for row in found]

    def sweep_trials(self, sweep_id: int, after: int = 0) -> list[TrialRecord]:
        """Ended trials of a sweep with a higher id than `after`, oldest first."""
        found = self.database.rows(
            "SELECT * FROM trials WHERE sweep_id = ? AND id > ? AND status IS NOT NULL ORDER BY id",
            (sweep_id, after),
        )
        return [_trial(row) for row in found]

    def facts_of_target(self, target: str) -> TargetFacts | None:
        """What the contract of the last trial on `target` says of it; None when there was none."""
        row = self.database.row(
            "SELECT contracts.description FROM trials JOIN contracts ON contracts.id = trials.contract_id"
            " WHERE trials.target = ? ORDER BY trials.id DESC LIMIT 1",
            (target,),
        )
        facts = json_object(row["description"]).get("target") if row is not None else None
        return TargetFacts(**facts) if facts else None

    def cancel_running_trials(self) -> int:
        """End every running trial as cancelled, reason `interrupted`; how many there were."""
        if not self.running_trials():
            return 0
        with self.database.transaction("close interrupted trials") as connection:
            return connection.execute(
                "UPDATE trials SET status = ?, reason = ? WHERE status IS NULL",
                (Status.CANCELLED.value, INTERRUPTED),
            ).rowcount

    def result(self, trial_id: int) -> JsonObject | None:
        """The whole parsed result of a trial; None when it had none, or its samples were collected."""
        row = self.database.row("SELECT payload FROM results WHERE trial_id = ?", (trial_id,))
        return None if row is None else unpack_object(row["payload"])

    def counts_by_status(self, contract_id: str | None = None) -> dict[Status | None, int]:
        """How many trials ended each way; under None those that have not ended."""
        clause, values = where({"contract_id": contract_id})
        sql = f"SELECT status, COUNT(*) AS count FROM trials{clause} GROUP BY status"
        return {_status(row["status"]): row["count"] for row in self.database.rows(sql, values)}

    def rank(self, contract_id: str, mode: str, top_n: int = 10, direction: str = "lower") -> list[RankRow]:
        """The `top_n` candidates by the median of their ok trials; `direction` is lower or higher.

        The median, since the best of many trials is the luckiest. Ties come by candidate.
        """
        order = "DESC" if direction == "higher" else "ASC"
        leaders = self.database.rows(
            "SELECT candidate_id, median, count FROM standings WHERE contract_id = ? AND mode = ?"
            f" ORDER BY median {order}, candidate_id LIMIT ?",
            (contract_id, mode, top_n),
        )
        return [self._rank_row(contract_id, mode, order, leader) for leader in leaders]

    def _rank_row(self, contract_id: str, mode: str, order: str, leader: sqlite3.Row) -> RankRow:
        """The leader with its best trial, the first of equal ones."""
        (best,) = self.database.rows(
            f"SELECT * FROM trials INDEXED BY trials_ranked WHERE {_RANKED} AND candidate_id = ?"
            f" ORDER BY score {order}, id LIMIT 1",
            (contract_id, mode, leader["candidate_id"]),
        )
        return RankRow(
            best["id"], leader["candidate_id"], best["score"], leader["median"], leader["count"],
            json_object(best["overlay"]), bool(best["verifier"]), best["purpose"], best["started_s"],
        )  # fmt: skip


def _identity(trial: TrialRecord) -> dict[str, SqlValue]:
    return {
        "candidate_id": trial.candidate_id, "contract_id": trial.contract_id, "mode": trial.mode,
        "purpose": trial.purpose, "target": clean(trial.target), "actor": clean(trial.actor),
        "started_s": trial.started_s, "sweep_id": trial.sweep_id,
    }  # fmt: skip


def _ending(trial: TrialRecord) -> dict[str, SqlValue]:
    return {
        "verifier": trial.verifier, "overlay": json_text(trial.overlay),
        "status": trial.status and trial.status.value, "reason": clean(trial.reason), "stage": trial.stage,
        "score": trial.score, "duration_s": trial.duration_s, "exit_code": trial.exit_code,
        "channel": trial.channel, "output_dir": clean(trial.output_dir), "decision_id": trial.decision_id,
    }  # fmt: skip


def _status(text: str | None) -> Status | None:
    return None if text is None else Status(text)


def _trial(row: sqlite3.Row) -> TrialRecord:
    return TrialRecord(
        candidate_id=row["candidate_id"], contract_id=row["contract_id"], mode=row["mode"],
        purpose=row["purpose"], target=row["target"], actor=row["actor"], verifier=bool(row["verifier"]),
        overlay=json_object(row["overlay"]), status=_status(row["status"]), reason=row["reason"],
        stage=row["stage"], score=row["score"], started_s=row["started_s"], duration_s=row["duration_s"],
        exit_code=row["exit_code"], channel=row["channel"], output_dir=row["output_dir"],
        sweep_id=row["sweep_id"], decision_id=row["decision_id"], id=row["id"],
    )  # fmt: skip
