"""kill -9 at any point of an operation: files whole, old or new; finished trials and the best still there.

Two workers walk the points, see crash_walk.py. A fault names its walk and its kill, and the workspace
is to be had as the kill left it with: python tests/crash/crash_walk.py EMPTY_FOLDER again WALK KILL
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crash_walk.py")
WORKERS = 2
LEAST_KILLS = 200
MEMORY = Path("/dev/shm")
WALKS = (
    "restore", "run", "sweep config", "apply", "verify that restores", "verify that keeps", "first verify",
    "result", "recovery of a write", "recovery of a trial", "detached sweep", "resume of a sweep",
)  # fmt: skip
VARIANTS = {
    "path of 300 characters": ("restore", "sweep config"),
    "the program": WALKS[:6],
}


@dataclass(slots=True)
class Walked:
    """What all workers together say of one walk."""

    points: int = 0
    kills: int = 0
    unreached: int = 0
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory where there is such a place: a kill leaves a file's pages alone, so any disk will do."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="kerneldeck-crash-", dir=place) as name:
        yield Path(name).resolve()


@pytest.fixture(scope="module")
def walked(folder: Path) -> dict[str, Walked]:
    """All walks by name, done once."""
    found: dict[str, Walked] = {}
    for said in (json.loads(line) for output in worker_outputs(folder) for line in output.splitlines()):
        one = found.setdefault(said["walk"], Walked())
        one.points = max(one.points, said["points"])
        one.kills += said["kills"]
        one.unreached += said["unreached"]
        one.faults += said["faults"]
    return found


def worker_outputs(folder: Path) -> list[str]:
    """What the workers printed, once all of them ended well."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELDECK_")}
    with ExitStack() as running:
        workers = []
        for number in range(WORKERS):
            (folder / str(number)).mkdir()
            words = [sys.executable, str(PROGRAM), str(folder / str(number)), str(number), str(WORKERS)]
            worker = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True)
            workers.append(running.enter_context(worker))
            running.callback(worker.kill)
        outputs = [worker.communicate()[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    return outputs


def names() -> list[str]:
    variants = [f"{walk}, {variant}" for variant, walks in VARIANTS.items() for walk in walks]
    return [*WALKS, *variants]


@pytest.mark.parametrize("name", names())
def test_a_kill_leaves_everything_whole_and_recoverable(walked: dict[str, Walked], name: str) -> None:
    assert walked[name].faults == []
    assert walked[name].kills > 0


def test_the_walks_make_at_least_200_kills(
    walked: dict[str, Walked], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print("\n kills  points  killed in")
        for name, one in walked.items():
            missed = f" ({one.unreached} points were not reached)" if one.unreached else ""
            print(f"{one.kills:6}  {one.points:6}  {name}{missed}")
        print(f"{sum(one.kills for one in walked.values()):6}          in all")
    assert sorted(walked) == sorted(names())
    assert sum(one.kills for one in walked.values()) >= LEAST_KILLS
