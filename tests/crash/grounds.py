"""What a walk starts from, made by real calls, and the places at which its operation can be killed."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import crash_checks as checks
from crash_workspace import VERIFY, Call, Walk, lay_out, write_candidate
from forked import finished, in_child
from kill_points import KillPoints

# Forked processes are to find everything imported.
import sessions.handlers.restore
import sessions.handlers.result
import sessions.handlers.run
import sessions.handlers.sweep
import sessions.handlers.upkeep
import sessions.handlers.verify  # noqa: F401
from core.events import Event, TrialBegan, TrialEnded
from sessions.binding import call, declared
from sessions.session import Caller

DURABLE = ("after COMMIT", "os.rename", "os.remove")


@dataclass(frozen=True, slots=True)
class Kill:
    """Where to kill: at point `point`, or in the middle of trial `trial`, at its `place`."""

    point: int = 0
    trial: int = 0
    place: str = ""  # start | end
    what: str = ""

    def __str__(self) -> str:
        return f"point {self.point}" if self.point else f"trial {self.trial} {self.place}"


@dataclass(frozen=True, slots=True)
class Ground:
    """A walk's starting state, and the workspace before anything of it and after the whole operation."""

    walk: Walk
    template: Path
    old: checks.Snapshot
    end: checks.Snapshot
    exit_code: int
    kills: list[Kill]


def operate(root: Path, one: Call, tell: Callable[[Event], None] = lambda _: None) -> int:
    """Carry an operation out in this process; its exit code."""
    caller = Caller("crash walk", detached=one.detached)
    answer = asyncio.run(call(declared(one.operation), one.arguments, root, caller, tell))
    return answer.exit_code


def killed_at(root: Path, walk: Walk, kill: Kill) -> Callable[[int], None]:
    """The operation in a process that dies at `kill` (none: never), having said which trials ended."""

    def work(report: int) -> None:
        points = KillPoints(root, -1 if kill.trial else kill.point, report)
        began = 0

        def tell(event: Event) -> None:
            nonlocal began
            points.reach(f"told {type(event).__name__}")
            if isinstance(event, TrialEnded):
                trial = event.trial
                points.tell(ended=trial.id, status=str(trial.status), score=trial.score)
            if isinstance(event, TrialBegan):
                began += 1
                points.tell(began=began)
                if began == kill.trial:
                    os.environ.update(CRASH_PID=str(os.getpid()), CRASH_AT=kill.place)
                    os.environ["CRASH_DEAF"] = "yes" if walk.deaf else ""

        points.arm()
        points.tell(exit_code=operate(root, walk.call, tell))

    return work


def prepare(walk: Walk, folder: Path) -> Ground:
    """Make the starting state, and run the operation once whole to number its points."""
    template, whole = folder / "template", folder / "whole"
    old = _starting_state(walk, template, folder)
    shutil.copytree(template, whole)
    said = finished(killed_at(whole, walk, Kill()))
    end = checks.snapshot(whole)
    shutil.rmtree(whole)
    kills = [Kill(point=one["point"], what=one["what"]) for one in said if "point" in one]
    for one in said:
        if "began" in one:
            kills += [Kill(trial=one["began"], place="start"), Kill(trial=one["began"], place="end")]
    (exit_code,) = (one["exit_code"] for one in said if "exit_code" in one)
    return Ground(walk, template, old, end, exit_code, kills)


def _starting_state(walk: Walk, template: Path, folder: Path) -> checks.Snapshot:
    if walk.crashed:
        return _crashed_state(*walk.crashed, template, folder / "before")
    lay_out(template)
    if walk.used:
        finished(lambda _: _call(template, VERIFY))
    if walk.edit:
        write_candidate(template, *walk.edit)
    return checks.snapshot(template)


def _crashed_state(walk: Walk, words: str, template: Path, folder: Path) -> checks.Snapshot:
    """Leave `template` as a kill of `walk` does; the snapshot is of before the killed command."""
    ground = prepare(walk, folder)
    kill = next(one for one in ground.kills if words in f"{one} {one.what}")
    shutil.copytree(ground.template, template)
    status, _ = in_child(killed_at(template, walk, kill))
    assert os.WIFSIGNALED(status), f"{walk.name} was not killed at {kill}"
    return ground.old


def _call(root: Path, one: Call) -> None:
    exit_code = operate(root, one)
    assert exit_code == 0, f"{one.operation} ended with exit code {exit_code}"


def chosen(ground: Ground, seen: set[str]) -> list[Kill]:
    """Every middle of a trial; of the points first those of kinds not `seen` yet, then evenly more.

    Adds the kinds of all points to `seen`: what has no room in this walk has had its chance.
    """
    points = [kill for kill in ground.kills if kill.point]
    if not ground.walk.most:
        durable = [kill for kill in points if kill.what.startswith(DURABLE)]
        return durable + [kill for kill in ground.kills if kill.trial]
    # The last of a kind has the most behind it.
    fresh = sorted({kill.what: kill for kill in points if kill.what not in seen}.values(), key=_number)
    picked = evenly(fresh, ground.walk.most)
    picked += evenly([kill for kill in points if kill not in picked], ground.walk.most - len(picked))
    seen.update(kill.what for kill in points)
    return sorted(picked, key=_number) + [kill for kill in ground.kills if kill.trial]


def _number(kill: Kill) -> int:
    return kill.point


def evenly(kills: list[Kill], most: int) -> list[Kill]:
    """At most so many of them, spread over all."""
    if most >= len(kills):
        return kills
    return [kills[number * len(kills) // most] for number in range(max(0, most))]
