"""The timing file: arms, rounds, visits and the result it writes."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.kernels.conftest import SOURCE
from tests.kernels.scripted import measured

BENCHMARK = """
import json, os, sys
import kerneldeck_timing as timing

arms = timing.arms()
kernels = {arm.slot: timing.load(arm.folder, "kernel.py", arm.slot) for arm in arms}
calls = []

def call_of(arm, case):
    def call():
        calls.append([arm.slot, case])
        kernels[arm.slot].run()
    return call

cases = ["small", "large"]
times = timing.measure(arms, cases, call_of, timing.plan(arms))

def report(slot):
    entries = [{"name": case, "status": "passed", **times.case_fields(slot, case)} for case in cases]
    return {"slot": slot, "status": "passed", "best_us": sum(e["best_us"] for e in entries), "cases": entries}

result = timing.result_of([report(arm.slot) for arm in arms], "dev", times)
result["calls"] = calls
result["kernels"] = [dict(k.state(), name=k.__name__) for k in kernels.values()]
print(timing.write_result(result))
"""

KERNEL = """
import os
import counting
seen = sorted(name for name in os.environ if name.startswith("KERNELDECK_"))
runs = 0

def run():
    global runs
    runs += 1
    counting.total += 1

def state():
    return {"runs": runs, "total": counting.total, "seen": seen}
"""


def lay_out(folder: Path, kernel: str = KERNEL) -> Path:
    """A workspace of three files and the timing file."""
    folder.mkdir()
    shutil.copy(SOURCE, folder)
    (folder / "benchmark.py").write_text(BENCHMARK)
    (folder / "kernel.py").write_text(kernel)
    (folder / "counting.py").write_text("total = 0\n")
    return folder


def environment(**asked: str) -> dict[str, str]:
    """Ours without other requests, with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KERNELDECK_")}
    return {**kept, **{f"KERNELDECK_{name}": value for name, value in asked.items()}}


def run_benchmark(folder: Path, **asked: str) -> dict[str, Any]:
    """The JSON that the folder's benchmark printed."""
    done = subprocess.run(
        [sys.executable, "benchmark.py"], cwd=folder, env=environment(**asked), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def visits_file(path: Path, *rounds: dict[str, object]) -> str:
    """A file of rounds, one a line."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rounds))
    return str(path)


def test_nothing_asked_gives_one_arm_in_twelve_rounds_with_a_seed(tmp_path: Path) -> None:
    result = run_benchmark(lay_out(tmp_path / "w"), WARM_S="0")
    timing_fields = result["timing"]
    assert "arms" not in result
    assert (result["schema"], result["nonce"], result["status"], result["mode"]) == (1, None, "passed", "dev")
    assert (timing_fields["engine"], timing_fields["rounds"], timing_fields["launches"]) == (
        "cpu_wall",
        12,
        25,
    )
    assert isinstance(timing_fields["seed"], int)
    assert [case["name"] for case in result["cases"]] == ["small", "large"]


def test_the_result_file_is_whole_and_carries_the_nonce(tmp_path: Path) -> None:
    target = tmp_path / "out" / "result.json"
    target.parent.mkdir()
    printed = run_benchmark(lay_out(tmp_path / "w"), WARM_S="0", NONCE="n-17", RESULT=str(target))
    assert json.loads(target.read_text()) == printed
    assert printed["nonce"] == "n-17"
    assert list(target.parent.iterdir()) == [target]


def test_the_request_is_gone_from_the_environment_when_a_candidate_loads(tmp_path: Path) -> None:
    result = run_benchmark(lay_out(tmp_path / "w"), WARM_S="0", NONCE="secret", RESULT=str(tmp_path / "r"))
    assert result["kernels"][0]["seen"] == []


def test_arms_are_visited_in_the_order_asked_case_by_case(tmp_path: Path) -> None:
    a, b = lay_out(tmp_path / "a"), lay_out(tmp_path / "b")
    orders = [[2, 0, 1], [1, 2, 0], [0, 1, 2]]
    rounds = [{"order": order, "cases_seed": seed, "launches": 4} for seed, order in enumerate(orders)]
    visits = visits_file(tmp_path / "visits", *rounds)
    result = run_benchmark(a, ARMS=json.dumps([str(a), str(b), str(a)]), VISITS=visits, WARM_S="0")
    expected = [[slot, case] for case in ("small", "large") for slot in (0, 1, 2)]
    for seed, order in enumerate(orders):
        cases = ["small", "large"]
        random.Random(seed).shuffle(cases)
        expected += [[slot, case] for case in cases for slot in order for _ in range(1 + 4)]
    assert result["calls"] == expected
    assert result["timing"]["seed"] is None
    assert [entry["order"] for entry in result["timing"]["plan"]] == orders


def test_blocks_are_rounds_by_launches_in_ns_for_every_arm_and_case(tmp_path: Path) -> None:
    a = lay_out(tmp_path / "a")
    rounds = [{"order": [1, 0], "cases_seed": 1, "launches": launches} for launches in (5, 7)]
    visits = visits_file(tmp_path / "visits", *rounds)
    result = run_benchmark(a, ARMS=json.dumps([str(a), str(a)]), VISITS=visits, WARM_S="0")
    assert [arm["slot"] for arm in result["arms"]] == [0, 1]
    for arm in result["arms"]:
        for case in arm["cases"]:
            launch = case["samples"]["launch_us"]
            assert (launch["engine"], launch["unit"]) == ("cpu_wall", "us")
            assert [len(block) for block in launch["blocks"]] == [5, 7]
            flat = [time_us for block in launch["blocks"] for time_us in block]
            assert all(time_us > 0 and round(time_us, 3) == time_us for time_us in flat)
            assert case["best_us"] == min(flat)
            assert case["median_us"] == round(statistics.median(flat), 3)
    assert result["cases"] == result["arms"][0]["cases"]


def test_one_folder_twice_is_two_modules_with_siblings_of_their_own(tmp_path: Path) -> None:
    a = lay_out(tmp_path / "a")
    rounds = [{"order": order, "cases_seed": 1, "launches": 3} for order in ([0, 1], [0])]
    visits = visits_file(tmp_path / "visits", *rounds)
    result = run_benchmark(a, ARMS=json.dumps([str(a), str(a)]), VISITS=visits, WARM_S="0")
    first, second = result["kernels"]
    assert (first["name"], second["name"]) == ("kerneldeck_arm0_kernel", "kerneldeck_arm1_kernel")
    assert first["runs"] == first["total"] == 2 * (1 + 4 + 4)
    assert second["runs"] == second["total"] == 2 * (1 + 4)


def test_a_slot_left_out_of_a_round_has_an_empty_block_there(tmp_path: Path) -> None:
    a = lay_out(tmp_path / "a")
    rounds = [
        {"order": [0, 1], "cases_seed": 1, "launches": 3},
        {"order": [1], "cases_seed": 1, "launches": 3},
    ]
    visits = visits_file(tmp_path / "visits", *rounds)
    result = run_benchmark(a, ARMS=json.dumps([str(a), str(a)]), VISITS=visits, WARM_S="0")
    blocks = [arm["cases"][0]["samples"]["launch_us"]["blocks"] for arm in result["arms"]]
    assert [[len(block) for block in each] for each in blocks] == [[3, 0], [3, 3]]


def test_rounds_from_a_fifo_are_carried_out_as_they_arrive(tmp_path: Path) -> None:
    visits, done = tmp_path / "visits", tmp_path / "done"
    os.mkfifo(visits)
    os.mkfifo(done)
    # Opened for both, so that neither end waits for the other to open.
    asked_fd, done_fd = os.open(visits, os.O_RDWR), os.open(done, os.O_RDWR)
    kernel = f"""
said = open({str(done)!r}, "wb", buffering=0)
def run(): said.write(b".")
def state(): return {{}}
"""
    folder = lay_out(tmp_path / "w", kernel)
    env = environment(VISITS=str(visits), WARM_S="0")
    with subprocess.Popen(
        [sys.executable, "benchmark.py"], cwd=folder, env=env, stdout=subprocess.PIPE
    ) as process:
        heard(done_fd, 2)
        for launches in (3, 5):
            line = json.dumps({"order": [0], "cases_seed": 1, "launches": launches}) + "\n"
            os.write(asked_fd, line.encode())
            heard(done_fd, 2 * (1 + launches))
        assert not select.select([done_fd], [], [], 0)[0]
        os.close(asked_fd)
        result = json.loads(process.communicate(timeout=30)[0])
    os.close(done_fd)
    assert [len(block) for block in result["cases"][0]["samples"]["launch_us"]["blocks"]] == [3, 5]


def heard(fd: int, count: int) -> None:
    """Waits for `count` bytes, each the sign of one call."""
    while count:
        assert select.select([fd], [], [], 30)[0], "the benchmark made no call"
        count -= len(os.read(fd, count))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ARMS", "{", "KERNELDECK_ARMS is no JSON list of folder names"),
        ("ARMS", "[]", "KERNELDECK_ARMS is no JSON list of folder names"),
        ("ARMS", '["/does/not/exist"]', "'/does/not/exist' is no folder"),
        ("WARM_S", "soon", "KERNELDECK_WARM_S: 'soon' is no number of seconds"),
        ("WARM_S", "inf", "KERNELDECK_WARM_S: 'inf' is no number of seconds"),
        ("VISITS", "/does/not/exist", "KERNELDECK_VISITS: /does/not/exist cannot be read"),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_by_name(
    timing: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    monkeypatch.setenv("KERNELDECK_WARM_S", "0")
    monkeypatch.setenv(f"KERNELDECK_{name}", text)
    with pytest.raises(timing.TimingError, match=said):
        measured(timing, timing.arms())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "visits:1: this line is no round"),
        ("[1]", "visits:1: this line is no round"),
        ('{"cases_seed": 1}', r"visits:1: order None is no list of different slots from 0 to 0"),
        ('{"order": [0, 0], "cases_seed": 1}', r"order \[0, 0\] is no list of different slots"),
        ('{"order": [1], "cases_seed": 1}', r"order \[1\] is no list of different slots from 0 to 0"),
        ('{"order": [false], "cases_seed": 1}', r"order \[False\] is no list"),
        ('{"order": [0], "cases_seed": "x"}', "cases_seed 'x' is no whole number"),
        ('{"order": [0], "cases_seed": 1, "launches": 0}', "launches 0 is neither null nor from 1"),
    ],
)
def test_a_bad_round_is_refused_with_its_line(
    timing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, said: str
) -> None:
    visits = tmp_path / "visits"
    visits.write_text(line + "\n")
    monkeypatch.setenv("KERNELDECK_VISITS", str(visits))
    with pytest.raises(timing.TimingError, match=said):
        measured(timing, timing.arms())


def test_a_file_without_rounds_is_refused(
    timing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KERNELDECK_VISITS", visits_file(tmp_path / "visits"))
    with pytest.raises(timing.TimingError, match="asks for no round"):
        measured(timing, timing.arms())


def test_two_loads_of_one_kernel_read_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = KERNEL.replace("    runs += 1", "    runs += 1\n    sum(range(2000))")
    a = lay_out(tmp_path / "a", work)
    result = run_benchmark(a, ARMS=json.dumps([str(a), str(a)]), WARM_S="0.1")
    best_us = [arm["best_us"] for arm in result["arms"]]
    with capsys.disabled():
        print(
            f"\n  A/A of one kernel loaded twice: {best_us[1] / best_us[0] - 1:+.2%} on the sum of minima",
            end="",
        )
    assert min(best_us) > 0
