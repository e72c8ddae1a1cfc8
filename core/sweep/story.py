"""What happened in a sweep, as lines to read; and what must hold of a state, whatever happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields

from core.sweep.commands import refusal
from core.sweep.plan import (
    Cancel,
    Confirm,
    Event,
    Instruction,
    Move,
    Pause,
    Plan,
    Resume,
    Retry,
    RunScreen,
    StopAsked,
)
from core.sweep.standing import SweepState
from core.sweep.state import INFRA_RETRIES, MOST_INFRA_IN_A_ROW, begin, step

_COMMANDS = (Pause, Resume, Cancel, Move, Retry, StopAsked)


def story(plan: Plan, events: Iterable[Event], candidate_id: str = "") -> list[str]:
    """A line for each event: what it was, and what it led to; with a candidate only those that name it."""
    state, first = begin(plan)
    lines = [f"begin -> {_words(first)}"]
    for event in events:
        refused = refusal(state, event) if isinstance(event, _COMMANDS) else ""
        state, following = step(state, event)
        came = f"refused: {refused}" if refused else _words(following) if following else _rest(state)
        lines.append(f"{_words(event)} -> {came}")
    return [line for line in lines if candidate_id in line]


def _words(said: Event | Instruction) -> str:
    """`TrialEnded(a, ok, 1.5)`: the values that are not as by default."""
    shown = [
        str(getattr(said, field.name)) for field in fields(said) if getattr(said, field.name) != field.default
    ]
    return f"{type(said).__name__}({', '.join(shown)})" if shown else type(said).__name__


def _rest(state: SweepState) -> str:
    if state.ended:
        return state.phase
    asked = f"ending {state.at_work}" if state.ending else f"{_words(state.out)} is out" if state.out else ""
    paused = f"paused by {state.paused_by}" if state.paused_by else ""
    return ", ".join(part for part in (asked, paused) if part)


def faults(state: SweepState) -> list[str]:
    """Sentences on what does not hold of a state and always must; none of a sound one."""
    return [*_place_faults(state), *_out_faults(state), *_count_faults(state), *_winner_faults(state)]


def _place_faults(state: SweepState) -> Iterator[str]:
    places = Counter(state.waiting)
    places.update([state.running] if state.running else [])
    for group in (state.screened, state.dropped, state.lost):
        places.update(one.candidate_id for one in group)
    for candidate_id in state.plan.candidates:
        if places[candidate_id] != 1:
            yield f"{candidate_id} is in {places[candidate_id]} places"
    for candidate_id in places.keys() - set(state.plan.candidates):
        yield f"{candidate_id} is not of the plan"


def _out_faults(state: SweepState) -> Iterator[str]:
    if state.ended and (state.out is not None or state.paused_by):
        yield "ended, and something is out or paused"
    if not state.ended and not state.paused_by and state.out is None:
        yield "nothing is out, though it runs"
    if state.ending and not isinstance(state.out, RunScreen | Confirm):
        yield f"{state.out} is asked to end"


def _count_faults(state: SweepState) -> Iterator[str]:
    if state.infra_in_a_row > MOST_INFRA_IN_A_ROW + 1:
        yield f"{state.infra_in_a_row} trials in a row the target could not run"
    given_up = {one.candidate_id for one in state.lost}
    for candidate_id, tries in state.infra.items():
        most = INFRA_RETRIES + (candidate_id in given_up)
        if tries > most and candidate_id not in {one.candidate_id for one in state.screened}:
            yield f"{candidate_id} was tried {tries} times, at most {most}"
    if any(one.status in ("infra", "cancelled") for one in state.screened):
        yield "a trial counts that says nothing of its candidate"


def _winner_faults(state: SweepState) -> Iterator[str]:
    accepted = {(one.candidate_id, one.against) for one in state.confirmed if one.accepted}
    if state.winner and (state.winner, state.best_id) not in accepted:
        yield f"{state.winner} has won and was not shown to be better than the best"
    if state.phase == "keep" and not (state.plan.keep and state.winner):
        yield "something is kept that nobody asked for"
