"""One trial through the agent: what it finds, what comes back, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import TargetFault
from core.targets.job import Outcome
from core.targets.remove_tree import remove_tree
from core.targets.result import Asked, judge
from core.targets.ssh.remote_trials import Collected, RemoteTrial
from core.words import Status
from core.workspace.config import Objective
from tests.remote.agents import NONCE, RESULT, Running, agent, most_resident_kib, processes_with, run

STUBBORN = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    time.sleep(600)
if os.fork() == 0:
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""


def collected_from(tmp_path: Path, make: Callable[[Running], RemoteTrial]) -> Collected:
    found: list[Collected] = []

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            found.append(await there.trials.run(make(there), tmp_path / "out"))

    run(main())
    return found[0]


def judged(collected: Collected, mode: str = "bench") -> Outcome:
    asked = Asked(Objective("us"), mode, NONCE, 30.0)
    texts = [(collected.folder / name).read_text(errors="replace") for name in ("stdout", "stderr")]
    return judge(asked, collected.ended, collected.folder / "result", *texts)


def test_a_trial_finds_its_files_and_its_result_comes_back(tmp_path: Path) -> None:
    program = (
        RESULT
        + """
import sys
result(us=2.5, text=open("sub/a.txt").read())
print("out")
print("err", file=sys.stderr)
"""
    )
    collected = collected_from(tmp_path, lambda there: there.script(program, files={"sub/a.txt": b"content"}))
    outcome = judged(collected)
    assert (outcome.status, outcome.score, outcome.channel) == (Status.OK, 2.5, "file")
    assert outcome.result is not None and outcome.result["text"] == "content"
    assert (collected.folder / "stdout").read_text() == "out\n"
    assert (collected.folder / "stderr").read_text() == "err\n"


def test_its_environment_is_the_trial_interface_and_what_the_target_says(tmp_path: Path) -> None:
    program = "import json, os; print(json.dumps({**os.environ, 'cwd': os.getcwd()}))"
    env = {"MINE": "é", "HOME": None, "KERNELDECK_WARM_S": "3"}
    collected = collected_from(tmp_path, lambda there: there.script(program, env=env, visits="[1]\n"))
    found = json.loads((collected.folder / "stdout").read_text())
    assert found["MINE"] == "é"
    assert "HOME" not in found
    assert found["PWD"] == found["cwd"]
    ours = {name for name in found if name.startswith("KERNELDECK_")}
    assert ours == {"KERNELDECK_RESULT", "KERNELDECK_NONCE", "KERNELDECK_VISITS", "KERNELDECK_WARM_S"}


def test_arms_stand_in_folders_of_their_own_and_equal_ones_share_one(tmp_path: Path) -> None:
    program = b"""
import json, os
arms = json.loads(os.environ["KERNELDECK_ARMS"])
texts = [open(arm + "/k.py").read() for arm in arms]
print(texts, len(set(arms)), open(os.environ["KERNELDECK_VISITS"]).read())
"""

    def make(there: Running) -> RemoteTrial:
        trees = tuple(there.held.tree({"bench.py": program, "k.py": text}) for text in (b"one", b"two"))
        return there.trial("python3", "bench.py", trees=trees, slots=(0, 1, 0), visits="v")

    collected = collected_from(tmp_path, make)
    assert (collected.folder / "stdout").read_text() == "['one', 'two', 'one'] 2 v\n"


def test_a_container_is_given_what_the_trial_is_to_see(tmp_path: Path) -> None:
    """Its stand-in passes on what it is told to by `-e NAME`, and nothing else of its own environment."""
    container = tmp_path / "container"
    container.write_text(
        "#!/usr/bin/env python3\nimport os, sys\n_, cwd, *words = sys.argv\nenv = {}\n"
        "while words[0] == '-e':\n    env[words[1]] = os.environ[words[1]]\n    words = words[2:]\n"
        "os.chdir(cwd)\nos.execve('/bin/sh', ['sh', '-c', 'env'], env)\n"
    )
    container.chmod(0o755)
    env = {"CUDA_VISIBLE_DEVICES": "GPU-3", "MINE": "a b", "GONE": None}
    wrapper = (str(container), "{cwd}", "{env}")
    collected_from(tmp_path, lambda there: there.trial("env", wrapper=wrapper, env=env))
    found = dict(line.split("=", 1) for line in (tmp_path / "out" / "stdout").read_text().splitlines())
    assert {name for name in found if name not in ("PWD", "_", "SHLVL")} == {
        "CUDA_VISIBLE_DEVICES", "MINE", "KERNELDECK_NONCE", "KERNELDECK_RESULT"
    }  # fmt: skip
    assert (found["CUDA_VISIBLE_DEVICES"], found["MINE"]) == ("GPU-3", "a b")


def test_what_a_wrapper_started_elsewhere_is_not_ended(tmp_path: Path) -> None:
    """As `docker exec`, which only asks somebody else to run the command, and waits."""
    asked = tmp_path / "asked"
    os.mkfifo(asked)
    elsewhere = subprocess.Popen(["sh", "-c", f"read _ < {asked}; exec sleep 600"])
    try:
        wrapper = ("sh", "-c", f"echo > {asked}; exec sleep 600")
        collected = collected_from(
            tmp_path, lambda there: there.trial("true", wrapper=wrapper, wall_s=1.0, grace_s=0.1)
        )
        assert collected.ended.ended_by == "timeout"
        assert elsewhere.poll() is None
    finally:
        elsewhere.kill()
        elsewhere.wait()


def test_a_wrapper_stands_before_the_command(tmp_path: Path) -> None:
    wrapper = ("sh", "-c", 'echo "$@"; cd "$1"; shift 5; exec "$@"', "sh", "{cwd}", "{env}")
    collected = collected_from(tmp_path, lambda there: there.trial("pwd", wrapper=wrapper))
    told, folder = (collected.folder / "stdout").read_text().splitlines()
    assert told == f"{folder} -e KERNELDECK_NONCE -e KERNELDECK_RESULT pwd"


def test_wanted_files_come_back_and_links_do_not(tmp_path: Path) -> None:
    program = """
import os
os.mkdir('d')
open('d/report', 'w').write('r' * 3000000)
os.symlink('/etc/passwd', 'link')
"""
    wanted = ("d/report", "link", "absent")
    collected = collected_from(tmp_path, lambda there: there.script(program, wanted=wanted))
    assert (collected.folder / "wanted.0").read_bytes() == b"r" * 3_000_000
    assert collected.states["wanted.1"] == "link"
    assert not (collected.folder / "wanted.1").exists()
    assert "wanted.2" not in collected.states


@pytest.mark.parametrize(
    ("program", "status", "reason"),
    [
        ("raise SystemExit(3)", Status.CRASH, "exit 3 without a result"),
        ("import os; os.kill(os.getpid(), 11)", Status.CRASH, "signal 11 (SIGSEGV)"),
        ("pass", Status.CRASH, "no_result: it exited 0 without a JSON object"),
        (
            "import os; os.symlink('/etc/passwd', os.environ['KERNELDECK_RESULT'])",
            Status.CRASH,
            "it is a link",
        ),
        ("import os; os.mkfifo(os.environ['KERNELDECK_RESULT'])", Status.CRASH, "it is no regular file"),
        (
            "import os; open(os.environ['KERNELDECK_RESULT'], 'w').truncate((64 << 20) + 1)",
            Status.CRASH,
            "it is larger than 64 MiB",
        ),
        ('print(\'{"status": "ok", "us": 4.0}\')', Status.OK, ""),
    ],
)
def test_its_end_is_judged_as_on_the_local_target(
    tmp_path: Path, program: str, status: Status, reason: str
) -> None:
    outcome = judged(collected_from(tmp_path, lambda there: there.script(program)))
    assert outcome.status is status
    assert reason in outcome.reason


def test_a_command_that_is_not_there_is_a_fault_of_spawn(tmp_path: Path) -> None:
    collected = collected_from(tmp_path, lambda there: there.trial("no-such-program"))
    with pytest.raises(TargetFault, match="No such file") as caught:
        _ = collected.ended
    assert caught.value.stage == "spawn"


def test_a_time_out_ends_children_that_hide_and_ignore_signals(tmp_path: Path) -> None:
    mark = f"MARK={tmp_path}"
    collected = collected_from(
        tmp_path, lambda there: there.script(STUBBORN, wall_s=1.0, grace_s=0.2, env={"MARK": str(tmp_path)})
    )
    assert collected.ended.ended_by == "timeout"
    assert collected.ended.survivors == ()
    assert processes_with(mark) == []


def test_a_cancelled_task_ends_the_trial_first(tmp_path: Path) -> None:
    mark = f"MARK={tmp_path}"

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            began = asyncio.Event()
            trial = there.script(STUBBORN, grace_s=0.2, env={"MARK": str(tmp_path)})
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "out", lambda _: began.set()))
            await began.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert processes_with(mark) == []
            assert (await there.trials.run(there.script("pass"), tmp_path / "out2")).ended.clean

    run(main())


def test_a_cpu_limit_ends_what_computes_for_ever(tmp_path: Path) -> None:
    collected = collected_from(tmp_path, lambda there: there.script("while True: pass", cpu_s=1))
    assert (collected.ended.ended_by, collected.ended.signal) == ("cpu", signal.SIGXCPU)


def test_a_flood_of_output_neither_blocks_nor_fills_memory(tmp_path: Path) -> None:
    program = "import os\nfor _ in range(4800): os.write(1, b'x' * 62500)\nos.write(1, b'the end')"
    memory: list[int] = []

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            collected = await there.trials.run(there.script(program, head_bytes=100_000), tmp_path / "out")
            stdout = (tmp_path / "out" / "stdout").read_bytes()
            assert stdout.startswith(b"x" * 100_000 + b"\n[") and stdout.endswith(b"the end")
            assert collected.ended.stdout_left_out > 299_000_000
            memory.append(most_resident_kib(there.process.pid))

    run(main())
    assert memory[0] < 60_000


@pytest.mark.parametrize(
    ("act", "finding"),
    [
        ("pass", ["d/v.py", "sha256", ""]),
        ("open('d/v.py', 'a').write('more')", ["d/v.py", "sha256", "other"]),
        ("os.unlink('d/v.py')", ["d/v.py", "removed", ""]),
        ("os.unlink('d/v.py'); os.symlink('/etc/passwd', 'd/v.py')", ["d/v.py", "replaced", "it is a link"]),
        ("os.unlink('d/v.py'); os.mkfifo('d/v.py')", ["d/v.py", "replaced", "it is no regular file"]),
        ("os.rename('d', 'e'); os.symlink('e', 'd')", ["d/v.py", "folder_link", ""]),
        ("import shutil; shutil.rmtree(os.getcwd())", ["d/v.py", "no_folder", ""]),
    ],
)
def test_what_became_of_a_protected_file_comes_back(tmp_path: Path, act: str, finding: list[str]) -> None:
    def make(there: Running) -> RemoteTrial:
        tree = there.held.tree(
            {"bench.py": f"import os; {act}".encode(), "d/v.py": b"v"}, protected=("d/v.py",)
        )
        return there.trial("python3", "bench.py", trees=(tree,))

    collected = collected_from(tmp_path, make)
    name, kind, word = collected.outcome["protected"][0][0]
    sealed = "4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080"
    if kind == "sha256":
        word = "" if word == sealed else "other"
    assert [name, kind, word] == finding
    changed = tmp_path / "out" / "changed.0"
    assert changed.exists() == ("more" in act)
    assert not changed.exists() or changed.read_bytes() == b"vmore"


def test_writing_into_a_shared_file_is_told_and_reaches_no_later_trial(tmp_path: Path) -> None:
    """As root, which nothing keeps from writing, or after a chmod."""
    large = b"L" * (2 << 20)

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            spoil = "import os; os.chmod('large', 0o644); open('large', 'r+b').write(b'spoilt')"
            collected = await there.trials.run(there.script(spoil, files={"large": large}), tmp_path / "1")
            assert collected.outcome["written_into"] == ["large"]
            look = "print(open('large', 'rb').read(6))"
            await there.trials.run(there.script(look, files={"large": large}), tmp_path / "2")
            assert (tmp_path / "2" / "stdout").read_text() == "b'LLLLLL'\n"

    run(main())


def test_nothing_of_a_collected_trial_stays(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            odd = "import os; os.makedirs('a/b'); os.chmod('a', 0); open('x', 'w')"
            first = there.script(odd)
            await there.trials.run(first, tmp_path / "1")
            await there.trials.run(there.script("pass"), tmp_path / "2")
            answer: dict[str, Any] = {"left": [first.id]}
            while answer["left"]:
                answer = await there.link.request("forget", {"trials": [first.id]}, 10)
            assert not (there.scratch / "trials" / first.id).exists()

    run(main())
    remove_tree(tmp_path / "s")


def test_many_trials_at_once_keep_their_answers_apart(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trials = [there.trial("sh", "-c", f"echo {number}") for number in range(8)]
            await asyncio.gather(
                *(there.trials.run(trial, tmp_path / str(number)) for number, trial in enumerate(trials))
            )
            assert [(tmp_path / str(n) / "stdout").read_text() for n in range(8)] == [
                f"{n}\n" for n in range(8)
            ]

    run(main())
