"""The timing file by itself: what an engine's rounds become, buffers, loading."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import random
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.conftest import SOURCE
from tests.kernels.scripted import ScriptedEngine, measured


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
