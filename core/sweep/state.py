"""The sweep as a pure state machine: events in, instructions out.

    baseline ──verified──▶ screen ──all run, or budget spent──▶ confirm ──▶ keep ──▶ done
        └──failed──▶ stopped     └──stop asked, target lost──▶ stopped

One instruction is out at a time. No I/O, no clock: the executor carries instructions out and feeds back
what happened, so that every order of events is a plain test.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from core.words import Status

INFRA_RETRIES = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """A linear plan: screen `candidates` in their order, then confirm the leaders against the best.

    `screen_decides`: the screen's scores are exact and of the deciding mode, so whoever is not better
    than the best there needs no confirmation. `budget_s` ends screening, not a running trial.
    """

    candidates: tuple[str, ...]
    lower_is_better: bool = True
    finalists: int = 3
    keep: bool = False
    budget_s: float | None = None
    screen_decides: bool = False


# Events: what happened.


@dataclass(frozen=True, slots=True)
class BaselineReady:
    """The best stands (or was just verified as the first one); its candidate id."""

    best_id: str


@dataclass(frozen=True, slots=True)
class BaselineFailed:
    reason: str


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A screening trial ended; `score` only with status ok."""

    candidate_id: str
    status: Status
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The gate's answer on `candidate_id` against `against`; `lost` when the target failed instead."""

    candidate_id: str
    against: str
    accepted: bool
    lost: bool = False


@dataclass(frozen=True, slots=True)
class FinalVerified:
    """The winner's final verification; `lost` when the target failed instead."""

    candidate_id: str
    passed: bool
    lost: bool = False


@dataclass(frozen=True, slots=True)
class WinnerKept:
    candidate_id: str


@dataclass(frozen=True, slots=True)
class TimePassed:
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class StopAsked:
    reason: str


Event = (
    BaselineReady
    | BaselineFailed
    | TrialEnded
    | Confirmed
    | FinalVerified
    | WinnerKept
    | TimePassed
    | StopAsked
)

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


Instruction = PrepareBaseline | RunScreen | Confirm | VerifyFinal | Keep | Stop


@dataclass(frozen=True, slots=True)
class SweepState:
    """Where a sweep stands. `winner` is what beat the best by the gate, directly compared."""

    plan: Plan
    phase: str = "baseline"  # baseline | screen | confirm | direct | verify | keep | done | stopped | failed
    best_id: str = ""
    waiting: tuple[str, ...] = ()
    screened: tuple[TrialEnded, ...] = ()
    infra: dict[str, int] = field(default_factory=dict)
    finalists: tuple[str, ...] = ()
    champion: str = ""
    first_champion: str = ""  # the one that beat the best itself, not only a later champion
    wins: int = 0
    winner: str = ""
    time_is_up: bool = False

    @property
    def ended(self) -> bool:
        return self.phase in ("done", "stopped", "failed")


def begin(plan: Plan) -> tuple[SweepState, Instruction]:
    """The first state and what to do first."""
    return SweepState(plan, waiting=plan.candidates), PrepareBaseline()


def step(state: SweepState, event: Event) -> tuple[SweepState, Instruction | None]:
    """The state after `event`, and the next instruction; None while one is still out, or after the end."""
    if state.ended:
        return state, None
    match event:
        case TimePassed(elapsed_s):
            budget_s = state.plan.budget_s
            return replace(state, time_is_up=budget_s is not None and elapsed_s >= budget_s), None
        case StopAsked(reason):
            return _stop(state, "stopped", reason)
        case BaselineFailed(reason) if state.phase == "baseline":
            return _stop(state, "failed", reason)
        case BaselineReady(best_id) if state.phase == "baseline":
            return _next_screen(replace(state, phase="screen", best_id=best_id))
        case TrialEnded() if state.phase == "screen" and state.waiting[:1] == (event.candidate_id,):
            return _screened(state, event)
        case Confirmed() if state.phase in ("confirm", "direct"):
            return _confirmed(state, event)
        case FinalVerified() if state.phase == "verify":
            return _verified(state, event)
        case WinnerKept() if state.phase == "keep":
            return _stop(state, "done", "kept")
    raise ValueError(f"{type(event).__name__} does not fit phase {state.phase}")


def _stop(state: SweepState, outcome: str, reason: str) -> tuple[SweepState, Instruction]:
    return replace(state, phase=outcome), Stop(outcome, reason)


def _screened(state: SweepState, event: TrialEnded) -> tuple[SweepState, Instruction]:
    if event.status is Status.CANCELLED:
        return _stop(state, "stopped", "cancelled")
    if event.status is Status.INFRA:
        tries = state.infra.get(event.candidate_id, 0) + 1
        if tries > INFRA_RETRIES:
            return _stop(state, "stopped", "the target cannot run trials")
        return replace(state, infra={**state.infra, event.candidate_id: tries}), RunScreen(event.candidate_id)
    return _next_screen(replace(state, screened=(*state.screened, event), waiting=state.waiting[1:]))


def _next_screen(state: SweepState) -> tuple[SweepState, Instruction]:
    if state.waiting and not state.time_is_up:
        return state, RunScreen(state.waiting[0])
    finalists = leaders(state)
    if not finalists:
        return _stop(state, "done", "no candidate passed the screen with a chance against the best")
    state = replace(state, phase="confirm", finalists=finalists, champion=state.best_id)
    return state, _confirm_next(state)


def leaders(state: SweepState) -> tuple[str, ...]:
    """The candidates to confirm: the best screened scores, the standing best itself left out."""
    passed = [trial for trial in state.screened if trial.status is Status.OK and trial.score is not None]
    sign = 1.0 if state.plan.lower_is_better else -1.0
    ranked = sorted(passed, key=lambda trial: sign * (trial.score or 0.0))
    if state.plan.screen_decides:
        bar = next((trial.score for trial in passed if trial.candidate_id == state.best_id), None)
        if bar is not None:
            ranked = [trial for trial in ranked if sign * (trial.score or 0.0) < sign * bar]
    others = [trial.candidate_id for trial in ranked if trial.candidate_id != state.best_id]
    return tuple(others[: state.plan.finalists])


def _confirm_next(state: SweepState) -> Confirm:
    return Confirm(state.finalists[0], state.champion, min(state.plan.finalists, len(leaders(state))))


def _confirmed(state: SweepState, event: Confirmed) -> tuple[SweepState, Instruction]:
    if event.lost:
        return _stop(state, "stopped", "the target cannot run trials")
    if state.phase == "direct":
        winner = event.candidate_id if event.accepted else state.first_champion
        return _settle(replace(state, winner=winner))
    rest = state.finalists[1:]
    if event.accepted:
        first = state.first_champion or event.candidate_id
        state = replace(state, champion=event.candidate_id, first_champion=first, wins=state.wins + 1)
    state = replace(state, finalists=rest)
    if rest:
        return state, _confirm_next(state)
    if state.wins == 0:
        return _settle(state)
    if state.wins == 1:
        return _settle(replace(state, winner=state.champion))
    # A chain of wins over-claims: the last champion is measured against the best itself.
    return replace(state, phase="direct"), Confirm(state.champion, state.best_id, 1)


def _settle(state: SweepState) -> tuple[SweepState, Instruction]:
    if not state.winner:
        return _stop(state, "done", "no candidate is better than the best")
    return replace(state, phase="verify"), VerifyFinal(state.winner)


def _verified(state: SweepState, event: FinalVerified) -> tuple[SweepState, Instruction]:
    if event.lost:
        return _stop(state, "stopped", "the target cannot run trials")
    if not event.passed:
        return _stop(replace(state, winner=""), "done", "the winner failed the final verification")
    if not state.plan.keep:
        return _stop(state, "done", "a better candidate was found; it was not asked to be kept")
    return replace(state, phase="keep"), Keep(event.candidate_id)
