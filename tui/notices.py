"""What a person who looks elsewhere wants to be told: a sweep's end, and what waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from sessions.host.snapshot import Snapshot, SweepView
from tui.numbers import score_text
from tui.plain import fit, plain

PAUSED_BY_TARGET = "target"  # who paused a sweep when nobody did
_LONGEST = 200


def notices(before: Snapshot, now: Snapshot) -> Iterator[str]:
    """A sentence for each thing that became so between two states of one workspace."""
    was, sweep = before.sweep, now.sweep
    same = was is not None and sweep is not None and was.id == sweep.id
    if sweep is not None and sweep.ended and not (same and was is not None and was.ended):
        yield _told(f"{_name(now, sweep)} {sweep.state}: {_came_of(now, sweep)}")
    if sweep is not None and _held(sweep) and not (same and was is not None and _held(was)):
        yield _told(f"{_name(now, sweep)} waits: its target cannot run trials; p resumes it")
    if now.target.state == "lost" != before.target.state and _busy(now):
        yield _told(f"{now.target.name} is lost at {now.target.stage}: {now.target.sentence}")


def _held(sweep: SweepView) -> bool:
    return not sweep.ended and sweep.paused_by == PAUSED_BY_TARGET


def _busy(now: Snapshot) -> bool:
    return now.work is not None or (now.sweep is not None and not now.sweep.ended)


def _name(now: Snapshot, sweep: SweepView) -> str:
    return f"{now.workspace.name if now.workspace else 'sweep'} sweep #{sweep.id}"


def _came_of(now: Snapshot, sweep: SweepView) -> str:
    screened = f"{sum(sweep.counts.values())} of {sweep.total} screened"
    if sweep.best_score is None:
        return "; ".join(filter(None, (screened, sweep.reason)))
    unit = now.workspace.unit if now.workspace else ""
    return f"{screened}, best {score_text(sweep.best_score, unit)}"


def _told(sentence: str) -> str:
    return fit(plain(sentence), _LONGEST)
