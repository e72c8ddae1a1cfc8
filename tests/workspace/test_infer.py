"""Inference on folders of the kinds that people have, with their programs really run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from core.space import Space
from core.workspace.config import Knob, WorkspaceConfig
from core.workspace.infer import Inference, ProbeOutput, infer, write_new
from core.workspace.templates import shipped
from core.workspace.toml_reader import parse_toml, read_workspace
from core.workspace.toml_writer import to_toml


@dataclass
class CopyProbe:
    """Runs commands in a fresh copy of a folder, as the callers of `infer` do."""

    root: Path
    commands: list[tuple[str, ...]] = field(default_factory=list)

    def __call__(self, command: tuple[str, ...], timeout_s: float) -> ProbeOutput:
        self.commands.append(command)
        with tempfile.TemporaryDirectory() as copy:
            shutil.copytree(self.root, copy, dirs_exist_ok=True)
            try:
                done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=timeout_s)
            except OSError as error:
                return ProbeOutput("", None, str(error))
        return ProbeOutput(done.stdout, done.returncode, done.stderr.strip()[-200:])


def lay(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    return root


def config_of(inference: Inference) -> WorkspaceConfig:
    """The inferred configuration, which must survive being written and read."""
    assert inference.config is not None, inference.open_points
    assert parse_toml(to_toml(inference.config)) == inference.config
    return inference.config


def found(inference: Inference, topic: str) -> str:
    return next((finding.value for finding in inference.findings if finding.topic == topic), "")


def opened(inference: Inference, word: str) -> str:
    return next((sentence for sentence in inference.open_points if word in sentence), "")


TOTAL_MS = {
    "benchmark.py": """
import argparse, json, time
import kernel
from reference import expected

CASES = {"dev": [("small", 1000)], "final": [("small", 1000), ("large", 3000)]}
CHOICES = {"chunk": [16, 64, 256], "unroll": (1, 2, 4)}

def load():
    with open("kernel_config.json") as file:
        config = json.load(file)
    for key, allowed in CHOICES.items():
        if config[key] not in allowed:
            raise SystemExit(f"{key} must be one of {allowed}")
    if config["unroll"] > 2 and config["chunk"] < 64:
        raise ValueError("unroll 4 needs chunk 64 or more")
    return config

def measure(size, config):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        value = kernel.run(size, config["chunk"])
        times.append((time.perf_counter() - start) * 1e3)
    return min(times), value == expected(size)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=sorted(CASES), default="dev")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--warmup", type=int, default=1)
    args = parser.parse_args()
    cases = []
    for name, size in CASES[args.mode]:
        best_ms, ok = measure(size, load())
        cases.append({"name": name, "status": "passed" if ok else "failed", "total_ms": best_ms})
    total = sum(case["total_ms"] for case in cases)
    ok = all(case["status"] == "passed" for case in cases)
    status = "passed" if ok else "failed"
    print(json.dumps({"status": status, "mode": args.mode, "total_ms": total, "cases": cases}))

if __name__ == "__main__":
    main()
""",
    "verifier.py": "import benchmark\n\nif __name__ == '__main__':\n    benchmark.main()\n",
    "kernel.py": """
import layout

def run(size, chunk):
    return sum(sum(range(a, b)) for a, b in layout.pieces(size, chunk))
""",
    "layout.py": """
def pieces(size, chunk):
    return [(a, min(a + chunk, size)) for a in range(0, size, chunk)]
""",
    "reference.py": "def expected(size):\n    return size * (size - 1) // 2\n",
    "kernel_config.json": '{"chunk": 64, "unroll": 1, "vectorised": false, "note": "hand-written"}',
    "README.md": "Run benchmark.py.",
}


def test_a_folder_written_by_hand_with_total_ms(tmp_path: Path) -> None:
    probe = CopyProbe(lay(tmp_path / "sums", TOTAL_MS))
    inference = infer(tmp_path / "sums", probe)
    config = config_of(inference)
    assert config.name == "sums"
    assert (config.objective.metric, config.objective.direction, config.objective.unit) == (
        "total_ms",
        "lower",
        "ms",
    )
    assert (config.objective.aggregate, config.objective.decide) == ("sum", "final")
    assert not config.objective.deterministic
    assert config.files.mutable == ("kernel_config.json", "kernel.py", "layout.py")
    assert config.files.protected == ("benchmark.py", "verifier.py", "reference.py")
    assert config.modes["dev"].benchmark == ("python3", "benchmark.py", "--json", "--mode", "dev")
    assert config.modes["final"].verifier == ("python3", "verifier.py", "--json", "--mode", "final")
    assert config.options.warmup == "--warmup" and config.options.repeats == ""
    assert config.knobs == (
        Knob("chunk", (16, 64, 256)), Knob("unroll", (1, 2, 4)), Knob("vectorised", (True, False))
    )  # fmt: skip
    assert config.constraints == ("unroll <= 2 or chunk >= 64",)
    assert "note" in opened(inference, "no list of legal values")
    assert probe.commands == [("python3", "benchmark.py", "--json", "--mode", "dev")]


def test_the_same_folder_without_running_it(tmp_path: Path) -> None:
    config = config_of(infer(lay(tmp_path / "sums", TOTAL_MS), None))
    assert config == config_of(infer(tmp_path / "sums", CopyProbe(tmp_path / "sums")))


def test_inference_changes_nothing_in_the_folder(tmp_path: Path) -> None:
    lay(tmp_path, TOTAL_MS)
    infer(tmp_path, CopyProbe(tmp_path))
    assert {path.name for path in tmp_path.rglob("*")} == set(TOTAL_MS)


TFLOPS = {
    "bench_gemm.py": """
import ctypes, json, subprocess, sys, time

SOURCE = "gemm.c"

def build(plan):
    flags = ["-O3", f"-DTILE={plan['launch']['tile']}", f"-DTHREADS={plan['launch']['threads']}"]
    subprocess.run(["cc", *flags, "-shared", "-o", "gemm.so", SOURCE], check=True)

def check(plan):
    launch = plan["launch"]
    assert launch["tile"] in (8, 16, 32), "tile"
    threads = launch.get("threads", 1)
    if threads < 1 or threads > 4:
        raise ValueError("threads")
    if plan["order"] == "ikj":
        pass
    elif plan["order"] == "ijk":
        pass
    else:
        raise ValueError("order")

def main():
    plan = json.load(open("plan.json"))
    check(plan)
    seconds = 0.5 / plan["launch"]["tile"]
    rates = [{"name": n, "tflops": 2 * n**3 / seconds / 1e12} for n in (512, 1024)]
    result = {"status": "passed", "tflops": sum(r["tflops"] for r in rates) / len(rates), "cases": rates}
    print("compiled and timed")
    print(json.dumps(result) if "--json" in sys.argv else result)

if __name__ == "__main__":
    main()
""",
    "check.py": """
import json, sys
if __name__ == "__main__":
    print(json.dumps({"status": "passed", "verified": True, "tflops": 1.0}))
""",
    "gemm.c": '#include "tile.h"\nvoid gemm(void) {}\n',
    "tile.h": "#define UNROLL 4\n",
    "plan.json": '{"launch": {"tile": 16, "threads": 2}, "order": "ikj"}',
}


def test_a_folder_with_other_names_where_higher_is_better(tmp_path: Path) -> None:
    inference = infer(lay(tmp_path / "gemm", TFLOPS), CopyProbe(tmp_path / "gemm"))
    config = config_of(inference)
    assert (config.objective.metric, config.objective.direction, config.objective.unit) == (
        "tflops",
        "higher",
        "tflops",
    )
    assert config.objective.aggregate == "mean"
    assert config.files.mutable == ("plan.json", "gemm.c", "tile.h")
    assert config.files.protected == ("bench_gemm.py", "check.py")
    assert config.modes["final"].benchmark == ("python3", "bench_gemm.py", "--json")
    assert config.modes["final"].verifier == ("python3", "check.py")
    assert config.knobs == (
        Knob("launch.tile", (8, 16, 32)), Knob("launch.threads", (1, 2, 3, 4)), Knob("order", ("ikj", "ijk"))
    )  # fmt: skip
    assert config.constraints == ()


SHELL = {
    "run_bench.sh": """#!/bin/sh
set -e
mode=dev
while [ $# -gt 0 ]; do
    case "$1" in
        --mode) mode="$2"; shift 2 ;;
        --json) shift ;;
        --list-valid) cat spaces.txt; exit 0 ;;
        *) echo "unknown $1" >&2; exit 2 ;;
    esac
done
[ -f stencil.c ]
case "$mode" in dev) cycles=900 ;; final) cycles=4100 ;; esac
echo "stencil, $mode"
echo "{\\"status\\": \\"passed\\", \\"mode\\": \\"$mode\\", \\"best_cycles\\": $cycles}"
""",
    "spaces.txt": "block_x: 16, 32, 64\nblock_y   = 1 2 4\nfast_math: true false\n",
    "stencil.c": "void stencil(void) {}\n",
    "stencil_plan.json": '{"block_x": 32, "block_y": 2, "fast_math": true, "depth": 3}',
}


def test_a_shell_script_as_benchmark(tmp_path: Path) -> None:
    probe = CopyProbe(lay(tmp_path / "stencil", SHELL))
    inference = infer(tmp_path / "stencil", probe)
    config = config_of(inference)
    assert config.modes["dev"].benchmark == ("./run_bench.sh", "--json", "--mode", "dev")
    assert list(config.modes) == ["dev", "final"]
    assert (config.objective.metric, config.objective.direction) == ("best_cycles", "lower")
    assert config.files.mutable == ("stencil_plan.json", "stencil.c")
    assert config.files.protected == ("run_bench.sh", "spaces.txt")
    assert config.knobs == (
        Knob("block_x", (16, 32, 64)), Knob("block_y", (1, 2, 4)), Knob("fast_math", (True, False))
    )  # fmt: skip
    assert "depth" in opened(inference, "no list of legal values")
    assert opened(inference, "No verifier")
    assert probe.commands[0] == ("./run_bench.sh", "--list-valid")


def test_a_shell_script_that_may_not_be_executed_is_given_to_bash(tmp_path: Path) -> None:
    lay(tmp_path, SHELL)
    (tmp_path / "run_bench.sh").chmod(0o644)
    config = config_of(infer(tmp_path, CopyProbe(tmp_path)))
    assert config.modes["final"].benchmark == ("bash", "run_bench.sh", "--json", "--mode", "final")


@pytest.mark.parametrize("run", [True, False])
def test_the_shipped_tensor_plan_without_its_toml(run: bool, tmp_path: Path) -> None:
    shutil.copytree(
        shipped() / "tensor_plan", tmp_path / "plan", ignore=shutil.ignore_patterns("*.toml", "*.pyc")
    )
    inference = infer(tmp_path / "plan", CopyProbe(tmp_path / "plan") if run else None)
    config, ours = config_of(inference), read_workspace(shipped() / "tensor_plan").config
    assert len(config.knobs) == 19 and config.knobs == ours.knobs
    assert len(config.constraints) == 3 and set(config.constraints) == set(ours.constraints)
    assert Space.of(config).raw_count() == 143_327_232_000
    assert config.objective == ours.objective
    assert config.files == ours.files
    assert [(mode.name, mode.benchmark, mode.verifier) for mode in config.modes.values()] == [
        (mode.name, mode.benchmark, mode.verifier) for mode in ours.modes.values()
    ]


def test_the_shipped_cpu_kernel_without_its_toml(tmp_path: Path) -> None:
    shutil.copytree(
        shipped() / "cpu_rmsnorm", tmp_path / "cpu", ignore=shutil.ignore_patterns("*.toml", "*.pyc")
    )
    shutil.copy(shipped() / "kerneldeck_timing.py", tmp_path / "cpu")
    config, ours = config_of(infer(tmp_path / "cpu", None)), read_workspace(shipped() / "cpu_rmsnorm").config
    assert set(config.files.mutable) == set(ours.files.mutable)
    assert set(config.files.protected) == set(ours.files.protected)
    assert [knob.name for knob in config.knobs] == [knob.name for knob in ours.knobs]
    assert (config.objective.metric, config.objective.statistic) == ("best_us", "minimum")
    assert config.options == ours.options
    assert config.extras.timing == "kerneldeck_timing.py"


def test_what_was_inferred_is_written_and_read_back(tmp_path: Path) -> None:
    config = config_of(infer(lay(tmp_path, TOTAL_MS), None))
    assert write_new(tmp_path, config) == tmp_path / "kerneldeck.toml"
    assert read_workspace(tmp_path).config == config


def _place(text: str) -> str:
    line = TOTAL_MS["benchmark.py"].partition(text)[0].count("\n") + 1
    return f"benchmark.py:{line}"


def test_every_finding_says_where_it_was_seen(tmp_path: Path) -> None:
    inference = infer(lay(tmp_path, TOTAL_MS), CopyProbe(tmp_path))
    places = {finding.topic: finding.source for finding in inference.findings}
    assert places["modes"] == _place('parser.add_argument("--mode"')
    assert places["knob chunk"] == _place("CHOICES =")
    assert places["constraint"] == _place('if config["unroll"] > 2')
    assert places["metric"] == "dev run"
    assert all(finding.source for finding in inference.findings)
    assert (inference.file_count, found(inference, "files")) == (7, "7, 0.0 MB")
