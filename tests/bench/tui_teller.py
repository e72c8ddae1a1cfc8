"""What the app is told while it is measured: a sweep, and events at a rate that can be changed."""

from __future__ import annotations

import itertools
import json
import os
import select
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from core.events import CandidateScreened, TrialBegan, TrialEnded
from core.records import TrialRecord
from core.words import Status
from sessions.host.events import Event, Numbered, TargetView, Work, WorkspaceSeen
from sessions.host.snapshot import Snapshot, SweepView
from tests.tui.seeding import CONTRACT, History

TRIALS = 100_000
NOW_S = 1_780_000_000.0


def snapshot_of(names: list[str], root: Path) -> Snapshot:
    """A sweep with its candidates waiting."""
    workspace = WorkspaceSeen("cpu_rmsnorm", str(root), CONTRACT, "best_us", "us", True)
    sweep = SweepView(1, len(names) + 1, "cli", True, waiting=tuple(names), counts={"ok": 1}, began_s=NOW_S)
    work = Work(1, "sweep_kernel_config", "cli", "kerneldeck sweep config", 1, 1, False, NOW_S, NOW_S)
    return Snapshot(1, os.getpid(), "bench", NOW_S, workspace, TargetView(), work, sweep=sweep)


def events_of(names: list[str]) -> Iterator[Event]:
    """Three events a candidate, for ever."""
    for number, name in enumerate(itertools.cycle(names), TRIALS + 1):
        began = TrialRecord(
            name, CONTRACT, "dev", "screen", "local", "cli", started_s=NOW_S, sweep_id=1, id=number
        )
        yield TrialBegan(began)
        yield TrialEnded(began.ended(Status.OK, score=800.0 + number % 97, duration_s=0.06))
        yield CandidateScreened(1, name, Status.OK, 800.0 + number % 97)


class Teller:
    """Tells the app events over a FIFO at a rate that can be changed, and stores the trials they tell of."""

    def __init__(self, history: History, folder: Path, first: Snapshot, events: Iterator[Event]) -> None:
        self.fifo = folder / "events"
        self.told = 0
        self.rate = 0.0
        self.storing = True
        self._history, self._first, self._events = history, first, events
        self._stop = threading.Event()
        os.mkfifo(self.fifo)
        # Opened for both, so that neither side waits for the other.
        self._pipe = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._tell_all)

    def __enter__(self) -> Teller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._pipe)

    def one(self, event: Event) -> None:
        self.told += 1
        self._write(Numbered(self.told + 1, "cli", NOW_S + self.told * 0.02, event).to_json())

    def _tell_all(self) -> None:
        self._write(self._first.to_json())
        due = time.monotonic()
        while not self._stop.is_set():
            if not self.rate:
                due = time.monotonic()
                self._stop.wait(0.01)
                continue
            due += 1 / self.rate
            if (wait_s := due - time.monotonic()) > 0:
                self._stop.wait(wait_s)
            event = next(self._events)
            if self.storing and isinstance(event, TrialEnded):
                self._store(event.trial)
            self.one(event)

    def _store(self, trial: TrialRecord) -> None:
        started = replace(trial, id=0, status=None, score=None, sweep_id=None)
        stored = self._history.store.begin_trial(started)
        self._history.store.end_trial(stored.ended(Status.OK, score=trial.score, duration_s=0.06), None)

    def _write(self, message: object) -> None:
        """Write it whole, as fast as the app reads; an app that is gone holds nobody up."""
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest and not self._stop.is_set():
            _, ready, _ = select.select([], [self._pipe], [], 0.1)
            if ready:
                rest = rest[os.write(self._pipe, rest[: select.PIPE_BUF]) :]
