"""What is said to the sweep's machine and what it says: the plan, events in, instructions out."""

from __future__ import annotations

from dataclasses import dataclass

from core.words import Status


@dataclass(frozen=True, slots=True)
class Plan:
    """A linear plan: screen `candidates` in their order, then confirm the leaders against the best.

    `screen_decides`: the screen's scores are exact and of the deciding mode, so whoever is not better
    than the best there needs no confirmation. `budget_s` ends screening, not a running trial.
    `waits_for_target`: a candidate that the target cannot run is set aside, and several in a row pause the
    sweep; without it the first one stops the sweep.
    """

    candidates: tuple[str, ...]
    lower_is_better: bool = True
    finalists: int = 3
    keep: bool = False
    budget_s: float | None = None
    screen_decides: bool = False
    waits_for_target: bool = False


# Outcomes: what came of the instruction that is out. Numbers of rows are 0 where there is none.


@dataclass(frozen=True, slots=True)
class BaselineReady:
    """The best stands, or was just verified as the first one by trial `trial_id`; its candidate id."""

    best_id: str
    trial_id: int = 0


@dataclass(frozen=True, slots=True)
class BaselineFailed:
    """`lost` when the target failed instead."""

    reason: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A screening trial ended; `score` only with status ok."""

    candidate_id: str
    status: Status
    score: float | None = None
    trial_id: int = 0


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The gate's answer on `candidate_id` against `against`; `lost` when the target failed instead.

    Without a decision `trial_id` is the trial that failed, `at_fault` and `reason` say whose fault it was.
    """

    candidate_id: str
    against: str
    accepted: bool
    lost: bool = False
    decision_id: int = 0
    trial_id: int = 0
    at_fault: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FinalVerified:
    """The winner's final verification; `lost` when the target failed instead."""

    candidate_id: str
    passed: bool
    lost: bool = False
    trial_id: int = 0


@dataclass(frozen=True, slots=True)
class WinnerKept:
    """`unwritten` says why the workspace does not hold the winner, when it could not be written."""

    candidate_id: str
    unwritten: str = ""


@dataclass(frozen=True, slots=True)
class TimePassed:
    """How long instructions have been carried out so far, pauses left out."""

    elapsed_s: float


# Commands: what somebody asks for, at any time. `actor` is who.


@dataclass(frozen=True, slots=True)
class Pause:
    """What is out goes on to its end; nothing new is handed out."""

    actor: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on; what a lost target kept from running is tried again first."""

    actor: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Drop a waiting candidate, or end the running one as cancelled; empty: whichever runs."""

    candidate_id: str = ""
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """Let a waiting candidate run `by` places later, or earlier where that is negative."""

    candidate_id: str
    by: int
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Let a candidate wait again that was cancelled, or that the target could not run."""

    candidate_id: str
    actor: str = ""


@dataclass(frozen=True, slots=True)
class StopAsked:
    reason: str
    actor: str = ""


Outcome = BaselineReady | BaselineFailed | TrialEnded | Confirmed | FinalVerified | WinnerKept
Command = Pause | Resume | Cancel | Move | Retry | StopAsked
Event = Outcome | TimePassed | Command

# Instructions: what to do next.


@dataclass(frozen=True, slots=True)
class PrepareBaseline:
    """See to it that a best stands for the contract."""


@dataclass(frozen=True, slots=True)
class RunScreen:
    candidate_id: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """Ask the gate whether the candidate is better than `against`, `finalists` being tested together."""

    candidate_id: str
    against: str
    finalists: int


@dataclass(frozen=True, slots=True)
class VerifyFinal:
    candidate_id: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Make the candidate the best and write it into the workspace."""

    candidate_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more to do; `outcome` is done, stopped or failed."""

    outcome: str
    reason: str


Work = PrepareBaseline | RunScreen | Confirm | VerifyFinal | Keep
Instruction = Work | Stop
