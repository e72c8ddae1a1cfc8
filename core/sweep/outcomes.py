"""The events that tell what came of an instruction, from what was done or from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from core.decide import Comparison
from core.engine import Engine
from core.records import TrialRecord
from core.sweep.plan import Confirm, Confirmed, FinalVerified, Outcome, RunScreen, TrialEnded, VerifyFinal
from core.sweep.report import comparison_of
from core.sweep.standing import SweepState
from core.words import NEVER_RESTORE, Status

CANCELLED = "cancelled"


def screened(trial: TrialRecord) -> TrialEnded:
    assert trial.status is not None
    return TrialEnded(trial.candidate_id, trial.status, trial.score, trial.id)


def verified(trial: TrialRecord) -> FinalVerified:
    lost = trial.status in NEVER_RESTORE
    return FinalVerified(trial.candidate_id, trial.status is Status.OK, lost, trial.id)


def confirmed(comparison: Comparison) -> Confirmed:
    record, failed = comparison.record, comparison.failed
    return Confirmed(
        comparison.candidate_id,
        comparison.best_id,
        accepted=comparison.decision is not None and comparison.decision.accepted,
        lost=failed is not None and failed.outcome.status is Status.INFRA,
        decision_id=record.id if record else 0,
        trial_id=failed.record.id if failed else 0,
        at_fault=comparison.at_fault,
        reason=comparison.reason,
    )


def unheard(engine: Engine, sweep_id: int, state: SweepState) -> Outcome | None:
    """What came of the instruction that is out, when that is on record and no event told of it.

    None: it must be carried out, from its beginning where it was cut off.
    """
    trials = engine.store.sweep_trials(sweep_id, state.last_trial)
    found: Outcome | None = None
    match state.out:
        case RunScreen(candidate_id):
            found = _last(trials, "screen", candidate_id, screened)
        case Confirm():
            found = _decided(engine, sweep_id, state, state.out)
        case VerifyFinal(candidate_id):
            found = _last(trials, "verify", candidate_id, verified)
    return found or (_skipped(state, trials) if state.ending else None)


def _last(
    trials: Iterable[TrialRecord], purpose: str, candidate_id: str, told: Callable[[TrialRecord], Outcome]
) -> Outcome | None:
    """Of the trials that say something the last one; a verifier's pass waits for its score behind it."""
    found = [
        one
        for one in trials
        if (one.purpose, one.candidate_id) == (purpose, candidate_id) and one.status is not Status.CANCELLED
    ]
    if not found or (found[-1].status is Status.OK and found[-1].score is None):
        return None
    return told(found[-1])


def _decided(engine: Engine, sweep_id: int, state: SweepState, out: Confirm) -> Outcome | None:
    for record in reversed(engine.store.sweep_decisions(sweep_id, state.last_decision)):
        if (record.candidate_id, record.best_id) == (out.candidate_id, out.against):
            told = Confirmed(out.candidate_id, out.against, False, decision_id=record.id)
            return confirmed(comparison_of(engine.store, told))
    return None


def _skipped(state: SweepState, trials: Iterable[TrialRecord]) -> Outcome:
    """Somebody cancelled what is out: a screening with its ended trial, or a comparison."""
    if isinstance(state.out, Confirm):
        out = state.out
        return Confirmed(out.candidate_id, out.against, False, at_fault="nobody", reason=CANCELLED)
    ended = [one.id for one in trials if one.candidate_id == state.at_work and one.purpose == "screen"]
    return TrialEnded(state.at_work, Status.CANCELLED, trial_id=ended[-1] if ended else 0)
