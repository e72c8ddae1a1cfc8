"""Rows of contracts, candidates and seals: what a score is of, and under which rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.records import Candidate, FileSet
from core.words import JsonObject
from sessions.database import insert
from sessions.rows import Rows, files_of, files_text, json_object, json_text


@dataclass(frozen=True, slots=True)
class Contract:
    """What a contract id stands for; `created_s` in Unix seconds."""

    id: str
    description: JsonObject
    created_s: float


@dataclass(frozen=True, slots=True)
class Seal:
    """The protected files' versions from `since_s` (Unix seconds) on; their contents are kept as blobs."""

    files: FileSet
    contract_id: str
    since_s: float
    id: int


class ContractRows(Rows):
    """Contracts, candidates, seals."""

    def put_contract(self, contract_id: str, description: JsonObject) -> None:
        """Keep what a contract id stands for; the first description stays."""
        if self.contract(contract_id) is not None:
            return
        with self.database.transaction("store the contract") as connection:
            connection.execute(
                "INSERT OR IGNORE INTO contracts (id, description, created_s) VALUES (?, ?, ?)",
                (contract_id, json_text(description), self.clock()),
            )

    def contract(self, contract_id: str) -> Contract | None:
        row = self.database.row("SELECT * FROM contracts WHERE id = ?", (contract_id,))
        return None if row is None else Contract(row["id"], json_object(row["description"]), row["created_s"])

    def contracts(self) -> list[Contract]:
        """All contracts, newest first."""
        found = self.database.rows("SELECT * FROM contracts ORDER BY created_s DESC, rowid DESC")
        return [Contract(row["id"], json_object(row["description"]), row["created_s"]) for row in found]

    def add_candidate(self, candidate: Candidate) -> None:
        """Keep which files and overlay a candidate id stands for; the first overlay stays.

        On disk together with the first trial of it: nothing else names it before.
        """
        if not self.database.row("SELECT 1 FROM candidates WHERE id = ?", (candidate.id,)):
            self.add_candidates([candidate])

    def add_candidates(self, candidates: Sequence[Candidate]) -> None:
        """The same for many, in one transaction."""
        with self.database.transaction("store the candidates", wait_for_disk=False) as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO candidates (id, files, overlay) VALUES (?, ?, ?)",
                [(one.id, files_text(one.files), json_text(one.overlay)) for one in candidates],
            )

    def candidate(self, candidate_id: str) -> Candidate | None:
        row = self.database.row("SELECT files, overlay FROM candidates WHERE id = ?", (candidate_id,))
        return None if row is None else Candidate(files_of(row["files"]), json_object(row["overlay"]))

    def candidate_ids(self, prefix: str) -> list[str]:
        """Ids of stored candidates that begin with `prefix`, sorted."""
        found = self.database.rows(
            "SELECT id FROM candidates WHERE id >= ? AND id < ? ORDER BY id", (prefix, prefix + "~")
        )
        return [row["id"] for row in found]

    def put_seal(self, files: FileSet, contract_id: str = "") -> Seal:
        """A new seal of the protected files; the earlier ones stay as history."""
        seal = Seal(files, contract_id, self.clock(), 0)
        with self.database.transaction("store the seal") as connection:
            row_id = insert(
                connection,
                "seals",
                {"contract_id": contract_id, "files": files_text(files), "since_s": seal.since_s},
            )
        return Seal(files, contract_id, seal.since_s, row_id)

    def seal(self) -> Seal | None:
        """The seal that stands."""
        return next(iter(self.seals(1)), None)

    def seals(self, limit: int = -1) -> list[Seal]:
        """Seals, newest first; all of them by default."""
        found = self.database.rows("SELECT * FROM seals ORDER BY id DESC LIMIT ?", (limit,))
        return [Seal(files_of(row["files"]), row["contract_id"], row["since_s"], row["id"]) for row in found]
