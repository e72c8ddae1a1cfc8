"""What the line of the last event keeps of all that happens: what a person would want to have seen."""

from __future__ import annotations

from core import events as engine
from core.words import Status
from sessions.host import events as host
from sessions.host.events import Numbered
from sessions.host.lines import line_of
from sessions.host.snapshot import Snapshot
from tui.plain import plain

_NO_NEWS = (
    engine.TrialBegan, engine.GateStep, engine.SweepStep, host.ClientCame, host.ClientLeft, host.WorkAsked,
    host.WorkBegan,
)  # fmt: skip


def told(before: Snapshot, numbered: Numbered) -> str:
    """The event as a sentence; empty for what the panes show well enough. `before` is the state before it."""
    event = numbered.event
    if isinstance(event, _NO_NEWS):
        return ""
    if isinstance(event, engine.TrialEnded):
        trial = event.trial
        if trial.status is Status.OK:
            return ""
        return plain(f"#{trial.id} {trial.status} {trial.reason}".strip())
    if isinstance(event, host.WorkEnded):
        return _work_ended(before, event)
    return plain(line_of(numbered))


def _work_ended(before: Snapshot, ended: host.WorkEnded) -> str:
    works = [before.work, *before.queue]
    command = next((work.command for work in works if work and work.receipt == ended.receipt), "")
    name = command or f"#{ended.receipt}"
    said = ended.sentence or ("done" if ended.exit_code == 0 else f"ended with exit code {ended.exit_code}")
    return plain(f"{name}: {said}")
