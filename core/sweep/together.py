"""Many screenings at once, as a replay of a long sweep meets them: one by one each would copy the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from core.sweep.plan import Event, RunScreen, TimePassed, TrialEnded
from core.sweep.standing import SweepState
from core.words import Status

_COUNTED = frozenset(Status) - {Status.CANCELLED, Status.INFRA}


def screened_together(state: SweepState, events: Sequence[Event], start: int) -> tuple[SweepState, int]:
    """The state after the longest run of events from `start` on that only screen what waits, in its order.

    And how many they are; what `core.sweep.state.step` makes of them one by one is the same state. None of
    them is the last screening, and none spends the budget: whatever else follows from those is for `step`.
    """
    if not isinstance(state.out, RunScreen) or state.paused_by or state.time_is_up:
        return state, 0
    found, elapsed_s, count = _run(state, events, start)
    state = replace(state, elapsed_s=elapsed_s)
    if not found:
        return state, count
    together = replace(
        state,
        out=RunScreen(state.waiting[len(found) - 1]),
        waiting=state.waiting[len(found) :],
        screened=(*state.screened, *found),
        infra_in_a_row=0,
        ending=False,
        last_trial=max(state.last_trial, *(one.trial_id for one in found)),
    )
    return together, count


def _run(state: SweepState, events: Sequence[Event], start: int) -> tuple[list[TrialEnded], float, int]:
    """The screenings of the run, the time after it, and of how many events it is."""
    found: list[TrialEnded] = []
    elapsed_s, runs, budget_s = state.elapsed_s, state.running, state.plan.budget_s
    for count in range(len(events) - start):
        event = events[start + count]
        if isinstance(event, TimePassed) and (budget_s is None or event.elapsed_s < budget_s):
            elapsed_s = event.elapsed_s
        elif _counts(event, runs) and len(found) < len(state.waiting):
            runs = state.waiting[len(found)]
            found.append(event)
        else:
            return found, elapsed_s, count
    return found, elapsed_s, len(events) - start


def _counts(event: Event, runs: str) -> TypeGuard[TrialEnded]:
    return isinstance(event, TrialEnded) and event.candidate_id == runs and event.status in _COUNTED
