"""The seam between the engine and the state of record; `sessions` implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from core.measure.floor import Floor
from core.records import Candidate, Checkpoint, DecisionRecord, FileSet, SweepRecord, TrialRecord
from core.words import JsonObject


class Blobs(Protocol):
    """Contents by SHA-256; a content that was put is on disk before `put` returns."""

    def put(self, content: bytes) -> str: ...

    def get(self, sha256: str) -> bytes: ...


class Store(Protocol):
    """What the engine reads and writes; every write is durable when the call returns."""

    @property
    def blobs(self) -> Blobs: ...

    def begin_trial(self, trial: TrialRecord) -> TrialRecord:
        """Store a started trial; the record with its id."""
        ...

    def end_trial(self, trial: TrialRecord, result: JsonObject | None) -> None:
        """Store how the trial ended, with its whole parsed result (raw samples included)."""
        ...

    def add_candidate(self, candidate: Candidate) -> None:
        """Keep which files and overlay a candidate id stands for."""
        ...

    def add_candidates(self, candidates: Sequence[Candidate]) -> None:
        """The same for many, on disk together with what names them next."""
        ...

    def candidate(self, candidate_id: str) -> Candidate | None: ...

    def trial(self, trial_id: int) -> TrialRecord | None: ...

    def result(self, trial_id: int) -> JsonObject | None:
        """The whole parsed result of a trial; None when it had none, or its samples were collected."""
        ...

    def floor(self, key: str) -> Floor: ...

    def put_floor(self, key: str, floor: Floor) -> None: ...

    def best(self, contract_id: str) -> Checkpoint | None:
        """The checkpoint that stands for the contract."""
        ...

    def keep(self, checkpoint: Checkpoint, decision_id: int | None) -> None:
        """Store the checkpoint and make it the best of its contract, in one transaction."""
        ...

    def anchor_values(self, contract_id: str, checkpoint_id: str) -> list[float]:
        """The best's process medians (objective's unit), newest last, at most 20."""
        ...

    def add_anchor_value(self, contract_id: str, checkpoint_id: str, value: float) -> None: ...

    def best_evidence(self, contract_id: str, best_id: str) -> list[JsonObject]:
        """The processes of the last decisions against this best, oldest first, at most 20."""
        ...

    def add_decision(self, decision: DecisionRecord, trials: Sequence[int] = ()) -> DecisionRecord:
        """Store it, and that these trials are its evidence."""
        ...

    def decision(self, decision_id: int) -> DecisionRecord | None: ...

    def checkpoint(self, checkpoint_id: str, contract_id: str | None = None) -> Checkpoint | None: ...

    def add_sweep(self, sweep: SweepRecord) -> SweepRecord: ...

    def update_sweep(self, sweep: SweepRecord) -> None: ...

    def sweep(self, sweep_id: int) -> SweepRecord | None: ...

    def stop_sweep(self, sweep: SweepRecord, reason: str) -> None:
        """End a sweep as stopped, with the reason in its summary."""
        ...

    def add_sweep_events(self, sweep_id: int, events: Sequence[JsonObject]) -> None:
        """Store the next events of a sweep, all or none."""
        ...

    def sweep_events(self, sweep_id: int) -> list[JsonObject]:
        """What happened in a sweep, in its order."""
        ...

    def sweep_trials(self, sweep_id: int, after: int = 0) -> list[TrialRecord]:
        """Ended trials of a sweep with a higher id than `after`, oldest first."""
        ...

    def sweep_decisions(self, sweep_id: int, after: int = 0) -> list[DecisionRecord]:
        """Decisions of a sweep with a higher id than `after`, oldest first."""
        ...


class Files(Protocol):
    """The one path by which the workspace's files change."""

    def current(self) -> FileSet:
        """Versions of the mutable files as they are now, contents kept as blobs."""
        ...

    def write(self, files: FileSet, expected: Mapping[str, str], reason: str) -> int:
        """Journal and write `files`; ChangedMeanwhile when one's content is not the `expected` SHA-256.

        Returns the journal's row. What is replaced is itself kept as blobs.
        """
        ...
