"""What a target is asked to run, and what it answers: the trial interface as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from core.records import FileSet
from core.words import JsonObject, Status

GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands in one staging folder: the candidate's mutable files; the rest is the workspace's."""

    mutable: FileSet


@dataclass(frozen=True, slots=True)
class Job:
    """One process to run.

    `slots` holds one layout, or several when the benchmark takes arms (one layout may stand twice).
    `visits` are the rounds to measure, as JSON lines of the timing format; empty for none.
    """

    command: tuple[str, ...]
    mode: str
    timeout_s: float
    slots: tuple[Layout, ...]
    output_dir: Path
    visits: str = ""
    needs_score: bool = True  # a verifier may only say whether it passed
    score_slot: int = 0  # of several arms, the one whose objective is the trial's score
    own_channel: bool = False  # the command is known to write the result file, so its output does not count
    cpu_s: float | None = None  # of CPU time for each of its processes; None: no limit
    prefork: tuple[str, ...] = ()  # modules that a parent may have imported for it; empty: from nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended; `result` is the whole parsed JSON object when one was readable.

    `score` is the objective's value, only for status `ok`; `duration_s` is the process's wall time.
    """

    status: Status
    reason: str = ""
    stage: str = ""
    score: float | None = None
    result: JsonObject | None = None
    channel: str = ""  # file | stdout | ""
    exit_code: int | None = None
    duration_s: float = 0.0
    notes: tuple[str, ...] = field(default=())
    forked: bool = False  # handed to a parent instead of being started from nothing


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """What a contract says of a target: comparable scores need equal facts."""

    device: str
    driver: str
    toolchain: str


class Target(Protocol):
    """A place where jobs run; `run` never raises for what happens to a job."""

    @property
    def name(self) -> str: ...

    def facts(self) -> TargetFacts: ...

    async def run(self, job: Job) -> Outcome: ...

    async def close(self) -> None: ...
