"""What happened in a workspace, as lines in the order of time: calls, decisions, writes, bests."""

from __future__ import annotations

import time

from core.measure.decision import Decision
from core.measure.texts import verdict_text
from core.records import DecisionRecord, OperationRecord
from sessions.progress import JournalRow
from sessions.store import SessionStore

LINES = 24
SHORT_ID = 12


def story(store: SessionStore, limit: int = LINES) -> list[str]:
    """The last `limit` events, oldest first, each with its time of day."""
    events: list[tuple[float, str]] = []
    events += [(one.started_s + one.duration_s, _call(one)) for one in store.operations(limit)]
    events += [(one.created_s, _decision(one)) for one in store.decisions(limit)]
    events += [(one.at_s, _write(one)) for one in store.journal(limit)]
    for best in store.best_history()[:limit]:
        events.append((best.since_s, f"best: {best.checkpoint_id[:SHORT_ID]}"))
    events.sort(key=lambda event: event[0])
    return [f"{time.strftime('%H:%M:%S', time.localtime(when))}  {text}" for when, text in events[-limit:]]


def _call(one: OperationRecord) -> str:
    how = "" if one.outcome == "done" else f" {one.outcome}"
    if one.outcome.startswith("target."):
        host = one.arguments.get("target")
        how = f" infra at {one.outcome.removeprefix('target.')}{f' of {host}' if host else ''}"
    return f"{one.actor} called {one.operation}: exit {one.exit_code}{how}, {one.duration_s:.1f} s"


def _decision(one: DecisionRecord) -> str:
    what = (
        f"decision #{one.id} ({one.purpose}) {one.candidate_id[:SHORT_ID]} against {one.best_id[:SHORT_ID]}"
    )
    return f"{what}: {verdict_text(Decision.from_json(one.outcome))}"


def _write(one: JournalRow) -> str:
    names = sorted(name for name in {*one.old, *one.new} if one.old.get(name) != one.new.get(name))
    return f"wrote {', '.join(names)} ({one.state}): {one.reason}"
