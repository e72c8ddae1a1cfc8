"""Rows of checkpoints, the best of each contract, and the values that anchor it."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from core.records import Checkpoint
from sessions.blobs import BlobFolder
from sessions.database import Database, SqlValue, insert
from sessions.rows import Clock, Rows, clean, files_of, files_text, json_object, json_text, where

ANCHOR_VALUES = 20


@dataclass(frozen=True, slots=True)
class BestRow:
    """From `since_s` (Unix seconds) on this checkpoint stood for the contract."""

    contract_id: str
    checkpoint_id: str
    decision_id: int | None
    since_s: float
    id: int


class CheckpointRows(Rows):
    """Checkpoints, bests, anchors."""

    def __init__(self, database: Database, blobs: BlobFolder, clock: Clock) -> None:
        super().__init__(database, clock)
        self._blobs = blobs

    @property
    def blobs(self) -> BlobFolder:
        return self._blobs

    def keep(self, checkpoint: Checkpoint, decision_id: int | None) -> None:
        """Store the checkpoint and make it the best of its contract, in one transaction.

        StorageFault when one of its contents is not kept intact as a blob: a best must be restorable.
        """
        for version in checkpoint.files.values():
            self._blobs.get(version.sha256)
        with self.database.transaction("keep the checkpoint") as connection:
            _put(connection, checkpoint)
            row: dict[str, SqlValue] = {
                "contract_id": checkpoint.contract_id, "checkpoint_id": checkpoint.id,
                "decision_id": decision_id, "since_s": self.clock(),
            }  # fmt: skip
            insert(connection, "bests", row)

    def best(self, contract_id: str) -> Checkpoint | None:
        """The checkpoint that stands for the contract."""
        row = self.database.row(
            "SELECT c.* FROM bests b JOIN checkpoints c ON c.contract_id = b.contract_id"
            " AND c.id = b.checkpoint_id WHERE b.contract_id = ? ORDER BY b.id DESC LIMIT 1",
            (contract_id,),
        )
        return None if row is None else _checkpoint(row)

    def best_mark(self) -> tuple[int, int]:
        """Grows whenever another best stands, and whenever something more is known of what one is worth."""
        row = self.database.row(
            "SELECT (SELECT COALESCE(MAX(id), 0) FROM bests) AS b,"
            " (SELECT COALESCE(MAX(id), 0) FROM anchors) AS a"
        )
        return (0, 0) if row is None else (row["b"], row["a"])

    def best_history(self, contract_id: str | None = None) -> list[BestRow]:
        """What stood for the contract (for any contract when None), newest first."""
        clause, values = where({"contract_id": contract_id})
        found = self.database.rows(f"SELECT * FROM bests{clause} ORDER BY id DESC", values)
        return [
            BestRow(row["contract_id"], row["checkpoint_id"], row["decision_id"], row["since_s"], row["id"])
            for row in found
        ]

    def checkpoint(self, checkpoint_id: str, contract_id: str | None = None) -> Checkpoint | None:
        """The checkpoint with that id; without a contract the newest of those that have it."""
        clause, values = where({"id": checkpoint_id, "contract_id": contract_id})
        sql = f"SELECT * FROM checkpoints{clause} ORDER BY created_s DESC, rowid DESC LIMIT 1"
        row = self.database.row(sql, values)
        return None if row is None else _checkpoint(row)

    def checkpoints(self, contract_id: str | None = None) -> list[Checkpoint]:
        """Checkpoints of a contract (all when None), newest first."""
        clause, values = where({"contract_id": contract_id})
        sql = f"SELECT * FROM checkpoints{clause} ORDER BY created_s DESC, rowid DESC"
        return [_checkpoint(row) for row in self.database.rows(sql, values)]

    def anchor_values(self, contract_id: str, checkpoint_id: str) -> list[float]:
        """The best's process medians (objective's unit), newest last, at most 20."""
        found = self.database.rows(
            "SELECT value FROM anchors WHERE contract_id = ? AND checkpoint_id = ? ORDER BY id DESC LIMIT ?",
            (contract_id, checkpoint_id, ANCHOR_VALUES),
        )
        return [row["value"] for row in reversed(found)]

    def add_anchor_value(self, contract_id: str, checkpoint_id: str, value: float) -> None:
        row: dict[str, SqlValue] = {
            "contract_id": contract_id, "checkpoint_id": checkpoint_id, "value": value,
            "at_s": self.clock(),
        }  # fmt: skip
        with self.database.transaction("store an anchor value") as connection:
            insert(connection, "anchors", row)


def _put(connection: sqlite3.Connection, checkpoint: Checkpoint) -> None:
    # Kept again, the same files keep their first time; newer evidence replaces older.
    connection.execute(
        "INSERT INTO checkpoints (id, contract_id, files, overlay, created_s, trial_id, anchor, note)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (contract_id, id) DO UPDATE SET"
        " trial_id = COALESCE(excluded.trial_id, trial_id), anchor = COALESCE(excluded.anchor, anchor),"
        " note = CASE excluded.note WHEN '' THEN note ELSE excluded.note END",
        (
            checkpoint.id, checkpoint.contract_id, files_text(checkpoint.files),
            json_text(checkpoint.overlay), checkpoint.created_s, checkpoint.trial_id, checkpoint.anchor,
            clean(checkpoint.note),
        ),
    )  # fmt: skip


def _checkpoint(row: sqlite3.Row) -> Checkpoint:
    return Checkpoint(
        id=row["id"], contract_id=row["contract_id"], files=files_of(row["files"]),
        overlay=json_object(row["overlay"]), created_s=row["created_s"], trial_id=row["trial_id"],
        anchor=row["anchor"], note=row["note"],
    )  # fmt: skip
