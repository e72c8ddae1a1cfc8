"""What people ask of a running sweep: whether it fits where the sweep stands, and what it does there."""

from __future__ import annotations

from dataclasses import replace

from core.sweep.plan import Cancel, Command, Confirm, Keep, Move, Pause, Resume, Retry, RunScreen, StopAsked
from core.sweep.standing import TARGET, Dropped, SweepState

_SHORT_ID = 12
_RETRIED = ("cancelled", "lost")


def refusal(state: SweepState, command: Command) -> str:
    """Why the command cannot be done now, as a sentence; empty when it can."""
    if state.ended:
        return f"the sweep has ended ({state.phase}: {state.reason})"
    match command:
        case Pause():
            return f"the sweep is paused already, by {_who(state.paused_by)}" if state.paused_by else ""
        case Resume():
            return "" if state.paused_by else "the sweep is not paused"
        case StopAsked():
            return "the winner is being kept, which takes a moment" if isinstance(state.out, Keep) else ""
        case Cancel(candidate_id):
            return _no_cancel(state, candidate_id or state.at_work)
        case Move(candidate_id):
            return _no_move(state, candidate_id)
        case Retry(candidate_id):
            return _no_retry(state, candidate_id)


def _who(actor: str) -> str:
    return "its target, which could not run trials" if actor == TARGET else actor


def _no_cancel(state: SweepState, candidate_id: str) -> str:
    if not candidate_id:
        if state.out is None:
            return "nothing is running"
        return "the best is being verified, which no sweep can do without; to end the sweep: stop"
    place = state.place_of(candidate_id)
    if candidate_id == state.at_work:
        if state.ending:
            return f"{_short(candidate_id)} is being cancelled already"
        if not isinstance(state.out, RunScreen | Confirm):
            return f"{_short(candidate_id)} has won and is in its final verification; to end the sweep: stop"
        return ""
    return "" if place == "waiting" else _told(candidate_id, place, "so there is nothing to cancel")


def _no_move(state: SweepState, candidate_id: str) -> str:
    place = state.place_of(candidate_id)
    return "" if place == "waiting" else _told(candidate_id, place, "only waiting candidates can be moved")


def _no_retry(state: SweepState, candidate_id: str) -> str:
    place = state.place_of(candidate_id)
    if place not in _RETRIED:
        why = "only cancelled ones, and those the target could not run, can be tried again"
        return _told(candidate_id, place, why)
    return "" if state.phase in ("baseline", "screen") else "screening is over"


def _told(candidate_id: str, place: str, why: str) -> str:
    if not place:
        return f"{_short(candidate_id)} is no candidate of this sweep"
    told = {
        "running": "is running",
        "waiting": "is waiting",
        "cancelled": "is cancelled",
        "lost": "could not be run by the target",
    }
    return f"{_short(candidate_id)} {told.get(place, f'was screened ({place})')}; {why}"


def _short(candidate_id: str) -> str:
    return candidate_id[:_SHORT_ID]


def obeyed(state: SweepState, command: Command) -> SweepState:
    """The state once the command, which fits, is done; what to do next is the machine's."""
    match command:
        case Pause(actor):
            return replace(state, paused_by=actor or "somebody")
        case Resume():
            return _resumed(state)
        case StopAsked(reason):
            return ended(state, "stopped", reason)
        case Cancel(candidate_id) if candidate_id in state.waiting:
            position = state.waiting.index(candidate_id)
            dropped = (*state.dropped, Dropped(candidate_id, position))
            return replace(state, waiting=_without(state.waiting, candidate_id), dropped=dropped)
        case Cancel():
            return replace(state, ending=True)
        case Move(candidate_id, by):
            position = max(0, state.waiting.index(candidate_id) + by)
            return replace(state, waiting=_put(_without(state.waiting, candidate_id), candidate_id, position))
        case Retry(candidate_id):
            return _retried(state, candidate_id)


def _resumed(state: SweepState) -> SweepState:
    if state.paused_by != TARGET:
        return replace(state, paused_by="")
    again = tuple(one.candidate_id for one in state.lost)
    return replace(state, paused_by="", waiting=(*again, *state.waiting), lost=(), infra={}, infra_in_a_row=0)


def _retried(state: SweepState, candidate_id: str) -> SweepState:
    """A cancelled one waits where it did; one the target could not run waits next, with all its tries."""
    found = (one.position for one in state.dropped if one.candidate_id == candidate_id)
    infra = {one: tries for one, tries in state.infra.items() if one != candidate_id}
    return replace(
        state,
        waiting=_put(state.waiting, candidate_id, next(found, 0)),
        dropped=tuple(one for one in state.dropped if one.candidate_id != candidate_id),
        lost=tuple(one for one in state.lost if one.candidate_id != candidate_id),
        infra=infra,
    )


def ended(state: SweepState, outcome: str, reason: str) -> SweepState:
    """Ended so; a candidate that ran has no counted result and waits, for ever."""
    waiting = (state.running, *state.waiting) if state.running else state.waiting
    return replace(state, phase=outcome, reason=reason, waiting=waiting, out=None, ending=False, paused_by="")


def _without(waiting: tuple[str, ...], candidate_id: str) -> tuple[str, ...]:
    return tuple(one for one in waiting if one != candidate_id)


def _put(waiting: tuple[str, ...], candidate_id: str, position: int) -> tuple[str, ...]:
    return (*waiting[:position], candidate_id, *waiting[position:])
