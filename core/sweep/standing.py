"""Where a sweep stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.sweep.plan import Confirmed, Plan, RunScreen, TrialEnded, Work

TARGET = "target"  # who paused, when nobody did
ENDINGS = ("done", "stopped", "failed")


@dataclass(frozen=True, slots=True)
class Dropped:
    """A cancelled candidate: where it waited, and the trial that was ended for it (0: none)."""

    candidate_id: str
    position: int
    trial_id: int = 0


@dataclass(frozen=True, slots=True)
class SweepState:
    """Where a sweep stands. A candidate is in one place: running, waiting, screened, dropped or lost.

    `out` is the instruction that is out; `ending`: its work is asked to end. `lost` are candidates that
    the target could not run, `infra` how often it failed with those that may be tried again.
    `winner` is what beat the best by the gate, directly compared. `last_trial` and `last_decision` are the
    newest rows that an event told of.
    """

    plan: Plan
    phase: str = "baseline"  # baseline | screen | confirm | direct | verify | keep | done | stopped | failed
    reason: str = ""  # why it ended
    paused_by: str = ""
    out: Work | None = None
    ending: bool = False
    waiting: tuple[str, ...] = ()
    screened: tuple[TrialEnded, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    lost: tuple[TrialEnded, ...] = ()
    infra: Mapping[str, int] = field(default_factory=dict)
    infra_in_a_row: int = 0
    best_id: str = ""
    baseline_trial: int = 0
    finalists: tuple[str, ...] = ()
    champion: str = ""
    first_champion: str = ""  # the one that beat the best itself, not only a later champion
    wins: int = 0
    confirmed: tuple[Confirmed, ...] = ()
    winner: str = ""
    final_trial: int = 0
    unwritten: str = ""
    elapsed_s: float = 0.0
    time_is_up: bool = False
    last_trial: int = 0
    last_decision: int = 0

    @property
    def ended(self) -> bool:
        return self.phase in ENDINGS

    @property
    def running(self) -> str:
        """The candidate that is screened now; empty for none."""
        return self.out.candidate_id if isinstance(self.out, RunScreen) else ""

    @property
    def at_work(self) -> str:
        """The candidate that the instruction out is about; empty for none."""
        return "" if self.out is None else getattr(self.out, "candidate_id", "")

    @property
    def kept(self) -> bool:
        return self.phase == "done" and self.reason == "kept"

    def place_of(self, candidate_id: str) -> str:
        """running, waiting, cancelled, lost, or the status of its screening; empty for none of ours."""
        if candidate_id and candidate_id == self.running:
            return "running"
        if candidate_id in self.waiting:
            return "waiting"
        if any(one.candidate_id == candidate_id for one in self.dropped):
            return "cancelled"
        if any(one.candidate_id == candidate_id for one in self.lost):
            return "lost"
        counted = (one.status.value for one in self.screened if one.candidate_id == candidate_id)
        return next(counted, "")
