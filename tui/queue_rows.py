"""The queue as rows by number: what has ended, what runs, what waits; however many, none is copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.records import TrialRecord
from core.words import Status
from sessions.host.events import Work
from sessions.host.snapshot import PAUSED, Snapshot

ENDED, RUNNING, WAITING, WORK = "ended", "running", "waiting", "work"
_NOT_BAD = frozenset({Status.OK})


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One row; `key` stays the same while a candidate goes from waiting to running to ended."""

    kind: str
    key: str
    candidate_id: str = ""
    trial: TrialRecord | None = None
    work: Work | None = None
    place: int = 0


@dataclass(frozen=True, slots=True)
class QueueRows:
    """Rows in the order of time: ended (oldest first), running, waiting, then work of others that waits."""

    ended: tuple[TrialRecord, ...] = ()
    running: tuple[QueueRow, ...] = ()
    waiting: tuple[str, ...] = ()
    works: tuple[Work, ...] = ()
    sweep_id: int | None = None
    _ended_at: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ended) + len(self.running) + len(self.waiting) + len(self.works)

    @property
    def now(self) -> int:
        """The number of the row at which what ended ends."""
        return len(self.ended)

    def row(self, number: int) -> QueueRow:
        """IndexError when there is none."""
        if number < len(self.ended):
            trial = self.ended[number]
            return QueueRow(ENDED, _key_of(trial, self.sweep_id), trial.candidate_id, trial)
        number -= len(self.ended)
        if number < len(self.running):
            return self.running[number]
        number -= len(self.running)
        if number < len(self.waiting):
            candidate = self.waiting[number]
            return QueueRow(WAITING, candidate, candidate, place=number)
        work = self.works[number - len(self.waiting)]
        return QueueRow(WORK, f"r{work.receipt}", work=work)

    def number_of(self, key: str) -> int | None:
        """Where the row of that key is now; None when it is gone."""
        for number, row in enumerate(self.running):
            if row.key == key:
                return len(self.ended) + number
        for number, work in enumerate(self.works):
            if key == f"r{work.receipt}":
                return len(self.ended) + len(self.running) + len(self.waiting) + number
        if key in self._ended_at:
            return self._ended_at[key]
        try:
            return len(self.ended) + len(self.running) + self.waiting.index(key)
        except ValueError:
            return None


def _key_of(trial: TrialRecord, sweep_id: int | None) -> str:
    screened = trial.purpose == "screen" and trial.sweep_id == sweep_id
    return trial.candidate_id if screened else f"#{trial.id}"


def queue_rows(snapshot: Snapshot, hide_bad: bool = False) -> QueueRows:
    """The rows of a snapshot."""
    sweep = snapshot.sweep if snapshot.sweep is not None and not snapshot.sweep.ended else None
    sweep_id = snapshot.sweep.id if snapshot.sweep else None
    waiting = sweep.waiting if sweep else ()
    again = frozenset(waiting)
    kept = [
        trial
        for trial in reversed(snapshot.ended)
        if (not hide_bad or trial.status in _NOT_BAD) and _key_of(trial, sweep_id) not in again
    ]
    ended_at = {_key_of(trial, sweep_id): number for number, trial in enumerate(kept)}
    return QueueRows(tuple(kept), _running(snapshot), waiting, snapshot.queue, sweep_id, ended_at)


def _running(snapshot: Snapshot) -> tuple[QueueRow, ...]:
    trial, work, sweep = snapshot.trial, snapshot.work, snapshot.sweep
    if trial is not None:
        screening = sweep is not None and sweep.running == trial.candidate_id
        key = trial.candidate_id if screening else f"#{trial.id}"
        return (QueueRow(RUNNING, key, trial.candidate_id, trial, work),)
    if work is None or (sweep is not None and sweep.state == PAUSED):
        return ()
    # Also for the moment between two trials, so that the rows below stay where they are.
    return (QueueRow(RUNNING, f"r{work.receipt}", work=work),)
