"""What the engine tells whoever watches: small values, in the order in which things happen."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import TrialRecord


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
class Note:
    """A sentence that a person should see."""

    text: str


Event = TrialBegan | TrialEnded | GateStep | SweepStep | Note
EVENT_TYPES = (TrialBegan, TrialEnded, GateStep, SweepStep, Note)
