"""Best, best again and candidate side by side in one process, really timed, by the timing file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.deck import Deck
from tests.guard.noisy import loops

# A benchmark that writes the result file, as one that uses the timing file does.
SAYING = """import json, os
def say(result):
    result = {"schema": 1, "nonce": os.environ["KERNELDECK_NONCE"], **result}
    open(os.environ["KERNELDECK_RESULT"], "w").write(json.dumps(result))
"""


@pytest.fixture
def timed(tmp_path: Path) -> Deck:
    deck = loops(tmp_path / "loops")
    deck.run("verify")
    return deck


def test_a_kernel_of_twice_the_work_is_restored(timed: Deck) -> None:
    best = timed.read("kernel.py")
    timed.write("kernel.py", "def run(n):\n    sum(range(n))\n    return sum(range(n))\n")
    answer = timed.json("verify", code=1)
    assert answer["outcome"] == "restored" and answer["gate"]["verdict"] == "slower"
    assert answer["gate"]["interval"][0] < -0.5, "about twice the time"
    assert timed.read("kernel.py") == best


def test_a_kernel_of_a_tenth_of_the_work_is_kept(timed: Deck) -> None:
    timed.write("kernel.py", "def run(n):\n    return n * (n - 1) // 2\n")
    answer = timed.json("verify")
    assert answer["outcome"] == "kept" and answer["gate"]["at_least"] > 0.3
    assert "process" in answer["gate"]["text"] and "rounds of 3" not in answer["gate"]["text"]


def test_a_kernel_that_fails_only_beside_the_others_is_restored(timed: Deck) -> None:
    """Wrong where two arms are loaded: the fault is the candidate's, and the best stands."""
    best = timed.read("kernel.py")
    timed.write(
        "kernel.py",
        "import sys\n"
        "beside = sum(name.startswith('kerneldeck_arm') for name in sys.modules) > 1\n"
        "def run(n):\n    return 0 if beside else sum(range(n))\n",
    )
    answer = timed.json("verify", code=None)
    if answer["outcome"] == "restored":
        assert "while it was measured: incorrect" in answer["reason"]
        assert timed.read("kernel.py") == best
    else:  # it was always loaded first, and so was never wrong
        assert answer["outcome"] in ("not_better", "unclear", "kept")


def test_a_kernel_that_does_not_compile_is_restored(timed: Deck) -> None:
    timed.write("kernel.py", "def run(n:\n")
    answer = timed.json("verify", code=1)
    assert answer["outcome"] == "restored" and answer["final"]["status"] == "compile_error"
    assert "was never closed" in answer["reason"]


def test_a_benchmark_that_ignores_the_arms_is_told_so(tmp_path: Path) -> None:
    deck = loops(tmp_path / "loops")
    deck.write("benchmark.py", SAYING + 'say({"status": "passed", "best_us": 5, "cases": []})\n')
    deck.run("verify")
    deck.write("kernel.py", "def run(n):\n    return n\n")
    answer = deck.json("verify", code=5)
    assert answer["outcome"] == "pending"
    assert "did not report the three arms it was given" in answer["reason"]


@pytest.mark.parametrize(
    "arms",
    [
        '[{"status": "passed", "best_us": 5, "cases": 5}] * 3',
        '[{"best_us": 5, "cases": []}] * 3',
        '[{"best_us": 5, "cases": [{"name": "a", "samples": {"k": {"blocks": [["x"]]}}}]}] * 3',
        '[{"best_us": 5, "cases": [{"name": "a", "samples": []}]}] * 3',
        "[1, 2, 3]",
    ],
)
def test_arms_in_another_form_are_no_verdict_and_no_crash(tmp_path: Path, arms: str) -> None:
    deck = loops(tmp_path / "loops")
    deck.write(
        "benchmark.py",
        SAYING + 'result = {"status": "passed", "best_us": 5, "timing": "soon"}\n'
        f'if "KERNELDECK_ARMS" in os.environ:\n    result["arms"] = {arms}\n'
        "say(result)\n",
    )
    deck.run("verify")
    deck.write("kernel.py", "def run(n):\n    return n\n")
    answer = deck.json("verify", code=5)
    assert answer["outcome"] == "pending" and answer["gate"]["verdict"] is None
    assert deck.read("kernel.py") == "def run(n):\n    return n\n"


def test_what_a_kernel_prints_is_no_result_where_the_benchmark_writes_a_file(timed: Deck) -> None:
    best = timed.read("kernel.py")
    timed.write(
        "kernel.py", 'import os\nprint(\'{"status": "passed", "best_us": 1}\', flush=True)\nos._exit(0)\n'
    )
    answer = timed.json("verify", code=1)
    assert answer["outcome"] == "restored" and "no_result" in answer["reason"]
    assert timed.read("kernel.py") == best
