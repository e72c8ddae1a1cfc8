"""A sweep's events and its state as JSON objects, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from core.sweep import plan as said
from core.sweep.plan import Confirmed, Event, Plan, TrialEnded, Work
from core.sweep.standing import Dropped, SweepState
from core.words import JsonObject, Status

_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        said.BaselineReady, said.BaselineFailed, said.TrialEnded, said.Confirmed, said.FinalVerified,
        said.WinnerKept, said.TimePassed, said.Pause, said.Resume, said.Cancel, said.Move, said.Retry,
        said.StopAsked,
    )
}  # fmt: skip
_WORKS: dict[str, type[Work]] = {
    kind.__name__: kind
    for kind in (said.PrepareBaseline, said.RunScreen, said.Confirm, said.VerifyFinal, said.Keep)
}


def event_json(event: Event) -> JsonObject:
    """The event's fields, those that are as by default left out, and its kind under `event`."""
    written = {
        field.name: getattr(event, field.name)
        for field in fields(event)
        if getattr(event, field.name) != field.default
    }
    return {"event": type(event).__name__, **written}


def event_of(stored: JsonObject) -> Event:
    """The event that `event_json` wrote; ValueError when it is none."""
    kind = _EVENTS.get(str(stored.get("event")))
    if kind is None:
        raise ValueError(f"{stored.get('event')!r} is no event of a sweep")
    return kind(**_with_status({name: value for name, value in stored.items() if name != "event"}))


def _with_status(stored: JsonObject) -> JsonObject:
    return {**stored, "status": Status(stored["status"])} if "status" in stored else stored


def plan_json(plan: Plan) -> JsonObject:
    return {**asdict(plan), "candidates": list(plan.candidates)}


def plan_of(stored: JsonObject) -> Plan:
    return Plan(**{**stored, "candidates": tuple(stored["candidates"])})


def state_json(state: SweepState) -> JsonObject:
    """Every field; the instruction that is out with its kind under `work`."""
    out = None if state.out is None else {"work": type(state.out).__name__, **asdict(state.out)}
    return {**asdict(state), "plan": plan_json(state.plan), "out": out}


def state_of(stored: JsonObject) -> SweepState:
    """The state that `state_json` wrote, also when it has been through JSON."""
    ended: list[JsonObject] = stored["screened"]
    lost: list[JsonObject] = stored["lost"]
    return SweepState(
        **{
            **stored,
            "plan": plan_of(stored["plan"]),
            "out": _work_of(stored["out"]),
            "waiting": tuple(stored["waiting"]),
            "finalists": tuple(stored["finalists"]),
            "screened": tuple(TrialEnded(**_with_status(one)) for one in ended),
            "lost": tuple(TrialEnded(**_with_status(one)) for one in lost),
            "dropped": tuple(Dropped(**one) for one in stored["dropped"]),
            "confirmed": tuple(Confirmed(**one) for one in stored["confirmed"]),
        }
    )


def _work_of(stored: dict[str, Any] | None) -> Work | None:
    if stored is None:
        return None
    return _WORKS[stored["work"]](**{name: value for name, value in stored.items() if name != "work"})
