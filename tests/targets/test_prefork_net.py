"""What catches a forked trial that is not what one from nothing is, and a parent that a trial gets at."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.targets.job import Job
from core.targets.local import LocalTarget
from core.words import Status
from tests.targets.bench import SCORE, Bench, ends
from tests.targets.test_prefork import Here, heavy

__all__ = ["heavy"]

BEGINS = """
import json, os, sys
loaded = "heavy" in sys.modules
def above(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
with open(os.environ["SEEN"], "a") as file:
    print("forked" if loaded else "cold", above(os.getppid()), file=file)
"""
ENDS = "\nprint(json.dumps({'score': 2 if loaded else 1}))"
Seen = Callable[[], list[list[str]]]


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """How each process was started that has run, and whose grandchild it was."""
    path = tmp_path / "seen"
    monkeypatch.setenv("SEEN", str(path))
    return lambda: [line.split() for line in path.read_text().splitlines()]


def job(bench: Bench, name: str, body: str = "", **more: object) -> Job:
    bench.add(name, BEGINS + body + ENDS)
    return bench.job("python3", name, **{"prefork": ("heavy",), **more})


NOTE = "prefork: a forked trial ended as {}, from nothing as {}: trials start from nothing"
ONLY_FORKED = {
    "if loaded: sys.exit(3)": "crash",
    "if loaded: os.kill(os.getpid(), 11)": "crash",
    'if loaded: print(\'{"status": "incorrect"}\'); sys.exit()': "incorrect",
    "if loaded: open('sealed', 'w').write('changed')": "tampered",
}


@pytest.mark.parametrize("body", ONLY_FORKED)
def test_what_goes_wrong_only_in_a_fork_does_not_count_and_ends_forking(
    bench: Bench, heavy: Here, seen: Seen, body: str
) -> None:
    bench.protect("sealed", "as it was")
    first, second = bench.each(job(bench, "a.py", body), job(bench, "b.py"))
    assert (first.status, first.score, first.forked) == (Status.OK, 1, False), first
    assert first.notes == (NOTE.format(ONLY_FORKED[body], "ok"),)
    assert (second.status, second.score, second.notes) == (Status.OK, 1, ())
    assert [row[0] for row in seen()] == ["forked", "cold", "cold"]


def test_what_goes_wrong_either_way_counts_and_forking_goes_on(bench: Bench, heavy: Here, seen: Seen) -> None:
    first, second = bench.each(job(bench, "a.py", "sys.exit(3)"), job(bench, "b.py"))
    assert (first.status, first.exit_code, first.notes, first.forked) == (Status.CRASH, 3, (), False)
    assert (second.status, second.score, second.notes, second.forked) == (Status.OK, 2, (), True)
    assert [row[0] for row in seen()] == ["forked", "cold", "forked"]


def test_what_takes_too_long_is_not_run_again(bench: Bench, heavy: Here, seen: Seen) -> None:
    (outcome,) = bench.each(job(bench, "a.py", "import signal; signal.pause()", timeout_s=0.3))
    assert (outcome.status, outcome.forked) == (Status.TIMEOUT, True)
    assert [row[0] for row in seen()] == ["forked"]


def test_a_trial_that_kills_its_parent_runs_from_nothing(bench: Bench, heavy: Here, seen: Seen) -> None:
    kills = "import signal\nif loaded:\n    os.kill(above(os.getppid()), signal.SIGKILL); signal.pause()"
    first, second = bench.each(job(bench, "a.py", kills), job(bench, "b.py"))
    assert (first.status, first.score, first.notes) == (Status.OK, 1, ())
    assert (second.status, second.score, second.notes) == (Status.OK, 2, ())
    assert [row[0] for row in seen()] == ["forked", "cold", "forked"]
    assert all(ends(int(row[1])) for row in seen())


def test_a_parent_that_a_trial_has_stopped_is_replaced_and_does_not_stay(
    bench: Bench, heavy: Here, seen: Seen
) -> None:
    stops = "import signal\nif loaded: os.kill(above(os.getppid()), signal.SIGSTOP)"
    began = time.monotonic()
    outcomes = bench.each(job(bench, "a.py", stops), job(bench, "b.py"), job(bench, "c.py", stops))
    assert [(each.status, each.score, each.notes) for each in outcomes] == [(Status.OK, 2, ())] * 3
    (first, second, third) = (int(row[1]) for row in seen())
    assert first != second == third
    assert ends(first) and ends(second)
    assert time.monotonic() - began < 20, "a stopped process was waited for"


def test_a_stopped_parent_ends_when_whoever_started_it_is_killed(
    bench: Bench, heavy: Here, seen: Seen, tmp_path: Path
) -> None:
    stops = job(bench, "a.py", "import signal\nos.kill(above(os.getppid()), signal.SIGSTOP)")

    async def run() -> None:
        outcome = await LocalTarget(bench.staging(), SCORE).run(stops)
        (tmp_path / "outcome").write_text(outcome.status.value)
        os.kill(os.getpid(), signal.SIGKILL)

    starter = os.fork()
    if starter == 0:
        try:
            asyncio.run(run())
        finally:
            os._exit(1)
    os.waitpid(starter, 0)
    assert (tmp_path / "outcome").read_text() == "ok"
    ((_, parent),) = seen()
    assert ends(int(parent))


DRAWS = ("random.seed(0)", "random.random()", "numpy.random.seed(0)", "numpy.random.rand()")


@pytest.mark.parametrize("draws", DRAWS)
def test_imports_that_seed_or_draw_random_numbers_are_declined(bench: Bench, heavy: Here, draws: str) -> None:
    heavy(f"import random\nimport {draws.rpartition('.')[0]}\n{draws}")
    bench.add("a.py", "import json, random, heavy; print(json.dumps({'score': random.random()}))")
    jobs = [bench.job("python3", "a.py", prefork=("heavy",))] * 2
    first, second = bench.each(*jobs)
    reason = "the imports seed or draw random numbers, which a fork would seed anew"
    assert first.notes == (f"prefork: {reason}: trials start from nothing",) and second.notes == ()
    assert (first.score == second.score) is (draws == "random.seed(0)")


def test_imports_that_only_load_generators_are_forked(bench: Bench, heavy: Here) -> None:
    heavy("import random, numpy.random, tempfile, secrets\ntempfile.mkdtemp\nnumpy.random.default_rng()")
    bench.add("a.py", "print('{\"score\": 1}')")
    outcome = bench.run("python3", "a.py", prefork=("heavy",))
    assert (outcome.status, outcome.forked, outcome.notes) == (Status.OK, True, ())


def test_imports_work_in_an_empty_folder_of_their_own(bench: Bench, heavy: Here, tmp_path: Path) -> None:
    heavy("import os\nSTATE = [os.getcwd(), os.listdir()]\nopen('left', 'w').close()")
    bench.add("a.py", "import heavy, json, os; print(json.dumps({'score': 1, 'at': heavy.STATE}))")
    outcomes = bench.each(*[bench.job("python3", "a.py", prefork=("heavy",))] * 2)
    assert all(each.forked for each in outcomes)
    folder, found = json.loads(bench.printed())["at"]
    assert found == []
    assert not Path(folder).exists() and folder != "/"
