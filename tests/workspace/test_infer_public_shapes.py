"""Inference on folders in the shape of the two public tasks that this kind of workspace comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.workspace.config import Files, Knob
from core.workspace.infer import infer
from tests.workspace.test_infer import CopyProbe, config_of, lay, opened

GPU_SHAPE = {
    "benchmark.py": """
import argparse, json, statistics
from pathlib import Path

from kernel import check_config, launch, read_config

TOLERANCE = 7.5e-3
TARGET_US = 90.0
SHAPES = {
    "dev": [{"name": "dev_a", "rows": 1024, "dim": 1024}, {"name": "dev_b", "rows": 768, "dim": 2048}],
    "final": [{"name": "final_a", "rows": 1536, "dim": 1024}, {"name": "final_b", "rows": 192, "dim": 8192}],
}


def timed(shape, repeats):
    return [launch(shape["rows"], shape["dim"]) + step for step in range(repeats)]


def one_case(shape, config, args):
    wrong = check_config(config, shape["dim"])
    if wrong:
        return {"name": shape["name"], "status": "failed", "errors": wrong, "best_us": float("inf")}
    launches = timed(shape, args.repeats)
    best = min(launches)
    return {
        **shape, "status": "passed", "max_abs": 0.001, "tolerance": TOLERANCE, "best_us": best,
        "median_us": statistics.median(launches), "gbps_effective": 8 * shape["rows"] / best,
    }


def suite(args):
    config = read_config()
    cases = [one_case(shape, config, args) for shape in SHAPES[args.mode]]
    total_us = sum(float(case["best_us"]) for case in cases)
    return {
        "status": "passed" if all(case["status"] == "passed" for case in cases) else "failed",
        "mode": args.mode, "objective": "minimise total best_us", "best_us": total_us, "score": total_us,
        "median_us": sum(case["median_us"] for case in cases if "median_us" in case),
        "target_best_us": TARGET_US, "config": config, "elapsed_seconds": 0.1, "cases": cases,
    }


def arguments(default_mode):
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=sorted(SHAPES), default=default_mode)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--trace", help="file for the whole result")
    return parser.parse_args()


if __name__ == "__main__":
    result = suite(arguments("dev"))
    print(json.dumps(result, indent=2, sort_keys=True))
    raise SystemExit(result["status"] != "passed")
""",
    "verifier.py": """
import json
from benchmark import arguments, suite

if __name__ == "__main__":
    result = suite(arguments("final"))
    print(json.dumps({**result, "verified": result["status"] == "passed"}))
""",
    "kernel.py": """
import json
from pathlib import Path

CONFIG = Path(__file__).resolve().parent / "kernel_config.json"
DEFAULTS = {"num_warps": 8, "num_stages": 3, "block_size": 0}


def read_config(path=CONFIG):
    return {**DEFAULTS, **json.loads(path.read_text())}


def check_config(config, dim):
    errors = []
    if int(config.get("num_warps", 0)) not in {1, 2, 4, 8, 16, 32}:
        errors.append("num_warps")
    stages = config.get("num_stages", 4)
    if not isinstance(stages, int) or not 1 <= stages <= 5:
        errors.append("num_stages")
    block_size = int(config.get("block_size", 0))
    if block_size:
        if block_size & (block_size - 1):
            errors.append("block_size is no power of two")
        if block_size < dim:
            errors.append("block_size is below dim")
    return errors


def launch(rows, dim):
    return rows * dim / 1e5
""",
    "kernel_config.json": '{"num_warps": 1, "num_stages": 4, "block_size": 0, "num_warps_1024": 4}',
    "remote_gpu.py": "import argparse\nargparse.ArgumentParser().add_argument('--json')\n",
    "task.md": "Make it fast.",
}


@pytest.mark.parametrize("run", [True, False])
def test_the_shape_of_the_public_gpu_task(run: bool, tmp_path: Path) -> None:
    lay(tmp_path, GPU_SHAPE)
    inference = infer(tmp_path, CopyProbe(tmp_path) if run else None)
    config = config_of(inference)
    assert (config.objective.metric, config.objective.direction, config.objective.unit) == (
        "best_us",
        "lower",
        "us",
    )
    assert (config.objective.aggregate, config.objective.statistic) == ("sum", "minimum")
    assert config.objective.target == 90.0
    assert config.files.mutable == ("kernel_config.json", "kernel.py")
    assert config.files.protected == ("benchmark.py", "verifier.py")
    assert (config.options.warmup, config.options.repeats) == ("--warmup", "--repeats")
    assert config.modes["dev"].verifier == ("python3", "verifier.py", "--json", "--mode", "dev")
    assert config.knobs == (
        Knob("num_warps", (1, 2, 4, 8, 16, 32)), Knob("num_stages", (1, 2, 3, 4, 5)),
        Knob("num_warps_1024", (1, 2, 4, 8, 16, 32)),
    )  # fmt: skip
    assert "block_size" in opened(inference, "no list of legal values")


PLAN_SHAPE = {
    "benchmark.py": """
import argparse, json
from pathlib import Path

PLAN = Path(__file__).resolve().parent / "kernel_plan.json"
VALID = {
    "block_n": [16, 32, 64], "block_k": [32, 64, 128], "warps": [2, 4], "order": ["serial", "persistent"],
}
CASES = {
    "dev": [{"name": "dev_small", "seq": 64}],
    "final": [{"name": "a", "seq": 64}, {"name": "b", "seq": 96}],
}


def check_plan(plan):
    errors = []
    for key, values in VALID.items():
        if key not in plan:
            errors.append(f"missing {key}")
        elif plan[key] not in values:
            errors.append(f"{key} is not one of {values}")
    if int(plan.get("block_k", 0)) > int(plan.get("block_n", 0)) * 2:
        errors.append("block_k is more than twice block_n")
    if plan.get("order") == "persistent" and int(plan.get("warps", 0)) < 4:
        errors.append("persistent needs 4 warps")
    return errors


def cycles(plan, case):
    error = 0.1
    if plan["warps"] == 4 and plan["order"] == "serial":
        error += 0.2
    best_cycles = case["seq"] * plan["block_n"]
    return {"name": case["name"], "status": "passed", "best_cycles": best_cycles, "max_abs": error}


def evaluate(plan, mode):
    errors = check_plan(plan)
    rows = [cycles(plan, case) for case in CASES[mode]]
    best_cycles = max(row["best_cycles"] for row in rows)
    return {
        "mode": mode, "status": "failed" if errors else "passed", "errors": errors, "target_cycles": 900,
        "best_cycles": best_cycles, "score": best_cycles, "plan": plan, "cases": [dict(row) for row in rows],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=sorted(CASES), default="dev")
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list-valid", action="store_true")
    args = parser.parse_args()
    if args.list_valid:
        print(json.dumps({"valid": VALID, "cases": CASES, "tolerance": 2.5e-4}, indent=2, sort_keys=True))
    else:
        print(json.dumps(evaluate(json.loads(args.plan.read_text()), args.mode), indent=2, sort_keys=True))
""",
    "verifier.py": """
import subprocess, sys

command = [sys.executable, "benchmark.py", "--json", "--mode", "final"]
sys.exit(subprocess.run(command).returncode)
""",
    "kernel_plan.json": '{"block_n": 16, "block_k": 32, "warps": 2, "order": "serial"}',
}


@pytest.mark.parametrize("run", [True, False])
def test_the_shape_of_the_public_plan_task(run: bool, tmp_path: Path) -> None:
    lay(tmp_path, PLAN_SHAPE)
    config = config_of(infer(tmp_path, CopyProbe(tmp_path) if run else None))
    assert (config.objective.metric, config.objective.aggregate) == ("best_cycles", "max")
    assert config.objective.target == 900
    assert config.files == Files(("kernel_plan.json",), ("benchmark.py", "verifier.py"))
    assert [knob.name for knob in config.knobs] == ["block_n", "block_k", "warps", "order"]
    assert config.constraints == ("block_k <= block_n * 2", "order != 'persistent' or warps >= 4")
    assert config.modes["final"].verifier[:2] == ("python3", "verifier.py")
    assert config.modes["dev"].verifier == ()
