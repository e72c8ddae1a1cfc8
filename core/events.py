"""What the engine tells whoever watches: small values, in the order in which things happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.records import TrialRecord
from core.words import Status


@dataclass(frozen=True, slots=True)
class TrialBegan:
    trial: TrialRecord


@dataclass(frozen=True, slots=True)
class TrialEnded:
    trial: TrialRecord


@dataclass(frozen=True, slots=True)
class GateStep:
    """A decision has so many processes, of at most `most`; `verdict` once it has spoken."""

    candidate_id: str
    processes: int
    most: int
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class SweepStep:
    """Where a sweep stands: its phase, and how many of its screening trials are done."""

    phase: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class SweepBegan:
    """A sweep starts, or goes on after its host has died.

    `waiting` are the candidates still to screen, in order; `counts` how those screened before ended, by
    status, and which scored best (in the objective's unit). `paused_by` names the actor when it goes on
    paused.
    """

    sweep_id: int
    waiting: tuple[str, ...]
    total: int
    counts: Mapping[str, int]
    actor: str
    detached: bool = False
    paused_by: str = ""
    best_score: float | None = None
    best_candidate: str = ""


@dataclass(frozen=True, slots=True)
class CandidateScreened:
    """A candidate's screening has ended for good; `cancelled` also for one that never ran."""

    sweep_id: int
    candidate_id: str
    status: Status
    score: float | None = None


@dataclass(frozen=True, slots=True)
class CandidateMoved:
    """A waiting candidate now stands at `position` (0 is next)."""

    sweep_id: int
    candidate_id: str
    position: int


@dataclass(frozen=True, slots=True)
class CandidateRequeued:
    """A candidate whose screening had ended as `status` waits again, at `position`."""

    sweep_id: int
    candidate_id: str
    status: Status
    position: int


@dataclass(frozen=True, slots=True)
class SweepPaused:
    sweep_id: int
    by: str


@dataclass(frozen=True, slots=True)
class SweepResumed:
    sweep_id: int
    by: str


@dataclass(frozen=True, slots=True)
class SweepEnded:
    """`outcome` is done, stopped or failed."""

    sweep_id: int
    outcome: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence that a person should see."""

    text: str


Event = (
    TrialBegan
    | TrialEnded
    | GateStep
    | SweepStep
    | SweepBegan
    | CandidateScreened
    | CandidateMoved
    | CandidateRequeued
    | SweepPaused
    | SweepResumed
    | SweepEnded
    | Note
)
EVENT_TYPES = (
    TrialBegan, TrialEnded, GateStep, SweepStep, SweepBegan, CandidateScreened, CandidateMoved,
    CandidateRequeued, SweepPaused, SweepResumed, SweepEnded, Note,
)  # fmt: skip
