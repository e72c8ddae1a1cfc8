"""Nothing of a trial outlives it, whoever else is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.targets.job import Outcome
from core.targets.local import LocalTarget
from core.words import Status
from tests.targets.bench import REPO, SCORE, Bell, Bench, ends

PASSED = '{"status": "passed", "score": 1}'

# The trial passes, its score being the id of a process that would stay for ten minutes.
STAY = """
import ctypes, os, signal, sys, time
read, write = os.pipe()
if os.fork() == 0:
    {how}
    os.write(write, b"%d" % os.getpid())
    {then}
    time.sleep(600)
    os._exit(0)
print('{{"score": ' + os.read(read, 20).decode() + '}}')
"""
STAYING = {
    "a child": ("pass", "pass"),
    "a program": ("pass", "os.execvp('sleep', ['sleep', '600'])"),
    "one that closed its output": ("os.close(0); os.close(1); os.close(2)", "pass"),
    "one that ignores signals": (
        "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]",
        "pass",
    ),
    "one in a session of its own": ("os.setsid(); os.chdir('/')", "pass"),
    "a daemon": ("os.setsid(); os.fork() and os._exit(0); os.setsid()", "pass"),
    "one that adopts orphans": (
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.fork() and time.sleep(600)",
        "pass",
    ),
    "a stopped one": ("pass", "os.kill(os.getpid(), signal.SIGSTOP)"),
    "one that goes on forking": ("os.setsid()", "\n    while not os.fork() or not os._exit(0): pass"),
}


@pytest.mark.parametrize("kind", STAYING)
def test_a_process_left_behind_is_ended_and_told(bench: Bench, kind: str) -> None:
    how, then = STAYING[kind]
    outcome = bench.python(STAY.format(how=how, then=then))
    assert outcome.status is Status.OK, outcome
    assert outcome.notes[0].startswith("left ")
    assert outcome.notes[0].endswith(" behind, ended")
    assert ends(int(outcome.score or 0))


# Goes on until the trial's own process is gone, by itself or ended.
UNTIL_IT_ENDS = "while kill -0 $$ 2>/dev/null; do :; done"


def test_helpers_that_end_by_themselves_a_moment_later_are_not_told(bench: Bench) -> None:
    outcome = bench.shell(f"({UNTIL_IT_ENDS}) & echo '{PASSED}'")
    assert (outcome.status, outcome.notes) == (Status.OK, ())


def test_many_processes_left_behind_are_all_ended(bench: Bench) -> None:
    script = f"for n in $(seq 40); do setsid sleep 600 & done; echo '{PASSED}'"
    outcome = bench.shell(script)
    assert outcome.notes == ("left 40 processes behind, ended",)


def test_output_of_a_child_that_outlives_the_trial_is_kept(bench: Bench) -> None:
    outcome = bench.shell(f"({UNTIL_IT_ENDS}; echo '{PASSED}') & exit 0")
    assert outcome.status is Status.OK


def test_a_time_out_ends_the_whole_tree(bench: Bench) -> None:
    outcome = bench.shell("setsid sleep 600 & echo $!; sleep 600", timeout_s=0.5)
    assert (outcome.status, outcome.notes) == (Status.TIMEOUT, ())
    assert ends(int(bench.printed()))


def test_being_asked_to_end_comes_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.targets.local.GRACE_S", 0.3)
    outcome = bench.shell("trap 'echo asked' TERM; while :; do sleep 600 & wait; done", timeout_s=0.5)
    assert outcome.status is Status.TIMEOUT
    assert bench.printed() == "asked\n"


def test_signals_are_as_a_shell_sets_them(bench: Bench) -> None:
    outcome = bench.shell(f"grep -E '^Sig(Ign|Blk)' /proc/self/status; echo '{PASSED}'")
    assert outcome.status is Status.OK
    _, blocked, _, ignored = bench.printed().split()[:4]
    standard = (1 << 31) - 1  # the rest are real-time signals, which whoever started the tests may ignore
    assert (int(blocked, 16) & standard, int(ignored, 16) & standard) == (0, 0)


def test_no_descriptors_but_the_three_are_passed_on(bench: Bench) -> None:
    bench.shell("ls -l /proc/self/fd")
    ends_of_lines = [line.split()[-3:] for line in bench.printed().splitlines() if "->" in line]
    assert [(fd, target.partition(":")[0]) for fd, _, target in ends_of_lines[:3]] == [
        ("0", "/dev/null"), ("1", "pipe"), ("2", "pipe"),
    ]  # fmt: skip
    (opened_by_ls,) = ends_of_lines[3:]
    assert opened_by_ls[-1].startswith("/proc/")


def test_a_trial_is_offered_to_the_kernel_first_when_memory_runs_out(bench: Bench) -> None:
    bench.shell("cat /proc/self/oom_score_adj")
    assert int(bench.printed()) >= 500


async def _while_running(bench: Bench, bell: Bell, script: str, then: object) -> Outcome:
    """The outcome of a trial whose supervisor is dealt with by `then` once the trial rang the bell."""
    target = LocalTarget(bench.staging(), SCORE)
    task = asyncio.create_task(target.run(bench.job("sh", "-c", script)))
    assert callable(then)
    then(await bell.rung())
    outcome = await task
    again = await target.run(bench.job("echo", PASSED))
    assert again.status is Status.OK, "the next trial gets a supervisor of its own"
    await target.close()
    return outcome


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("generations", [1, 2], ids=["watchdog", "supervisor"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_trial_whose_keeper_is_killed_is_ended_and_lost(
    bench: Bench, bell: Bell, generations: int, number: int
) -> None:
    said: list[int] = []

    def kill(line: str) -> None:
        said.extend(map(int, line.split()))
        keeper = said[0]
        for _ in range(generations):
            keeper = parent(keeper)
        os.kill(keeper, number)

    script = f"setsid sleep 600 & echo $$ $! > '{bell.path}'; sleep 600"
    outcome = asyncio.run(_while_running(bench, bell, script, kill))
    if (generations, number) == (1, signal.SIGTERM):
        assert outcome.status is Status.CANCELLED, "that is how a watchdog is told to cancel"
    else:
        assert (outcome.status, outcome.stage) == (Status.INFRA, "lost")
    assert all(ends(pid) for pid in said)
    assert bench.staged() == []


def test_a_stopped_supervisor_does_not_hold_a_trial_up(bench: Bench, bell: Bell) -> None:
    """It only starts and cancels; the watchdog answers by itself."""
    target = LocalTarget(bench.staging(), SCORE)

    async def run() -> Outcome:
        script = f"echo $$ > '{bell.path}'; read line < go; echo '{PASSED}'"
        task = asyncio.create_task(target.run(bench.job("sh", "-c", f"mkfifo go; {script}")))
        pid = int(await bell.rung())
        supervisor = parent(parent(pid))
        os.kill(supervisor, signal.SIGSTOP)
        try:
            go = Path(f"/proc/{pid}/cwd/go")
            await asyncio.to_thread(go.write_text, "go\n")
            return await task
        finally:
            os.kill(supervisor, signal.SIGCONT)
            await target.close()

    assert asyncio.run(run()).status is Status.OK


OUR_PROCESS = """
import asyncio, sys
from pathlib import Path
from core.targets.local import LocalTarget
from tests.targets.bench import SCORE, Bench
bench = Bench(Path(sys.argv[1]))
async def run():
    target = LocalTarget(bench.staging(), SCORE)
    await asyncio.gather(*(target.run(bench.job("sh", "-c", sys.argv[2])) for _ in range(3)))
asyncio.run(run())
"""


@contextmanager
def our_process(bench: Bench, script: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", OUR_PROCESS, str(bench.folder), script],
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_our_process_is_killed_the_supervisor_ends_every_trial(
    bench: Bench, bell: Bell, number: int
) -> None:
    script = f"setsid sleep 600 & echo $$ $! > '{bell.path}'; sleep 600"
    with our_process(bench, script) as process:
        words: list[str] = []
        while len(words) < 6:
            words += bell.heard().split()
        pids = [int(word) for word in words]
        watchdogs = {parent(pid) for pid in pids[::2]}
        supervisor = parent(next(iter(watchdogs)))
        process.send_signal(number)
        assert all(ends(pid) for pid in (*pids, *watchdogs, supervisor))


def test_a_process_that_cannot_be_killed_is_reported_not_waited_for(tmp_path: Path) -> None:
    """As when a driver hangs; here the supervisor's kills are taken away from it."""
    program = REPO / "core" / "targets" / "supervisor.py"
    code = (
        f"import sys; sys.path.insert(0, {str(program.parent)!r}); import supervisor, watchdog\n"
        "watchdog.REAP_DEADLINE_S = 0.2\n"
        "watchdog.os.kill = watchdog.os.killpg = lambda *_: None\n"
        "supervisor.main()"
    )
    request = {
        "id": 1, "argv": ["sleep", "600"], "cwd": "/", "env": dict(os.environ), "wall_s": 0.05,
        "grace_s": 0.05, "stdout": str(tmp_path / "out"), "stderr": str(tmp_path / "err"),
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        reply = json.loads(process.stdout.readline())
        process.stdin.close()
    (survivor,) = reply["survivors"]
    assert (reply["ended_by"], reply["exit_code"], reply["signal"]) == ("timeout", None, None)
    assert ends(survivor), "its parent, the watchdog, is gone"
