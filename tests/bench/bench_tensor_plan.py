"""Speed and memory of the tensor_plan models: `python tests/bench/bench_tensor_plan.py` prints a table.

Every row is a process of its own, started from nothing, whose peak memory the system reports at its end.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[2] / "kernels" / "tensor_plan"
ROUNDS = 3

SCALAR = """
import json, time
import numpy, tensor_plan_model, tensor_plan_arrays
generator = numpy.random.default_rng(1)
rows = {{k: generator.integers(len(v), size={plans}) for k, v in tensor_plan_arrays.DOMAINS.items()}}
plans = tensor_plan_arrays.plans_of(rows)
start = time.perf_counter()
for plan in plans:
    tensor_plan_model.best_cycles("{mode}", plan)
print(json.dumps({{"seconds": time.perf_counter() - start}}))
"""
BATCH = """
import json, time
import numpy, batch
generator = numpy.random.default_rng(1)
rows = {{k: generator.integers(len(v), size={plans}) for k, v in batch.DOMAINS.items()}}
batch.scores("{mode}", {{k: column[:100] for k, column in rows.items()}})
start = time.perf_counter()
batch.scores("{mode}", rows)
print(json.dumps({{"seconds": time.perf_counter() - start}}))
"""
TOP = """
import json, time
start = time.perf_counter()
import batch
products = [{products}]
covered = sum(batch.top("{mode}", product, {k}, ["final"]).total_valid for product in products)
print(json.dumps({{"seconds": time.perf_counter() - start, "covered": covered}}))
"""
PROFILES = "*map(batch.profile, batch.PROFILES)"
EVERYTHING = "{knob: list(values) for knob, values in batch.DOMAINS.items()}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One run: `plans` is how many it scored or covered, `wall_s` counts the start of python too."""

    name: str
    plans: int
    seconds: float
    wall_s: float
    peak_mib: float

    def row(self) -> str:
        rate = f"{self.plans / self.seconds:>17,.0f} {self.wall_s:>8.2f} {self.peak_mib:>9.0f}"
        return f"{self.name:44} {self.plans:>15,} {self.seconds:>9.3f} {rate}"


def measure(name: str, script: str, plans: int) -> Figure:
    runs = [_run(name, script, plans) for _ in range(ROUNDS)]
    return min(runs, key=lambda run: run.seconds)


def _run(name: str, script: str, plans: int) -> Figure:
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", script], cwd=WORKSPACE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    measured = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - start
    return Figure(name, measured.get("covered", plans), measured["seconds"], wall_s, _peak_mib(usage))


def _peak_mib(usage: resource.struct_rusage) -> float:
    """Linux counts in KiB, macOS in bytes."""
    return usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_cpu_model()}, {cores} cores, python {platform.python_version()}, numpy {version('numpy')}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown cpu")


def rows() -> list[tuple[str, str, int]]:
    """Name, script and number of plans of each row; a number of 0 is one that the script reports itself."""
    scores = [
        (f"{name}, {mode}", script.format(mode=mode, plans=plans), plans)
        for mode in ("dev", "final")
        for name, script, plans in (("scalar", SCALAR, 3_000), ("batch scores", BATCH, 200_000))
    ]
    tops = [
        (f"top {k:,} of {name}, {mode}", TOP.format(mode=mode, products=products, k=k), 0)
        for mode in ("dev", "final")
        for name, products in (("both profiles", PROFILES), ("the full product", EVERYTHING))
        for k in (10, 10_000)
    ]
    return scores + tops


def main() -> None:
    print(machine())
    print(f"fastest of {ROUNDS}; wall s includes the start of python and the import of numpy;")
    print("top covers all its valid plans, most of them by bounds, and scores few\n")
    print(f"{'':44} {'plans':>15} {'s':>9} {'plans/s':>17} {'wall s':>8} {'peak MiB':>9}")
    for name, script, plans in rows():
        print(measure(name, script, plans).row(), flush=True)


if __name__ == "__main__":
    main()
