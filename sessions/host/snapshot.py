"""All that a host shows of a workspace, as one frozen value, and how each event changes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core import events as engine
from core.records import TrialRecord
from core.words import Status
from sessions.host import events as host
from sessions.host.codec import from_json, to_json
from sessions.host.events import ClientView, Event, Numbered, TargetView, Work, WorkspaceSeen
from sessions.host.lines import line_of

ENDED_KEPT = 50
RUN, PAUSED = "RUN", "PAUSED"


@dataclass(frozen=True, slots=True)
class SweepView:
    """The sweep that runs, or the last one that did.

    `state` is RUN, PAUSED, DONE, STOPPED or FAILED; `phase` one of core.sweep's. `waiting` and `running`
    are candidate ids (their overlays are in the store's table `candidates`); `counts` is by status.
    `best_score` is the best screening score so far, in the objective's unit. `timed`, `timed_s` and
    `timed_s2` are number, sum and sum of squares of the screening trials' seconds.
    """

    id: int
    total: int
    actor: str = ""
    detached: bool = False
    state: str = RUN
    paused_by: str = ""
    phase: str = ""
    waiting: tuple[str, ...] = ()
    running: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
    best_score: float | None = None
    best_candidate: str = ""
    began_s: float = 0.0
    ended_s: float | None = None
    reason: str = ""
    timed: int = 0
    timed_s: float = 0.0
    timed_s2: float = 0.0

    @property
    def ended(self) -> bool:
        return self.state not in (RUN, PAUSED)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state after event number `seq`. Times are Unix seconds.

    `ended` are the last trials that ended, newest first; `trial` the one that runs; `gate` how far the
    decision being made has got. `work` is what runs, `queue` what waits for its turn. `annotated` is the
    number of the event by which somebody last said something of a record.
    """

    seq: int = 0
    pid: int = 0
    version: str = ""
    began_s: float = 0.0
    workspace: WorkspaceSeen | None = None
    target: TargetView = field(default_factory=TargetView)
    work: Work | None = None
    queue: tuple[Work, ...] = ()
    sweep: SweepView | None = None
    trial: TrialRecord | None = None
    gate: engine.GateStep | None = None
    ended: tuple[TrialRecord, ...] = ()
    clients: tuple[ClientView, ...] = ()
    last: str = ""
    last_s: float = 0.0
    leaving: str = ""
    annotated: int = 0

    def to_json(self) -> dict[str, object]:
        return to_json(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, written: object) -> Snapshot:
        """ValueError when it is none."""
        return from_json(cls, written)


def fold(snapshot: Snapshot, numbered: Numbered) -> Snapshot:
    """The snapshot after the event; an event that is in it already changes nothing."""
    if numbered.seq <= snapshot.seq:
        return snapshot
    changed = _folded(replace(snapshot, seq=numbered.seq), numbered)
    line = line_of(numbered)
    return replace(changed, last=line, last_s=numbered.when_s) if line else changed


def _folded(snapshot: Snapshot, numbered: Numbered) -> Snapshot:
    event = numbered.event
    match event:
        case host.WorkspaceSeen():
            return replace(snapshot, workspace=event)
        case host.TargetSeen(target):
            return replace(snapshot, target=target)
        case host.ClientCame(client):
            return replace(snapshot, clients=(*snapshot.clients, client))
        case host.ClientLeft(number):
            return replace(snapshot, clients=tuple(one for one in snapshot.clients if one.number != number))
        case host.Annotated():
            return replace(snapshot, annotated=numbered.seq)
        case host.HostLeaves(reason):
            return replace(snapshot, leaving=reason)
        case host.WorkAsked() | host.WorkBegan() | host.WorkEnded() | host.WorkKept():
            return _with_work(snapshot, event, numbered.when_s)
        case engine.TrialBegan() | engine.TrialEnded() | engine.GateStep():
            return _with_trial(snapshot, event)
        case engine.SweepBegan():
            return replace(snapshot, sweep=_begun(event, numbered.when_s))
    if snapshot.sweep is None:
        return snapshot
    return replace(snapshot, sweep=_with_event(snapshot.sweep, event, snapshot, numbered.when_s))


def _with_work(
    snapshot: Snapshot, event: host.WorkAsked | host.WorkBegan | host.WorkEnded | host.WorkKept, now_s: float
) -> Snapshot:
    match event:
        case host.WorkKept(receipt):
            kept = snapshot.work and _detached(snapshot.work, receipt)
            return replace(
                snapshot, work=kept, queue=tuple(_detached(one, receipt) for one in snapshot.queue)
            )
        case host.WorkAsked(work):
            return replace(snapshot, queue=(*snapshot.queue, work))
        case host.WorkBegan(receipt, when_s):
            begun = next((work for work in snapshot.queue if work.receipt == receipt), None)
            now = None if begun is None else replace(begun, began_s=when_s)
            return replace(snapshot, work=now, queue=_without(snapshot.queue, receipt))
        case host.WorkEnded(receipt):
            queue = _without(snapshot.queue, receipt)
            if snapshot.work is None or snapshot.work.receipt != receipt:
                return replace(snapshot, queue=queue)
            sweep = _abandoned(snapshot, event, now_s)
            return replace(snapshot, work=None, queue=queue, trial=None, gate=None, sweep=sweep)
    return snapshot


def _abandoned(snapshot: Snapshot, event: host.WorkEnded, now_s: float) -> SweepView | None:
    """A sweep whose work failed before it could tell its end; one whose host leaves goes on in the next."""
    sweep = snapshot.sweep
    if sweep is None or sweep.ended or event.outcome == "done" or snapshot.leaving:
        return sweep
    return replace(sweep, state="FAILED", running="", reason=event.sentence, ended_s=now_s, paused_by="")


def _detached(work: Work, receipt: int) -> Work:
    return replace(work, leased=False) if work.receipt == receipt else work


def _without(queue: tuple[Work, ...], receipt: int) -> tuple[Work, ...]:
    return tuple(work for work in queue if work.receipt != receipt)


def _with_trial(
    snapshot: Snapshot, event: engine.TrialBegan | engine.TrialEnded | engine.GateStep
) -> Snapshot:
    sweep = snapshot.sweep
    match event:
        case engine.GateStep():
            return replace(snapshot, gate=event)
        case engine.TrialBegan(trial):
            return replace(snapshot, trial=trial, sweep=sweep and _with_running(sweep, trial))
        case engine.TrialEnded(trial):
            ended = (trial, *snapshot.ended)[:ENDED_KEPT]
            return replace(snapshot, trial=None, ended=ended, sweep=sweep and _with_time(sweep, trial))
    return snapshot


def _begun(event: engine.SweepBegan, when_s: float) -> SweepView:
    return SweepView(
        event.sweep_id, event.total, event.actor, event.detached, PAUSED if event.paused_by else RUN,
        event.paused_by, waiting=event.waiting, counts=dict(event.counts), began_s=when_s,
        best_score=event.best_score, best_candidate=event.best_candidate,
    )  # fmt: skip


def _is_screening(sweep: SweepView, trial: TrialRecord) -> bool:
    return trial.purpose == "screen" and trial.sweep_id == sweep.id


def _with_running(sweep: SweepView, trial: TrialRecord) -> SweepView:
    if not _is_screening(sweep, trial):
        return replace(sweep, running="")
    waiting = _removed(sweep.waiting, trial.candidate_id)
    return replace(sweep, running=trial.candidate_id, waiting=waiting)


def _with_time(sweep: SweepView, trial: TrialRecord) -> SweepView:
    """Only finished trials tell how long the others will take."""
    if not _is_screening(sweep, trial) or trial.duration_s is None or trial.status is Status.CANCELLED:
        return sweep
    took_s = trial.duration_s
    return replace(
        sweep, timed=sweep.timed + 1, timed_s=sweep.timed_s + took_s, timed_s2=sweep.timed_s2 + took_s**2
    )


def _with_event(sweep: SweepView, event: Event, snapshot: Snapshot, when_s: float) -> SweepView:
    if getattr(event, "sweep_id", sweep.id) != sweep.id:
        return sweep
    match event:
        case engine.SweepStep(phase):
            return replace(sweep, phase=phase)
        case engine.CandidateScreened():
            return _with_screened(sweep, event, snapshot)
        case engine.CandidateMoved(_, candidate, position):
            return replace(sweep, waiting=_placed(_removed(sweep.waiting, candidate), candidate, position))
        case engine.CandidateRequeued(_, candidate, status, position):
            counts = _one_less(sweep.counts, status.value)
            waiting = _placed(_removed(sweep.waiting, candidate), candidate, position)
            return replace(sweep, waiting=waiting, counts=counts)
        case engine.SweepPaused(_, by):
            return replace(sweep, state=PAUSED, paused_by=by)
        case engine.SweepResumed():
            return replace(sweep, state=RUN, paused_by="")
        case engine.SweepEnded(_, outcome, reason):
            return replace(
                sweep, state=outcome.upper(), running="", reason=reason, ended_s=when_s, paused_by=""
            )
    return sweep


def _with_screened(sweep: SweepView, event: engine.CandidateScreened, snapshot: Snapshot) -> SweepView:
    status = event.status.value
    counts = {**sweep.counts, status: sweep.counts.get(status, 0) + 1}
    running = "" if sweep.running == event.candidate_id else sweep.running
    waiting = _removed(sweep.waiting, event.candidate_id)
    sweep = replace(sweep, counts=counts, running=running, waiting=waiting)
    lower = snapshot.workspace is None or snapshot.workspace.lower_is_better
    if event.score is None or not _is_better(event.score, sweep.best_score, lower):
        return sweep
    return replace(sweep, best_score=event.score, best_candidate=event.candidate_id)


def _one_less(counts: Mapping[str, int], status: str) -> Mapping[str, int]:
    left = {**counts, status: counts.get(status, 0) - 1}
    return {name: count for name, count in left.items() if count > 0}


def _is_better(score: float, than: float | None, lower: bool) -> bool:
    return than is None or (score < than if lower else score > than)


def _removed(waiting: tuple[str, ...], candidate: str) -> tuple[str, ...]:
    """Without the candidate; the next one is what usually goes."""
    if waiting[:1] == (candidate,):
        return waiting[1:]
    return tuple(one for one in waiting if one != candidate) if candidate in waiting else waiting


def _placed(waiting: tuple[str, ...], candidate: str, position: int) -> tuple[str, ...]:
    return (*waiting[:position], candidate, *waiting[position:])
