"""The values that are kept: versions of files, candidates, trials, checkpoints, decisions, sweeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.words import JsonObject, Overlay, Status


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One file's content by its SHA-256 (hex) and whether it may be executed."""

    sha256: str
    executable: bool = False


FileSet = Mapping[str, FileVersion]  # path relative to the workspace, with forward slashes


def fileset_id(files: FileSet) -> str:
    """SHA-256 (hex) over the sorted paths, contents and executable bits."""
    rows = [[path, files[path].sha256, files[path].executable] for path in sorted(files)]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Candidate:
    """The mutable files that a trial lays out; `overlay` says which knobs it sets, for people."""

    files: FileSet
    overlay: Overlay = field(default_factory=dict)

    @property
    def id(self) -> str:
        return fileset_id(self.files)


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One trial as the history holds it; `id` is 0 until it is stored.

    `score` is the objective in the workspace's unit, only for `ok`; `reason` and `stage` say why not.
    `purpose` is one of run, repeat, screen, gate, verify, restore, anchor. Times are Unix seconds.
    """

    candidate_id: str
    contract_id: str
    mode: str
    purpose: str
    target: str
    actor: str
    verifier: bool = False
    overlay: Overlay = field(default_factory=dict)
    status: Status | None = None  # None: started, not ended
    reason: str = ""
    stage: str = ""
    score: float | None = None
    started_s: float = 0.0
    duration_s: float | None = None
    exit_code: int | None = None
    channel: str = ""
    output_dir: str = ""
    sweep_id: int | None = None
    decision_id: int | None = None
    id: int = 0

    def ended(self, status: Status, reason: str = "", **more: object) -> TrialRecord:
        return replace(self, status=status, reason=reason, **more)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Mutable files that passed a final verification; content-addressed by `id` (a fileset id)."""

    id: str
    contract_id: str
    files: FileSet
    overlay: Overlay
    created_s: float
    trial_id: int | None = None
    anchor: float | None = None  # long-run value of the objective, in its unit
    note: str = ""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One verdict of a candidate against the best, with all that recomputes it.

    `outcome` is what the gate said, as JSON; `evidence` one JSON object a process. Whether the candidate
    was kept because of it, the row of the best says.
    """

    contract_id: str
    candidate_id: str
    best_id: str
    purpose: str  # verify | apply | sweep
    target: str
    verdict: str
    gain: float | None
    processes: int
    outcome: JsonObject
    evidence: list[JsonObject]
    seed: int
    created_s: float
    actor: str
    sweep_id: int | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class SweepRecord:
    """A sweep: its plan (candidates, stages, budget, seed), where it runs, and where it stands.

    A `detached` one outlives the process that runs it.
    """

    plan: JsonObject
    contract_id: str
    actor: str
    created_s: float
    state: str = "running"  # running | done | stopped | failed
    summary: JsonObject = field(default_factory=dict)
    ended_s: float | None = None
    target: str = ""
    detached: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class Baseline:
    """The record that the others of its contract are compared with.

    `scores` are its candidate's medians by mode, in the objective's unit: records of one mode compare.
    """

    trial_id: int
    candidate_id: str
    contract_id: str
    mode: str
    scores: Mapping[str, float]
    since_s: float

    def change(self, mode: str, score: float | None) -> float | None:
        """The fraction by which `score` differs from the baseline's in that mode; None: not compared."""
        own = self.scores.get(mode)
        return score / own - 1.0 if own and score is not None else None


@dataclass(frozen=True, slots=True)
class TrialNote:
    """What people keep with a trial: a line of text, and tags in their order."""

    text: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One call of an operation: who, what, how long, how it ended."""

    operation: str
    actor: str
    arguments: JsonObject
    started_s: float
    duration_s: float
    outcome: str  # done | an error's code
    exit_code: int
    id: int = 0
