"""The sweep as a pure state machine: events in, instructions out.

    baseline ──verified──▶ screen ──all run, or budget spent──▶ confirm ──▶ keep ──▶ done
        └──failed──▶ failed      └──stop asked, target lost──▶ stopped

One instruction is out at a time, none is handed out while the sweep is paused. No I/O, no clock: the
executor carries instructions out and feeds back what happened, so that every order of events is a plain
test, and the events of a sweep are all that its state is made of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.sweep.commands import ended, obeyed, refusal
from core.sweep.plan import (
    BaselineFailed,
    BaselineReady,
    Confirm,
    Confirmed,
    Event,
    FinalVerified,
    Instruction,
    Keep,
    Outcome,
    Plan,
    PrepareBaseline,
    RunScreen,
    Stop,
    TimePassed,
    TrialEnded,
    VerifyFinal,
    WinnerKept,
    Work,
)
from core.sweep.standing import TARGET, Dropped, SweepState
from core.sweep.together import screened_together
from core.words import Status

INFRA_RETRIES = 1
MOST_INFRA_IN_A_ROW = 2  # one more, whichever the candidates, and the target is taken to be lost
TARGET_LOST = "the target cannot run trials"


def begin(plan: Plan) -> tuple[SweepState, Instruction]:
    """The first state and what to do first."""
    state, instruction = _hand_out(SweepState(plan, waiting=tuple(dict.fromkeys(plan.candidates))))
    assert instruction is not None
    return state, instruction


def step(state: SweepState, event: Event) -> tuple[SweepState, Instruction | None]:
    """The state after `event`, and the next instruction; None while one is out, paused, or after the end.

    A command that does not fit (see `refusal`) changes nothing. ValueError for an outcome of something
    that is not out.
    """
    if state.ended:
        return state, None
    match event:
        case TimePassed(elapsed_s):
            budget_s = state.plan.budget_s
            time_is_up = budget_s is not None and elapsed_s >= budget_s
            return replace(state, elapsed_s=elapsed_s, time_is_up=time_is_up), None
        case BaselineReady() | BaselineFailed() | TrialEnded() | Confirmed() | FinalVerified() | WinnerKept():
            return _hand_out(_heard(state, event))
    return (state, None) if refusal(state, event) else _hand_out(obeyed(state, event))


def replay(plan: Plan, events: Iterable[Event]) -> SweepState:
    """The state that these events lead to, in time that grows with their number."""
    state, _ = begin(plan)
    heard, start = tuple(events), 0
    while start < len(heard):
        state, count = screened_together(state, heard, start)
        start += count
        if count == 0:
            state, _ = step(state, heard[start])
            start += 1
    return state


def _hand_out(state: SweepState) -> tuple[SweepState, Instruction | None]:
    """What to do next where the state stands, when anything may be done."""
    if state.ended:
        return state, Stop(state.phase, state.reason)
    if state.paused_by or state.out is not None:
        return state, None
    if state.phase == "screen":
        if not state.waiting or state.time_is_up:
            return _hand_out(_screening_over(state))
        state = replace(state, out=RunScreen(state.waiting[0]), waiting=state.waiting[1:])
        return state, state.out
    state = replace(state, out=_due(state))
    return state, state.out


def _due(state: SweepState) -> Work:
    """The instruction of the phase."""
    match state.phase:
        case "baseline":
            return PrepareBaseline()
        case "confirm":
            together = min(state.plan.finalists, len(leaders(state)))
            return Confirm(state.finalists[0], state.champion, together)
        case "direct":
            return Confirm(state.champion, state.best_id, 1)
        case "verify":
            return VerifyFinal(state.winner)
    assert state.phase == "keep"
    return Keep(state.winner)


def _screening_over(state: SweepState) -> SweepState:
    if state.lost and state.infra_in_a_row:
        return _target_lost(state)
    finalists = leaders(state)
    if not finalists:
        return ended(state, "done", "no candidate passed the screen with a chance against the best")
    return replace(state, phase="confirm", finalists=finalists, champion=state.best_id)


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


def _target_lost(state: SweepState) -> SweepState:
    if state.plan.waits_for_target:
        return replace(state, paused_by=TARGET)
    return ended(state, "stopped", TARGET_LOST)


def _heard(state: SweepState, outcome: Outcome) -> SweepState:
    """The state once nothing is out any more, by what came of it."""
    if not _answers(state.out, outcome):
        raise ValueError(f"{type(outcome).__name__} does not fit phase {state.phase} with {state.out} out")
    state = replace(
        state,
        out=None,
        ending=False,
        last_trial=max(state.last_trial, getattr(outcome, "trial_id", 0)),
        last_decision=max(state.last_decision, getattr(outcome, "decision_id", 0)),
    )
    match outcome:
        case BaselineReady(best_id, trial_id):
            return replace(state, phase="screen", best_id=best_id, baseline_trial=trial_id)
        case BaselineFailed(reason, lost):
            waits = lost and state.plan.waits_for_target
            return _target_lost(state) if waits else ended(state, "failed", reason)
        case TrialEnded():
            return _screened(state, outcome)
        case Confirmed():
            return _confirmed(replace(state, confirmed=(*state.confirmed, outcome)), outcome)
        case FinalVerified():
            return _verified(state, outcome)
        case WinnerKept(_, unwritten):
            return ended(replace(state, unwritten=unwritten), "done", "kept")


def _answers(out: Work | None, outcome: Outcome) -> bool:
    match outcome:
        case BaselineReady() | BaselineFailed():
            return isinstance(out, PrepareBaseline)
        case TrialEnded(candidate_id):
            return out == RunScreen(candidate_id)
        case Confirmed(candidate_id, against):
            return isinstance(out, Confirm) and (out.candidate_id, out.against) == (candidate_id, against)
        case FinalVerified(candidate_id):
            return out == VerifyFinal(candidate_id)
        case WinnerKept(candidate_id):
            return out == Keep(candidate_id)


def _screened(state: SweepState, ended_: TrialEnded) -> SweepState:
    if ended_.status is Status.CANCELLED:
        return replace(state, dropped=(*state.dropped, Dropped(ended_.candidate_id, 0, ended_.trial_id)))
    if ended_.status is Status.INFRA:
        return _not_run(state, ended_)
    return replace(state, screened=(*state.screened, ended_), infra_in_a_row=0)


def _not_run(state: SweepState, ended_: TrialEnded) -> SweepState:
    """Once more at once; then it is set aside, and a sweep that does not wait for its target ends.

    Several failures in a row are the target's own, whichever the candidates.
    """
    candidate_id = ended_.candidate_id
    tries = state.infra.get(candidate_id, 0) + 1
    state = replace(
        state, infra={**state.infra, candidate_id: tries}, infra_in_a_row=state.infra_in_a_row + 1
    )
    if tries > INFRA_RETRIES:
        state = replace(state, lost=(*state.lost, ended_))
    else:
        state = replace(state, waiting=(candidate_id, *state.waiting))
    in_a_row = MOST_INFRA_IN_A_ROW if state.plan.waits_for_target else INFRA_RETRIES
    return _target_lost(state) if state.infra_in_a_row > in_a_row else state


def _confirmed(state: SweepState, event: Confirmed) -> SweepState:
    if event.lost:
        return _target_lost(state)
    if state.phase == "direct":
        winner = event.candidate_id if event.accepted else state.first_champion
        return _settled(replace(state, winner=winner))
    if event.accepted:
        first = state.first_champion or event.candidate_id
        state = replace(state, champion=event.candidate_id, first_champion=first, wins=state.wins + 1)
    state = replace(state, finalists=state.finalists[1:])
    if state.finalists:
        return state
    if state.wins > 1:
        # A chain of wins over-claims: the last champion is measured against the best itself.
        return replace(state, phase="direct")
    return _settled(replace(state, winner=state.champion if state.wins else ""))


def _settled(state: SweepState) -> SweepState:
    if not state.winner:
        return ended(state, "done", "no candidate is better than the best")
    return replace(state, phase="verify")


def _verified(state: SweepState, event: FinalVerified) -> SweepState:
    if event.lost:
        return _target_lost(state)
    state = replace(state, final_trial=event.trial_id)
    if not event.passed:
        return ended(replace(state, winner=""), "done", "the winner failed the final verification")
    if not state.plan.keep:
        return ended(state, "done", "a better candidate was found; it was not asked to be kept")
    return replace(state, phase="keep")
