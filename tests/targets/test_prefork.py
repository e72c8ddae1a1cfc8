"""Forked trials on the local target: which are, why some are not, and that nothing passes between them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from core.targets.job import Job, Outcome
from core.targets.local import LocalTarget
from core.targets.prefork import interpreter
from core.words import Status
from tests.cli.deck import Deck
from tests.targets.bench import REPO, SCORE, Bell, Bench, ends

LOADED = """
import json, os, sys
loaded = "heavy" in sys.modules
import heavy
print(json.dumps({"score": 1, "loaded": loaded, "found": heavy.STATE, "parent": os.getppid()}))
heavy.STATE = "changed by a trial"
"""
Here = Callable[..., None]


@pytest.fixture
def heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Make the module `heavy` importable for trials: its source."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))

    def write(source: str = "") -> None:
        (folder / "heavy.py").write_text(f"STATE = 'fresh'\n{source}\n")

    write()
    return write


def job(bench: Bench, program: str = LOADED, **more: object) -> Job:
    if "bench.py" not in bench.others:
        bench.add("bench.py", program)
    return bench.job("python3", "bench.py", **{"prefork": ("heavy",), **more})


def told(outcome: Outcome) -> tuple[object, ...]:
    assert outcome.result is not None, outcome
    return outcome.status, outcome.forked, outcome.result["loaded"], outcome.result["found"], outcome.notes


def test_a_trial_finds_the_modules_loaded_and_nothing_of_an_earlier_one(bench: Bench, heavy: Here) -> None:
    forked = job(bench)
    assert [told(each) for each in bench.each(forked, job(bench, prefork=()), forked)] == [
        (Status.OK, True, True, "fresh", ()),
        (Status.OK, False, False, "fresh", ()),
        (Status.OK, True, True, "fresh", ()),
    ]


def test_what_imports_set_in_the_environment_is_there(bench: Bench, heavy: Here) -> None:
    heavy("import os; os.environ['SET_AT_IMPORT'] = 'yes'")
    program = LOADED.replace('"parent": os.getppid()', '"set": os.environ["SET_AT_IMPORT"]')
    outcomes = bench.each(job(bench, program), job(bench, program, prefork=()))
    assert [outcome.result and outcome.result["set"] for outcome in outcomes] == ["yes", "yes"]


def test_random_numbers_differ_from_trial_to_trial(bench: Bench) -> None:
    drawn = "[random.random(), numpy.random.rand()]"
    program = f"import random, numpy\nprint('{{\"score\": 1, \"drawn\":', {drawn}, '}}')"
    outcomes = bench.each(*[job(bench, program, prefork=("numpy.random",))] * 2)
    assert all(outcome.forked for outcome in outcomes)
    first, second = (outcome.result["drawn"] for outcome in outcomes if outcome.result)
    assert not set(first) & set(second)


DECLINED = {
    "raise ValueError('of\\nno use')": "heavy could not be imported (ValueError: of no use)",
    "import nowhere": "heavy could not be imported (ModuleNotFoundError: No module named 'nowhere')",
    "raise SystemExit(3)": "heavy could not be imported (SystemExit: 3)",
    "import os; os._exit(3)": "importing heavy ended the interpreter (exit code 3)",
    "import os; os.kill(os.getpid(), 9)": "importing heavy ended the interpreter (exit code -9)",
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()":
        "the imports start threads, which a fork would lose",
    "import sys, types; sys.modules['torch'] = torch = types.ModuleType('torch')\n"
    "torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)":
        "the imports start CUDA, which no fork survives",
    "import mmap; SHARED = mmap.mmap(-1, 4096)": "the imports map memory that trials would share",
    "import os; ENDS = os.pipe()": "the imports keep a pipe open, which trials would share",
    "import socket; PAIR = socket.socketpair()": "the imports keep a socket open, which trials would share",
    "FILE = open('/etc/passwd')": "the imports keep /etc/passwd open, which trials would share",
}  # fmt: skip


@pytest.mark.parametrize("source", DECLINED)
def test_what_cannot_be_imported_is_said_once_and_trials_start_from_nothing(
    bench: Bench, heavy: Here, source: str
) -> None:
    program = "import os, sys; print('{\"score\":', 1 + ('heavy' in sys.modules), '}')"
    heavy(source)
    outcomes = bench.each(*[job(bench, program)] * 2)
    assert [(each.status, each.forked, each.score) for each in outcomes] == [(Status.OK, False, 1)] * 2
    assert outcomes[0].notes == (f"prefork: {DECLINED[source]}: trials start from nothing",)
    assert outcomes[1].notes == ()


HELPERS = {
    "child": "child = subprocess.Popen(['sleep', '600']).pid",
    "own session": "child = subprocess.Popen(['sleep', '600'], start_new_session=True).pid",
    "orphan": "child = int(subprocess.run('sleep 600 >&- 2>&- & echo $!', shell=True, stdout=-1).stdout)",
}


@pytest.mark.parametrize("helper", HELPERS)
def test_processes_that_imports_start_are_ended_and_run_beside_no_trial(
    bench: Bench, heavy: Here, bell: Bell, helper: str
) -> None:
    told = f"open({str(bell.path)!r}, 'w').write(str(child) + chr(10))"
    heavy(f"import subprocess, sys\nif 'bench' not in sys.argv[0]:\n    {HELPERS[helper]}\n    {told}")
    (outcome,) = bench.each(job(bench, "print('{\"score\": 1}')"))
    assert outcome.notes == (
        "prefork: the imports start processes, which would run beside every trial: trials start from nothing",
    )
    assert (outcome.status, outcome.forked) == (Status.OK, False)
    assert ends(int(bell.heard()))


def test_what_passes_nothing_on_may_stay_open(bench: Bench, heavy: Here) -> None:
    heavy("FILES = [open('/dev/null', 'w'), open('/dev/urandom', 'rb')]")
    (outcome,) = bench.each(job(bench))
    assert told(outcome) == (Status.OK, True, True, "fresh", ())


def test_an_import_that_hangs_is_ended_with_what_it_started(bench: Bench, heavy: Here, bell: Bell) -> None:
    heavy(
        "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(bell.path)!r}, 'w').write(str(child.pid) + chr(10))\nchild.wait()"
    )

    unhurried = job(bench, "print('{\"score\": 1}')")

    async def run() -> Outcome:
        target = LocalTarget(bench.staging(), SCORE, import_within_s=0.5)
        try:
            return await target.run(unhurried)
        finally:
            await target.close()

    outcome = asyncio.run(run())
    assert outcome.notes == ("prefork: importing heavy took longer than 0.5 s: trials start from nothing",)
    assert outcome.status is Status.OK
    assert ends(int(bell.heard()))


def test_what_imports_print_reaches_nobody(bench: Bench, heavy: Here, capfd: pytest.CaptureFixture) -> None:  # type: ignore[type-arg]
    heavy(
        "import os, sys\nprint('noise'); print('noise', file=sys.stderr); os.write(1, b'{\"ready\": 0}\\n')"
    )
    (outcome,) = bench.each(job(bench))
    assert told(outcome) == (Status.OK, True, True, "fresh", ())
    assert (bench.output / "stderr").read_text() == "" and "noise" not in bench.printed()
    assert capfd.readouterr() == ("", "")


GPU = """
import mmap, os, sys
sys.path.insert(0, {targets!r})
from imports import import_all
from prefork import Declined
def touches():
    try:
        import_all(sys.argv[2:], 10, sys.argv[1])
    except Declined as declined:
        return str(declined)
    return ""
print(touches())
file = open(sys.argv[1] + "0", "r+b")
print(touches())
mapped = mmap.mmap(file.fileno(), 4096)
file.close()
print(touches())
"""


def test_imports_that_open_or_map_a_gpu_are_declined(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    device = tmp_path / "nvidia"
    (tmp_path / "nvidia0").write_bytes(bytes(4096))
    done = run_python(GPU.format(targets=str(REPO / "core" / "targets")), device, "json")
    sentence = f"the imports open {device}0, which no fork survives"
    assert done.stdout.split("\n") == ["", sentence, sentence, ""], done.stderr


OTHERS = [
    ("sh", "bench.sh"),
    ("python3", "-u", "bench.py"),
    ("python3",),
    ("./python3", "bench.py"),
    ("bin/python3", "bench.py"),
    ("pythonista", "bench.py"),
    ("pypy3", "bench.py"),
]


@pytest.mark.parametrize("command", OTHERS, ids=" ".join)
def test_any_other_command_runs_from_nothing(command: tuple[str, ...]) -> None:
    assert interpreter(command, dict(os.environ)) == ""


def test_the_interpreter_is_the_one_that_the_command_means(tmp_path: Path) -> None:
    for name in ("first/python3", "second/python3", "second/python3.12"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        path.chmod(0o755 if "second" in name else 0o644)
    env = {"PATH": f"relative:{tmp_path}/first:{tmp_path}/second"}
    assert interpreter(("python3", "a.py"), env) == f"{tmp_path}/second/python3"
    assert interpreter(("python3.12", "a.py"), env) == f"{tmp_path}/second/python3.12"
    assert interpreter(("/any/python", "a.py"), env) == "/any/python"
    assert interpreter(("python", "a.py"), env) == ""
    for paths in ("relative", f"{tmp_path}:", f":{tmp_path}"):
        assert interpreter(("python3", "a.py"), {**env, "PYTHONPATH": paths}) == ""


def test_a_command_that_is_not_forked_runs_silently(bench: Bench, heavy: Here) -> None:
    heavy("raise ValueError")
    outcome = bench.run("python3", "-c", "print('{\"score\": 1}')", prefork=("heavy",))
    assert (outcome.status, outcome.forked, outcome.notes) == (Status.OK, False, ())


def test_another_environment_has_another_parent(
    bench: Bench, heavy: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy("import os; STATE = os.environ.get('OTHER')")
    forked = job(bench)

    async def run() -> list[Outcome]:
        target = LocalTarget(bench.staging(), SCORE)
        first = await target.run(forked)
        monkeypatch.setenv("OTHER", "told at import")
        outcomes = [first, await target.run(forked)]
        await target.close()
        return outcomes

    outcomes = asyncio.run(run())
    assert [told(each)[1:4] for each in outcomes] == [(True, True, None), (True, True, "told at import")]


HANGS = """
import os, subprocess, sys, time
os.setsid() if os.getsid(0) != os.getpid() else None
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
open({path!r}, "w").write(f"{{os.getpid()}} {{child.pid}} {{os.getppid()}}" + chr(10))
time.sleep(600)
"""


def test_a_time_out_ends_a_forked_trial_and_its_grandchildren(bench: Bench, heavy: Here, bell: Bell) -> None:
    outcome, after = bench.each(
        job(bench, HANGS.format(path=str(bell.path)), timeout_s=0.5),
        bench.job("sh", "-c", "echo '{\"score\": 1}'"),
    )
    assert (outcome.status, outcome.forked, after.status) == (Status.TIMEOUT, True, Status.OK)
    assert all(ends(int(pid)) for pid in bell.heard().split())


def _parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def test_a_cancelled_one_is_ended_and_its_parent_serves_on(bench: Bench, heavy: Here, bell: Bell) -> None:
    hanging = job(bench, HANGS.format(path=str(bell.path)))

    async def run() -> tuple[int, int]:
        target = LocalTarget(bench.staging(), SCORE)
        running = asyncio.create_task(target.run(hanging))
        pids = [int(word) for word in (await bell.rung()).split()]
        parent = _parent_of(pids[2])
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert all(ends(pid) for pid in pids)
        running = asyncio.create_task(target.run(hanging))
        again = _parent_of(int((await bell.rung()).split()[2]))
        await target.close()
        assert (await running).score is None
        return parent, again

    parent, again = asyncio.run(run())
    assert parent == again
    assert ends(parent)


def test_a_parent_that_was_killed_is_replaced(bench: Bench, heavy: Here) -> None:
    program = "import os, re; from pathlib import Path\n" + LOADED.replace(
        '"parent": os.getppid()',
        '"parent": int(re.findall(r"PPid:\\t(.*)", Path(f"/proc/{os.getppid()}/status").read_text())[0])',
    )
    forked = job(bench, program)

    async def run() -> list[Outcome]:
        target = LocalTarget(bench.staging(), SCORE)
        first = await target.run(forked)
        assert first.result is not None
        os.kill(first.result["parent"], signal.SIGKILL)
        assert ends(first.result["parent"])
        outcomes = [first, await target.run(forked)]
        await target.close()
        return outcomes

    first, second = asyncio.run(run())
    assert told(first) == told(second) == (Status.OK, True, True, "fresh", ())
    assert first.result is not None and second.result is not None
    assert first.result["parent"] != second.result["parent"]
    assert ends(second.result["parent"])


SWEPT = """import json, os, sys
loaded = "decimal" in sys.modules
import decimal
config = json.load(open("config.json"))
with open(os.environ["SEEN"], "a") as file:
    print(sys.argv[1], loaded, file=file)
print(json.dumps({"status": "passed", "mode": sys.argv[1], "total_ms": 100 + config["block"]}))
"""
TOML = """schema = 1
name = "forked"
[objective]
metric = "total_ms"
deterministic = true
[files]
mutable = ["config.json"]
protected = ["benchmark.py"]
[modes.dev]
benchmark = ["python3", "benchmark.py", "dev"]
[modes.final]
benchmark = ["python3", "benchmark.py", "final"]
[config]
file = "config.json"
[knobs]
block = [1, 2, 4]
[extras]
prefork = ["decimal"]
"""


def test_a_sweep_forks_what_screens_and_nothing_that_decides(tmp_path: Path) -> None:
    deck = Deck(tmp_path / "swept")
    deck.write("kerneldeck.toml", TOML)
    deck.write("benchmark.py", SWEPT)
    deck.config(block=4)
    seen = tmp_path / "seen"
    env = {"SEEN": str(seen)}
    for words in (("run",), ("repeat", "--mode", "dev"), ("verify",)):
        deck.json(*words, env=env)
    assert seen.read_text() and "True" not in seen.read_text()
    before = len(seen.read_text().splitlines())
    swept = deck.json("sweep", "config", "--keep-best", env=env)
    assert swept["kept"] is True, json.dumps(swept)
    rows = seen.read_text().splitlines()[before:]
    assert rows[:3] == ["dev True"] * 3
    assert set(rows[3:]) == {"final False"}


def test_a_screen_that_decides_is_from_nothing(tmp_path: Path) -> None:
    deck = Deck(tmp_path / "swept")
    deck.write("kerneldeck.toml", TOML)
    deck.write("benchmark.py", SWEPT)
    deck.config(block=4)
    seen = tmp_path / "seen"
    deck.json("sweep", "config", "--mode", "final", env={"SEEN": str(seen)})
    assert set(seen.read_text().splitlines()) == {"final False"}
