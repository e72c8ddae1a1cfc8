"""The supervisor as a program of its own, and the client that talks to it."""

from __future__ import annotations

import ast
import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.local import LocalTarget
from core.targets.supervisor_client import SupervisorClient
from core.words import JsonObject, Status
from tests.targets.bench import REPO, SCORE, Bench

PARTS = ("supervisor", "wards", "watchdog", "capped_file", "prefork", "imports", "ending", "forked")
FILES = [REPO / "core" / "targets" / f"{name}.py" for name in PARTS]


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_it_is_written_in_python_3_8(file: Path) -> None:
    assert ast.parse(file.read_text(), feature_version=(3, 8)).body


@pytest.mark.parametrize("file", FILES, ids=[file.name for file in FILES])
def test_it_imports_the_standard_library_only(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    beside = {file.stem for file in FILES} | {f"core.targets.{file.stem}" for file in FILES}
    assert {name for name in names - beside if name.partition(".")[0] not in sys.stdlib_module_names} == set()


def test_the_files_work_anywhere_without_the_rest(tmp_path: Path) -> None:
    for file in FILES:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(tmp_path / "supervisor.py")], stdin=subprocess.DEVNULL, cwd="/"
    )
    assert done.returncode == 0


def request(folder: Path, *argv: str, **more: object) -> JsonObject:
    return {
        "argv": list(argv), "cwd": str(folder), "env": dict(os.environ), "wall_s": 20, "grace_s": 1,
        "stdout": str(folder / "out"), "stderr": str(folder / "err"), **more,
    }  # fmt: skip


def answers(*requests: JsonObject) -> list[JsonObject]:
    async def ask_all() -> list[JsonObject]:
        client = SupervisorClient()
        try:
            return await asyncio.gather(*map(client.run, requests))
        finally:
            await client.close()

    return asyncio.run(ask_all())


def test_an_answer_says_how_the_process_ended(tmp_path: Path) -> None:
    (answer,) = answers(request(tmp_path, "sh", "-c", "exit 7"))
    assert answer.pop("duration_s") > 0
    assert answer == {
        "id": 1, "exit_code": 7, "signal": None, "ended_by": "itself", "stdout_left_out": 0,
        "stdout_lost": 0, "left_behind": 0, "survivors": [], "oom_kills": 0,
    }  # fmt: skip


def test_a_reason_of_any_length_does_not_break_the_answers(tmp_path: Path) -> None:
    requests = [request(tmp_path, "x" * 4000 + "\udcff" * 3000) for _ in range(20)]
    found = answers(*requests, request(tmp_path, "true"))
    assert {answer["stage"] for answer in found[:-1]} == {"spawn"}
    assert found[-1]["exit_code"] == 0


def test_a_folder_that_is_gone_is_of_stage_scratch(tmp_path: Path) -> None:
    (answer,) = answers(request(tmp_path, "true", cwd=str(tmp_path / "gone")))
    assert (answer["stage"], answer["failure"]) == ("scratch", "No such file or directory")


def test_a_large_request_arrives_whole(tmp_path: Path) -> None:
    long = [f"{number:0100d}" for number in range(1000)]
    (answer,) = answers(request(tmp_path, "echo", *long))
    assert answer["exit_code"] == 0
    assert (tmp_path / "out").read_text().split() == long


def test_without_a_process_to_start_it_is_of_stage_spawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(TargetFault) as fault:
        answers(request(Path("/"), "true"))
    assert fault.value.stage == "spawn"


def test_many_trials_at_once_have_one_supervisor_and_their_own_answers(bench: Bench) -> None:
    def job(number: int) -> object:
        script = f'echo $PPID; echo \'{{"status": "passed", "score": {number}}}\''
        return replace(bench.job("sh", "-c", script), output_dir=bench.folder / str(number))

    async def run() -> list[float | None]:
        target = LocalTarget(bench.staging(), SCORE)
        outcomes = await asyncio.gather(*(target.run(job(number)) for number in range(1, 41)))  # type: ignore[arg-type]
        await target.close()
        assert {outcome.status for outcome in outcomes} == {Status.OK}
        return [outcome.score for outcome in outcomes]

    assert asyncio.run(run()) == list(range(1, 41))
    assert bench.staged() == []


def test_descriptors_do_not_leak(bench: Bench, tmp_path: Path) -> None:
    """Ours and the supervisor's, over runs that end well, fail to start, time out and are lost."""

    def descriptors(pid: int | str = "self") -> int:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    async def run() -> tuple[list[int], list[int]]:
        client = SupervisorClient()
        ours, theirs = [], []
        for number in range(200):
            if number == 100:
                await client.run(request(tmp_path, "no-such-program"))
            await client.run(request(tmp_path, "sh", "-c", "echo $PPID"))
            if number % 20 == 0:
                watchdog = "ls -1 /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/fd | wc -l"
                await client.run(request(tmp_path, "sh", "-c", watchdog))
                theirs.append(int((tmp_path / "out").read_text()))
                ours.append(descriptors())
        await client.close()
        return ours, theirs

    before = descriptors()
    ours, theirs = asyncio.run(run())
    assert len(set(ours)) == 1
    assert len(set(theirs)) == 1
    assert descriptors() == before


def test_closing_leaves_nothing_to_be_collected_with_a_warning(
    run_python: object, bench: Bench, tmp_path: Path
) -> None:
    code = (
        "import gc, sys; from pathlib import Path; from tests.targets.bench import Bench\n"
        "bench = Bench(Path(sys.argv[1])); bench.shell('true'); bench.shell('exit 1'); gc.collect()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
