"""The timing file: arms, rounds, visits and the result it writes."""

from __future__ import annotations

import ast
import ctypes
import importlib.util
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

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "kernels" / "kerneldeck_timing.py"

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


@pytest.fixture
def timing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The timing file as a process finds it that nobody asked anything."""
    for name in list(os.environ):
        if name.startswith("KERNELDECK_"):
            monkeypatch.delenv(name)
    spec = importlib.util.spec_from_file_location("kerneldeck_timing", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "kerneldeck_timing", module)
    spec.loader.exec_module(module)
    return module


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


class ScriptedEngine:
    """Launches that all take `launch_us`; a visit whose number is in `distrusted` is a fault."""

    name = "scripted"
    unit = "us"

    def __init__(self, launch_us: float, distrusted: tuple[int, ...] = ()) -> None:
        self.launch_us = launch_us
        self.distrusted = distrusted
        self.visits = 0

    def resolution_us(self) -> float:
        return 0.001

    def time_launches(self, call: object, count: int) -> list[float]:
        return [self.launch_us + self.visits] * count

    def sync(self) -> None:
        """Nothing to wait for."""

    def fault(self, launch_us: list[float]) -> str | None:
        self.visits += 1
        return "distrusted" if self.visits - 1 in self.distrusted else None


def measured(timing: ModuleType, arms: list[Any], engine: object = None, repeats: int | None = None) -> Any:
    """A measurement of one case that does nothing."""
    return timing.measure(
        arms, ["only"], lambda arm, case: lambda: None, timing.plan(arms, repeats, 1, 0.0), engine
    )


def test_a_round_that_the_engine_distrusts_is_kept_and_counts_nowhere(timing: ModuleType) -> None:
    times = measured(timing, [timing.Arm(0, ".")], ScriptedEngine(1.0, (0, 2)), repeats=4)
    fields = times.case_fields(0, "only")
    assert fields["samples"]["launch_us"]["blocks"] == [[1.0], [2.0], [3.0], [4.0]]
    assert times.timing_fields()["discarded_rounds"] == [0, 2]
    assert times.timing_fields()["discard_reasons"] == ["distrusted", "distrusted"]
    assert (fields["best_us"], fields["median_us"]) == (2.0, 3.0)


def test_an_arm_without_a_round_that_counts_is_unstable(timing: ModuleType) -> None:
    times = measured(timing, [timing.Arm(0, ".")], ScriptedEngine(1.0, (0,)), repeats=1)
    report = {"slot": 0, "status": "passed", "best_us": None, "cases": [times.case_fields(0, "only")]}
    result = timing.result_of([report], "dev", times)
    assert result["status"] == "unstable"
    assert result["cases"][0]["best_us"] is None


def test_the_cpu_engine_distrusts_a_clock_that_stood_still_but_no_slow_launch(timing: ModuleType) -> None:
    engine = timing.CpuWallEngine()
    assert engine.fault([1.0, 1e9]) is None
    assert engine.fault([1.0, 0.0]) == "a launch took 0 µs: the clock stood or went backwards"
    assert "took -3 µs" in engine.fault([-3.0])
    assert 0 < engine.resolution_us() < 1000


@pytest.mark.parametrize(("launch_us", "launches"), [(10.0, 25), (1000.0, 10), (90_000.0, 3)])
def test_launches_that_nobody_fixed_fit_a_visit_of_ten_ms(
    timing: ModuleType, launch_us: float, launches: int
) -> None:
    times = measured(timing, [timing.Arm(0, ".")], ScriptedEngine(launch_us))
    assert {len(block) for block in times.blocks[0, "only"]} == {launches}


@pytest.mark.parametrize(
    ("repeats", "shape"),
    [(1, [1]), (24, [2] * 12), (50, [5] * 2 + [4] * 10), (1000, [25] * 40), (None, [25] * 12)],
)
def test_repeats_are_the_timed_launches_of_each_arm_and_case(
    timing: ModuleType, repeats: int | None, shape: list[int]
) -> None:
    arms = [timing.Arm(slot, ".") for slot in range(3)]
    times = measured(timing, arms, ScriptedEngine(1.0), repeats)
    for arm in arms:
        assert [len(block) for block in times.blocks[arm.slot, "only"]] == shape
    assert all(sorted(each.order) == [0, 1, 2] for each in times.rounds)


def test_an_arm_that_cannot_run_is_passed_over(timing: ModuleType) -> None:
    arms = [timing.Arm(slot, ".") for slot in range(3)]
    plan = timing.plan(arms, 6, 1, 0.0)
    times = timing.measure(
        [arms[0], arms[2]], ["only"], lambda arm, case: lambda: None, plan, ScriptedEngine(1.0)
    )
    assert sorted(times.blocks) == [(0, "only"), (2, "only")]
    assert {len(each.order) for each in times.rounds} == {3}


def test_the_worst_arm_names_the_status_and_slot_0_the_numbers(timing: ModuleType) -> None:
    reports = [
        {"slot": 0, "status": "passed", "best_us": 3.0, "cases": [], "errors": []},
        {"slot": 1, "status": "compile_error", "best_us": None, "cases": [], "errors": ["no"]},
        {"slot": 2, "status": "incorrect", "best_us": None, "cases": [], "errors": ["off", "by one"]},
    ]
    result = timing.result_of(reports, "final")
    assert (result["status"], result["best_us"], result["mode"]) == ("compile_error", 3.0, "final")
    assert result["errors"] == ["no", "off", "by one"]
    assert result["arms"] == reports
    assert "slot" not in result


def test_numbers_that_are_not_finite_go_out_as_null(timing: ModuleType) -> None:
    numbers = {
        "a": float("nan"),
        "b": [float("inf"), 1.5],
        "c": np.float32("nan"),
        "d": np.int64(3),
        "e": True,
    }
    text = timing.write_result({**numbers, "f": (np.float32(0.5), "NaN")})
    values = json.loads(text, parse_constant=pytest.fail)
    del values["schema"], values["nonce"]
    assert values == {"a": None, "b": [None, 1.5], "c": None, "d": 3, "e": True, "f": [0.5, "NaN"]}


def test_buffers_start_at_any_256_bytes_of_a_page_and_are_apart(timing: ModuleType) -> None:
    chance = random.Random(1)
    buffers = [timing.shifted_buffer(10_000, chance) for _ in range(200)]
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in buffers]
    assert {address % 4096 for address in addresses} == set(range(0, 4096, 256))
    assert {len(buffer) for buffer in buffers} == {10_000}
    buffers[0][-1] = 7
    assert [buffer[-1] for buffer in buffers] == [7] + [0] * 199


def test_a_file_changed_within_the_second_is_loaded_as_it_is_now(timing: ModuleType, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("value = 1\n")
    first, stamp = timing.load(str(tmp_path), "kernel.py", 0), kernel.stat()
    kernel.write_text("value = 2\n")
    os.utime(kernel, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert (first.value, timing.load(str(tmp_path), "kernel.py", 1).value) == (1, 2)


def test_a_loaded_file_keeps_its_own_meaning_of_annotations(timing: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def run(n: int): return n\n")
    assert timing.load(str(tmp_path), "kernel.py", 0).run.__annotations__ == {"n": int}


def test_the_file_needs_python_38_and_the_standard_library_only() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 8))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


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
