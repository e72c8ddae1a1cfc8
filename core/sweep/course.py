"""A sweep's machine on record: an event is on disk before the machine hears of it."""

from __future__ import annotations

import time
from dataclasses import replace

from core.engine import Engine
from core.errors import Busy, StorageFault
from core.events import SweepEnded, SweepStep
from core.records import SweepRecord
from core.sweep import telling
from core.sweep.commands import refusal
from core.sweep.json_form import event_json
from core.sweep.plan import Command, Event
from core.sweep.report import summary_of
from core.sweep.request import SweepRequest, request_json
from core.sweep.standing import SweepState
from core.sweep.state import begin, step


class Course:
    """Where one sweep stands, in memory and in the store alike."""

    def __init__(self, engine: Engine, record: SweepRecord, state: SweepState) -> None:
        self.engine = engine
        self.record = record
        self.state = state
        engine.tell(telling.began(record, state))

    def hear(self, *events: Event) -> None:
        """Keep the events, all or none, and let the machine and the watchers hear them. Commands must fit."""
        self.engine.store.add_sweep_events(self.record.id, [event_json(event) for event in events])
        for event in events:
            before = self.state
            self.state, _ = step(before, event)
            for told in telling.changes(self.record.id, before, event, self.state):
                self.engine.tell(told)
        self.engine.tell(
            SweepStep(self.state.phase, len(self.state.screened), len(self.state.plan.candidates))
        )

    def obey(self, command: Command) -> str:
        """Do what somebody asks; a sentence when it is not done."""
        refused = refusal(self.state, command)
        if refused:
            return refused
        try:
            self.hear(command)
        except (Busy, StorageFault) as fault:
            return f"{fault.sentence}; the sweep goes on without this"
        return ""

    @property
    def detached(self) -> bool:
        """Whether it outlives this process; a sweep of a client that has gone may have become so."""
        stored = self.engine.store.sweep(self.record.id)
        return self.record.detached if stored is None else stored.detached

    def close(self, outcome: str, reason: str) -> None:
        """The sweep has ended so."""
        summary = summary_of(self.state, outcome, reason)
        self.record = replace(
            self.record, state=outcome, summary=summary, ended_s=time.time(), detached=self.detached
        )
        self.engine.store.update_sweep(self.record)
        self.engine.tell(SweepEnded(self.record.id, outcome, reason))


def started(engine: Engine, request: SweepRequest) -> Course:
    """A new sweep, on record with all that runs it again."""
    engine.store.add_candidates(list(request.candidates.values()))
    record = SweepRecord(
        request_json(request), engine.contract_id, engine.actor, time.time(),
        target=engine.target.name, detached=request.detached,
    )  # fmt: skip
    state, _ = begin(request.plan)
    return Course(engine, engine.store.add_sweep(record), state)
