"""Workspaces whose scores have a noise that is known to the last digit, and one that is really timed."""

from __future__ import annotations

import math
import random
import shutil
from pathlib import Path

from tests.cli.deck import REPO, TOML, Deck

# One noise factor a run, taken from a list: what a candidate does cannot move it.
NOISY_BENCHMARK = """#!/bin/sh
. ./kernel.sh
n=$(wc -l < "{folder}/count")
echo >> "{folder}/count"
factor=$(sed -n "$((n % {most} + 1))p" "{folder}/noise")
awk -v base="$base" -v factor="$factor" -v unlucky="${{unlucky:-1}}" \\
  'BEGIN {{ printf "{{\\"status\\": \\"passed\\", \\"{metric}\\": %.6f}}\\n", base * factor * unlucky }}'
"""
MOST = 400
ARMS_BENCHMARK = """import sys
import kerneldeck_timing as timing

SIZES = {"small": 2_000, "large": 4_000}

def report_of(arm):
    report = {"slot": arm.slot, "status": "passed"}
    try:
        kernels[arm.slot] = timing.load(arm.folder, "kernel.py", arm.slot)
    except SyntaxError as error:
        return {**report, "status": "compile_error", "errors": [str(error)]}
    right = kernels[arm.slot].run(10) == 45
    return report if right else {**report, "status": "incorrect"}

def call_of(arm, case):
    return lambda: kernels[arm.slot].run(SIZES[case])

kernels = {}
arms = timing.arms()
reports = [report_of(arm) for arm in arms]
good = [arm for arm in arms if reports[arm.slot]["status"] == "passed"]
times = timing.measure(good, list(SIZES), call_of, timing.plan(arms, warm_s=0.01)) if good else None
for arm in good:
    cases = [{"name": name, "status": "passed", **times.case_fields(arm.slot, name)} for name in SIZES]
    reports[arm.slot].update(cases=cases, best_us=sum(case["best_us"] for case in cases))
result = timing.result_of(reports, sys.argv[1], times)
print(timing.write_result(result))
sys.exit(result["status"] != "passed")
"""
ARMS_TOML = """schema = 1
name = "loops"

[objective]
metric = "best_us"
unit = "us"
aggregate = "sum"

[files]
mutable = ["kernel.py"]
protected = ["benchmark.py", "kerneldeck_timing.py"]

[modes.final]
benchmark = ["python3", "benchmark.py", "final"]
timeout_s = 60

[extras]
timing = "kerneldeck_timing.py"
samples = true
"""


def noisy(root: Path, sigma: float, seed: int, metric: str = "total_ms", direction: str = "lower") -> Deck:
    """A workspace whose kernel says `base=100`; a run's score is base · exp(N(0, sigma²))."""
    deck = Deck(root)
    text = TOML.replace("deterministic = true", f'direction = "{direction}"').replace("total_ms", metric)
    deck.write("kerneldeck.toml", text.replace('unit = "ms"\n', "").replace('"verifier.sh"', '"benchmark.sh"')
               .replace('protected = ["benchmark.sh", "benchmark.sh"]', 'protected = ["benchmark.sh"]')
               .replace('verifier = ["./verifier.sh", "final"]\n', ""))  # fmt: skip
    chance = random.Random(seed)
    factors = [math.exp(chance.gauss(0.0, sigma)) for _ in range(MOST)]
    (root.parent / "noise").write_text("\n".join(f"{factor:.9f}" for factor in factors) + "\n")
    (root.parent / "count").write_text("")
    deck.write("benchmark.sh", NOISY_BENCHMARK.format(folder=root.parent, most=MOST, metric=metric))
    deck.kernel("base=100")
    return deck


def loops(root: Path) -> Deck:
    """A workspace that is timed for real, best and candidate side by side in one process."""
    deck = Deck(root)
    deck.write("kerneldeck.toml", ARMS_TOML)
    deck.write("benchmark.py", ARMS_BENCHMARK)
    shutil.copy(REPO / "kernels" / "kerneldeck_timing.py", root)
    deck.write("kernel.py", "def run(n):\n    return sum(range(n))\n")
    return deck
