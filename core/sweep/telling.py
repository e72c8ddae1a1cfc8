"""What a sweep's watchers are told of an event of its machine."""

from __future__ import annotations

from collections import Counter

from core import events as told
from core.records import SweepRecord
from core.sweep.plan import Cancel, Event, Move, Pause, Resume, Retry, TrialEnded
from core.sweep.standing import TARGET, SweepState
from core.words import Status


def began(record: SweepRecord, state: SweepState) -> told.SweepBegan:
    """A sweep that starts, or goes on from where its events led."""
    waiting = (state.running, *state.waiting) if state.running else state.waiting
    sign = 1.0 if state.plan.lower_is_better else -1.0
    scored = [(one.score, one.candidate_id) for one in state.screened if one.score is not None]
    best_score, best_candidate = min(scored, key=lambda one: sign * one[0], default=(None, ""))
    return told.SweepBegan(
        record.id, waiting, len(state.plan.candidates), counts(state), record.actor, record.detached,
        state.paused_by, best_score, best_candidate,
    )  # fmt: skip


def counts(state: SweepState) -> dict[str, int]:
    """How many candidates ended with each status."""
    found = Counter(one.status.value for one in (*state.screened, *state.lost))
    found.update([Status.CANCELLED.value] * len(state.dropped))
    return dict(found)


def changes(sweep_id: int, before: SweepState, event: Event, after: SweepState) -> list[told.Event]:
    """What to tell once the machine has heard `event`, which fitted."""
    lines: list[told.Event] = []
    match event:
        case Pause():
            lines.append(told.SweepPaused(sweep_id, after.paused_by))
        case Resume(actor):
            lines.append(told.SweepResumed(sweep_id, actor))
            again = before.lost if before.paused_by == TARGET else ()
            for position, one in enumerate(again):
                lines.append(told.CandidateRequeued(sweep_id, one.candidate_id, Status.INFRA, position))
        case Cancel(candidate_id) if candidate_id in before.waiting:
            lines.append(told.CandidateScreened(sweep_id, candidate_id, Status.CANCELLED))
        case Move(candidate_id):
            position = after.waiting.index(candidate_id)
            lines.append(told.CandidateMoved(sweep_id, candidate_id, position))
        case Retry(candidate_id):
            was = Status.INFRA if before.place_of(candidate_id) == "lost" else Status.CANCELLED
            position = after.waiting.index(candidate_id)
            lines.append(told.CandidateRequeued(sweep_id, candidate_id, was, position))
        case TrialEnded(candidate_id, status, score):
            lines.append(told.CandidateScreened(sweep_id, candidate_id, status, score))
            if after.place_of(candidate_id) in ("running", "waiting"):
                lines.append(told.CandidateRequeued(sweep_id, candidate_id, status, 0))
    if after.paused_by == TARGET != before.paused_by:
        lines.append(told.SweepPaused(sweep_id, TARGET))
    return lines
