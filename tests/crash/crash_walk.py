"""Walks kill points: one worker of several, a JSON object a walk on standard output.

`python crash_walk.py FOLDER WORKER WORKERS` walks; `python crash_walk.py FOLDER again WALK KILL`, with
the words of a fault that was told, does that one again and leaves the workspace as the kill left it.

It stays single-threaded and forks a process for everything that uses the product: one that is killed at
a point, then one that checks and goes on. It adopts what those leave behind, so that waiting for its
children is waiting for every process.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no threads before a fork
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import crash_checks as checks
from aftermath import Aftermath
from crash_workspace import NEXT, PROGRAM_WALKS, WALKS, Call
from forked import Said, adopt_orphans, in_child, start_program, wait_for_all
from grounds import Ground, Kill, chosen, evenly, killed_at, prepare
from moments import moments_in

LONG_PATH, LONG_PATH_KILLS = 300, 6
PROGRAM_KILLS, PROGRAM_SEED = 4, 20260101
ENDLESS, NOBODY = 1 << 62, 0


@dataclass(slots=True)
class Tally:
    """What came of a walk; `points` is how many there are, `unreached` how often none was met."""

    walk: str
    points: int
    kills: int = 0
    unreached: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, killed: bool, where: str, faults: list[str]) -> None:
        self.kills += killed
        self.unreached += not killed
        self.faults += [f"{self.walk}, {where}: {fault}" for fault in faults]


def walk_point(ground: Ground, root: Path, kill: Kill, tally: Tally) -> None:
    """Kill there, check, go on; what is wrong goes to the tally under the name of the kill."""
    shutil.copytree(ground.template, root)
    killed, said = _kill(ground, root, kill)
    what = next((one["what"] for one in said if "point" in one), "")
    faults = [one["fault"] for one in said if "fault" in one]
    if killed:
        faults += Aftermath(ground, root, said).faults()
    tally.add(killed, f"{kill} ({what})", faults)
    shutil.rmtree(root)


def _kill(ground: Ground, root: Path, kill: Kill) -> tuple[bool, Said]:
    status, said = in_child(killed_at(root, ground.walk, kill))
    return os.WIFSIGNALED(status), said


def walk_points(ground: Ground, root: Path, kills: list[Kill], name: str) -> Tally:
    tally = Tally(name, len(ground.kills))
    for kill in kills:
        walk_point(ground, root, kill, tally)
    return tally


def long_root(folder: Path) -> Path:
    """A workspace path of LONG_PATH characters below `folder`."""
    left = LONG_PATH - len(str(folder)) - 1
    halves = (left // 2, left - left // 2 - 1)
    return folder.joinpath(*("w" * length for length in halves))


def walk_program(ground: Ground, folder: Path, moments: list[float]) -> Tally:
    """The real program killed from outside, at moments given as fractions of its changes to files."""
    root, output = folder / "workspace", folder / "output"
    shutil.copytree(ground.template, root)
    whole, status = _follow(root, ground.walk.call, ENDLESS, output)
    assert os.waitstatus_to_exitcode(status) == ground.exit_code, output.read_text()
    tally = Tally(f"{ground.walk.name}, the program", whole)
    shutil.rmtree(root)
    for moment in moments:
        change, killed = 1 + int(moment * whole), False
        # Under load the kernel tells fewer changes apart, and a run may end before so many were seen.
        while change and not killed:
            shutil.copytree(ground.template, root)
            _, status = _follow(root, ground.walk.call, change, output)
            killed = os.WIFSIGNALED(status)
            tally.add(killed, f"change {change}", _program_faults(ground, root, output) if killed else [])
            shutil.rmtree(root)
            change //= 2
    return tally


def _follow(root: Path, one: Call, change: int, output: Path) -> tuple[int, int]:
    """Run the program and kill it, and its host, at so many changes; how many there were, its wait status."""
    state = root / ".kerneldeck"
    folders = [root, root / "src", state, *(state / name for name in ("staging", "outputs", "blobs"))]
    output.unlink(missing_ok=True)
    with moments_in(folders) as moments:
        pid = start_program(_words(root, one), output)
        seen = moments.follow(pid, change)
        if seen < change:
            status, left = wait_for_all(pid)
            assert not left, left
            return seen, status
        for process in (*checks.hosts_of(root), pid):
            os.kill(process, signal.SIGKILL)
        return seen, os.waitpid(pid, 0)[1]


def _program_faults(ground: Ground, root: Path, output: Path) -> list[str]:
    """The next command comes at once, beside what may still be ending; all else when that has ended."""
    following = os.waitpid(start_program(_words(root, NEXT), output), 0)[1]
    _, faults = wait_for_all(NOBODY)
    if following:
        faults.append(f"the next command ended with wait status {following}: {output.read_text()}")
    return faults + Aftermath(ground, root, []).faults()


def _words(root: Path, one: Call) -> list[str]:
    return [sys.executable, "-m", "kerneldeck", *one.words, "--json", "-C", str(root)]


def walk_all(folder: Path, worker: int, workers: int) -> Iterator[Tally]:
    draw = random.Random(PROGRAM_SEED)
    seen: set[str] = set()
    for walk in WALKS:
        ground = prepare(walk, folder / walk.name)
        kills = chosen(ground, seen)
        yield walk_points(ground, folder / "workspace", kills[worker::workers], walk.name)
        if walk.long_path:
            some = evenly(kills, LONG_PATH_KILLS)[worker::workers]
            name = f"{walk.name}, path of {LONG_PATH} characters"
            yield walk_points(ground, long_root(folder), some, name)
        if walk in PROGRAM_WALKS:
            moments = [draw.random() for _ in range(PROGRAM_KILLS)]
            yield walk_program(ground, folder, moments[worker::workers])


def again(folder: Path, name: str, words: str) -> Tally:
    """One kill of one walk, named as a fault names it."""
    (walk,) = (one for one in WALKS if one.name == name)
    ground = prepare(walk, folder / "again")
    kill = next(one for one in ground.kills if str(one) == words)
    _kill(ground, shutil.copytree(ground.template, folder / "killed"), kill)
    return walk_points(ground, folder / "workspace", [kill], name)


def main() -> None:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    adopt_orphans()
    if words[0] == "again":
        walked = iter([again(folder, *words[1:])])
    else:
        walked = walk_all(folder, int(words[0]), int(words[1]))
    for tally in walked:
        print(json.dumps(asdict(tally)), flush=True)


if __name__ == "__main__":
    main()
