"""Going on with a sweep whose process has gone: from what its rows say, each trial counted once."""

from __future__ import annotations

from core.engine import Engine
from core.errors import ArgumentFault, ChangedMeanwhile, ConfigFault
from core.measure.errors import EvidenceFault
from core.records import Candidate, FileSet, SweepRecord
from core.store import Store
from core.sweep.course import Course
from core.sweep.json_form import event_of
from core.sweep.plan import Keep, StopAsked
from core.sweep.report import SweepReport, report_of
from core.sweep.request import SweepRequest, plan_of_record, request_of
from core.sweep.standing import SweepState
from core.sweep.state import replay

_UNREADABLE = (KeyError, TypeError, ValueError, EvidenceFault)


def resumed(engine: Engine, record: SweepRecord) -> tuple[Course, SweepRequest]:
    """The sweep, which has not ended, as its events left it, to go on with.

    ArgumentFault when it runs on another target. ChangedMeanwhile when what it rests on is not what it
    was; the sweep is stopped then.
    """
    if record.target != engine.target.name:
        raise ArgumentFault(
            f"sweep {record.id} runs on {record.target}, and this is {engine.target.name}",
            f"name it: --target {record.target}",
        )
    try:
        request, state = _read(engine.store, record)
    except _UNREADABLE as error:
        engine.store.stop_sweep(record, "another version of Kerneldeck began it")
        raise _refused(record, f"its record cannot be read ({type(error).__name__}: {error})") from None
    reason = _changed(engine, record, request, state)
    course = Course(engine, record, state)
    if reason:
        course.hear(StopAsked(reason, engine.actor))
        course.close("stopped", reason)
        raise _refused(record, reason)
    return course, request


def _refused(record: SweepRecord, reason: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(
        f"sweep {record.id} cannot go on and is stopped: {reason}",
        "its trials are kept; kerneldeck sweep config starts a new one",
    )


def reported(store: Store, record: SweepRecord) -> SweepReport:
    """What an ended sweep did; ArgumentFault when its record does not say."""
    try:
        request, state = _read(store, record)
    except _UNREADABLE:
        raise ArgumentFault(
            f"sweep {record.id} has ended ({record.state}), and an older version kept no report of it",
            "its trials are in the history: kerneldeck rank",
        ) from None
    best = store.checkpoint(state.best_id, record.contract_id) if state.best_id else None
    known = dict(request.candidates)
    if best is not None:
        known[best.id] = Candidate(best.files, best.overlay)
    return report_of(store, record, state, known, Candidate(request.current))


def _read(store: Store, record: SweepRecord) -> tuple[SweepRequest, SweepState]:
    state = replay(plan_of_record(record.plan), map(event_of, store.sweep_events(record.id)))
    return request_of(record.plan, lambda one: _files(store, one), record.detached), state


def _files(store: Store, candidate_id: str) -> FileSet | None:
    found = store.candidate(candidate_id)
    return None if found is None else found.files


def _changed(engine: Engine, record: SweepRecord, request: SweepRequest, state: SweepState) -> str:
    """What is not as the sweep left it; empty when all is."""
    if state.ended:
        return ""
    if record.contract_id != engine.contract_id:
        return "its contract is another now: protected files, objective, modes, device, driver or toolchain"
    try:
        now = dict(engine.files.current())
    except ConfigFault as fault:
        return fault.sentence
    keeping = isinstance(state.out, Keep)  # then it may hold the winner, and an edit is told at the end
    if now != dict(request.current) and not keeping:
        names = sorted(
            name for name in {*now, *request.current} if now.get(name) != request.current.get(name)
        )
        return f"the workspace was edited since: {', '.join(names)}"
    best = engine.store.best(engine.contract_id)
    standing = {state.best_id, state.winner} if keeping else {state.best_id}
    if state.best_id and (best is None or best.id not in standing):
        return "another best stands now"
    return ""
