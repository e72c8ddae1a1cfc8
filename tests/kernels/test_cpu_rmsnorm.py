"""The cpu_rmsnorm workspace: a real compiler, real processes, and kernels that must not pass."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

KERNELS = Path(__file__).parents[2] / "kernels"
START = json.loads((KERNELS / "cpu_rmsnorm" / "kernel_config.json").read_text())
FAST = {**START, "tile": 256, "unroll": 4, "threads": 2, "exp_form": "poly", "flags": "Ofast_native"}
QUICK = ("--warmup", "1", "--repeats", "1")


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    """These tests are about compiled kernels: without a compiler they fail, they are not left out."""
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.fail("no cc, gcc or clang on PATH: apt-get install gcc libc6-dev")


def lay_out(folder: Path, config: object = None, source: str | None = None) -> Path:
    """The workspace as the template lays it out, with another config or kernel.c if given."""
    shutil.copytree(KERNELS / "cpu_rmsnorm", folder, ignore=shutil.ignore_patterns("__pycache__", ".build"))
    shutil.copy(KERNELS / "kerneldeck_timing.py", folder)
    if config is not None:
        (folder / "kernel_config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    if source is not None:
        (folder / "kernel.c").write_text(source)
    return folder


def run(
    script: str, folder: Path, *options: str, arms: list[Path] | None = None, **environment: str
) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON result and stderr of one script."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("KERNELDECK_", "CC"))}
    env["KERNELDECK_WARM_S"] = "0"
    if arms is not None:
        env["KERNELDECK_ARMS"] = json.dumps([str(arm) for arm in arms])
    done = subprocess.run(
        [sys.executable, script, "--json", *options],
        cwd=folder,
        env={**env, **environment},
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout, parse_constant=pytest.fail), done.stderr


def names_of(result: dict[str, Any]) -> list[str]:
    """The cases of a result."""
    return [case["name"] for case in result["cases"]]


def settings() -> dict[str, Any]:
    """The workspace's toml."""
    return tomllib.loads((KERNELS / "cpu_rmsnorm" / "kerneldeck.toml").read_text())


def valid_points() -> list[dict[str, Any]]:
    """Every config of the toml's space that its constraints allow."""
    knobs, constraints = settings()["knobs"], settings()["constraints"]
    points = [dict(zip(knobs, values, strict=True)) for values in itertools.product(*knobs.values())]
    return [point for point in points if all(eval(text, {}, point) for text in constraints)]


def test_the_space_has_528_points_and_the_start_config_is_one() -> None:
    assert len(valid_points()) == 528
    assert START in valid_points()
    assert FAST in valid_points()


def test_the_toml_and_the_benchmark_allow_the_same_configs(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w")
    listing = """
import json, sys, toolchain
def refused(point):
    try:
        toolchain.config_of(point)
    except toolchain.InvalidConfig:
        return True
print(json.dumps([point for point in json.load(sys.stdin) if not refused(point)]))
"""
    knobs = settings()["knobs"]
    points = [dict(zip(knobs, values, strict=True)) for values in itertools.product(*knobs.values())]
    done = subprocess.run(
        [sys.executable, "-c", listing], cwd=folder, input=json.dumps(points), capture_output=True, text=True
    )
    assert json.loads(done.stdout) == valid_points()


def test_every_file_that_the_toml_names_is_laid_out(tmp_path: Path) -> None:
    files = settings()["files"]
    folder = lay_out(tmp_path / "w")
    assert all((folder / name).is_file() for name in [*files["mutable"], *files["protected"]])
    scripts = {path.name for path in folder.glob("*.py")}
    assert scripts == {name for name in files["protected"] if name.endswith(".py")}


def test_the_start_config_passes_dev_with_every_field(tmp_path: Path) -> None:
    code, result, _ = run("benchmark.py", lay_out(tmp_path / "w"), "--mode", "dev", "--repeats", "6")
    assert (code, result["status"], result["mode"], result["errors"]) == (0, "passed", "dev", [])
    assert names_of(result) == ["dev_r1024_d1024", "dev_r768_d2048", "dev_r384_d4096"]
    assert result["config"] == START
    assert result["target_best_us"] is None
    assert all(result[name] for name in ("device", "compiler", "elapsed_seconds", "dtype"))
    assert result["score"] == result["best_us"]
    for summed in ("best_us", "median_us"):
        assert result[summed] == pytest.approx(sum(case[summed] for case in result["cases"]), abs=0.01)
    for case in result["cases"]:
        assert (case["status"], case["numel"]) == ("passed", case["rows"] * case["dim"])
        assert 0 < case["max_abs"] <= case["tolerance"] == 5e-5
        assert case["best_us"] == min(map(min, case["samples"]["launch_us"]["blocks"]))
        assert case["gbps_effective"] == pytest.approx(12e-3 * case["numel"] / case["best_us"], rel=0.02)


def test_the_start_config_passes_the_final_verification(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    folder = lay_out(tmp_path / "w")
    code, result, _ = run("verifier.py", folder, "--trace", str(trace), "--repeats", "2")
    assert (code, result["status"], result["mode"], result["verified"]) == (0, "passed", "final", True)
    assert names_of(result) == [
        *("final_r1536_d1024", "final_r896_d2048", "final_r448_d4096", "final_r192_d8192")
    ]
    assert len(result["checks"]) == 17
    assert not any(check["fault"] for check in result["checks"])
    assert any("OpenMP keeps its pool" in sentence for sentence in result["not_checked"])
    visits = [json.loads(line) for line in trace.read_text().splitlines()]
    assert len(visits) == 4 * 2
    assert {(visit["slot"], len(visit["launch_us"])) for visit in visits} == {(0, 1)}


def test_forms_and_flags_that_should_pass_do_and_the_fraction_is_too_inaccurate(tmp_path: Path) -> None:
    configs = [
        {**START, "exp_form": form, "flags": flags}
        for form, flags in zip(
            ["expf", "exp2f", "poly", "rational"], ["Ofast_native", "O3", "O3_native", "O3"], strict=True
        )
    ]
    configs.append({**FAST, "rows_per_chunk": 8})
    arms = [lay_out(tmp_path / str(slot), config) for slot, config in enumerate(configs)]
    code, result, _ = run("verifier.py", arms[0], *QUICK, "--mode", "dev", arms=arms)
    assert [arm["status"] for arm in result["arms"]] == ["passed", "passed", "passed", "incorrect", "passed"]
    assert (code, result["status"], result["verified"]) == (1, "incorrect", False)
    fraction = result["arms"][3]
    assert all(5e-5 < case["max_abs"] < 1e-3 for case in fraction["cases"])
    assert fraction["best_us"] is None
    assert "dev_r1024_d1024: largest error" in fraction["errors"][0]


BAD_CONFIGS = {
    "threads: 3 is not one of 1, 2, 4, 8": {**START, "threads": 3},
    "threads: True is not one of": {**START, "threads": True},
    "exp_form: 'tanh' is not one of expf, exp2f, poly, rational": {**START, "exp_form": "tanh"},
    "unroll is missing: give it one of 1, 2, 4, 8": {k: v for k, v in START.items() if k != "unroll"},
    "num_warps is no knob": {**START, "num_warps": 4},
    "tile 64 is below 16 * unroll": {**START, "unroll": 8},
    "rows_per_chunk 8 means nothing to one thread": {**START, "rows_per_chunk": 8},
    "kernel_config.json is no JSON: ": "{",
    "kernel_config.json is no JSON object": "[]",
}


def test_an_illegal_config_is_invalid_with_a_sentence(tmp_path: Path) -> None:
    arms = [lay_out(tmp_path / str(slot), config) for slot, config in enumerate(BAD_CONFIGS.values())]
    code, result, _ = run("benchmark.py", arms[0], *QUICK, arms=arms)
    assert (code, result["status"], result["best_us"]) == (1, "invalid", None)
    for sentence, arm in zip(BAD_CONFIGS, result["arms"], strict=True):
        assert arm["status"] == "invalid"
        assert len(arm["errors"]) == 1
        assert sentence in arm["errors"][0]


def test_a_kernel_that_does_not_build_is_a_compile_error_and_the_others_are_timed(tmp_path: Path) -> None:
    sources = [
        "void rmsnorm_silu(long rows) { rows = ; }\n",
        "void other(void) {}\n",
        "void absent(void);\nvoid rmsnorm_silu(long rows) { absent(); }\n",
        None,
    ]
    arms = [lay_out(tmp_path / str(slot), source=source) for slot, source in enumerate(sources)]
    code, result, _ = run("benchmark.py", arms[0], *QUICK, arms=arms)
    assert (code, result["status"]) == (1, "compile_error")
    assert [arm["status"] for arm in result["arms"]] == ["compile_error"] * 3 + ["passed"]
    syntax, name, symbol, _ = ["\n".join(arm["errors"]) for arm in result["arms"]]
    assert syntax.startswith("kernel.c does not compile with ")
    assert "kernel.c:1:" in syntax
    assert str(tmp_path) not in syntax
    assert "kernel.c has no function rmsnorm_silu" in name
    assert "cannot be loaded" in symbol
    assert "absent" in symbol
    assert result["arms"][3]["best_us"] > 0


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"PATH": "/does/not/exist"},
            "there is no cc, gcc or clang on PATH: install one (apt-get install gcc",
        ),
        ({"CC": "no-such-cc -m32"}, "CC names 'no-such-cc', which is not on PATH"),
        ({"CC": "false"}, "fails even on a known source"),
    ],
)
def test_a_machine_that_cannot_compile_is_named_as_the_cause(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    target = tmp_path / "result.json"
    code, result, stderr = run(
        "verifier.py", lay_out(tmp_path / "w"), KERNELDECK_RESULT=str(target), **environment
    )
    assert (code, result["status"], result["stage"], result["verified"]) == (3, "infra", "spawn", False)
    assert said in result["errors"][0]
    assert stderr.strip() == result["errors"][0]
    assert json.loads(target.read_text()) == result


KERNEL = (KERNELS / "cpu_rmsnorm" / "kernel.c").read_text()
LAST_LINE = "        gate_row(dim, scale, x + r * dim, gate + r * dim, weight, y + r * dim);\n"
BODY_END = LAST_LINE + "    }\n"
TOP = "void rmsnorm_silu("

RECALL = """#endif
    static const float *seen;
    static float first, kept[9999];
    if (rows * dim < 9999 && x == seen && x[0] == first) return (void)memcpy(y, kept, 4 * rows * dim);
    for (long r"""
REMEMBER = "    if (rows * dim < 9999) { seen = x; first = x[0]; memcpy(kept, y, 4 * rows * dim); }\n"

KNOWN_BAD = {
    "zeros": (LAST_LINE, "        for (long c = 0; c < dim; c++) y[r * dim + c] = 0.0f * scale;\n"),
    "writes past the end": (BODY_END, BODY_END + "    y[rows * dim] = 1.0f;\n"),
    "writes before the start": (BODY_END, BODY_END + "    y[-1] = 1.0f;\n"),
    "skips the last column of odd rows": ("start < dim; start", "start < dim - (dim & 1); start"),
    "ignores the weight": ("* weight[start + c]", ""),
    "changes its input": (BODY_END, BODY_END + "    ((float *)x)[0] += 1e-6f;\n"),
    "one row only": ("r < rows;", "r < (rows == 1 ? 1 : rows - (rows & 1));"),
    "remembers by address": (
        "#endif\n    for (long r",
        RECALL,
    ),
    "reads beyond its input": ("(float)dim + eps", "(float)dim + eps + 0.0f * x[rows * dim]"),
    "gives up on large gates": (
        "const float exponent =",
        "if (g < -100.0f) return NAN;\n    const float exponent =",
    ),
}
FAULTS = {
    "zeros": "largest error",
    "writes past the end": "it wrote outside y",
    "writes before the start": "it wrote outside y",
    "skips the last column of odd rows": "is nan, expected",
    "ignores the weight": "largest error",
    "changes its input": "it changed its inputs",
    "one row only": "is nan, expected",
    "remembers by address": "y did not follow one changed element of",
    "reads beyond its input": "is nan, expected",
    "gives up on large gates": "unusual values, 48 x 257",
}


def bad_kernel(name: str) -> str:
    """kernel.c with one fault put in."""
    old, new = KNOWN_BAD[name]
    assert old in KERNEL
    source = KERNEL.replace(old, new)
    return source.replace(BODY_END, BODY_END + REMEMBER) if name == "remembers by address" else source


def test_the_verifier_catches_every_known_bad_kernel_and_says_how(tmp_path: Path) -> None:
    arms = [lay_out(tmp_path / str(slot), source=bad_kernel(name)) for slot, name in enumerate(KNOWN_BAD)]
    code, result, _ = run("verifier.py", arms[0], *QUICK, "--mode", "dev", arms=arms)
    assert (code, result["verified"]) == (1, False)
    for name, arm in zip(KNOWN_BAD, result["arms"], strict=True):
        assert arm["status"] == "incorrect", name
        assert any(FAULTS[name] in sentence for sentence in arm["errors"]), (name, arm["errors"])


def test_three_arms_are_timed_in_turn_and_a_folder_may_stand_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fast = {**FAST, "threads": 1}
    best, candidate = lay_out(tmp_path / "best"), lay_out(tmp_path / "candidate", fast)
    visits = tmp_path / "visits"
    rounds = [{"order": order, "cases_seed": 1, "launches": 2} for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0])]
    visits.write_text("".join(json.dumps(each) + "\n" for each in rounds))
    code, result, _ = run(
        "benchmark.py", best, "--mode", "final", arms=[best, candidate, best], KERNELDECK_VISITS=str(visits)
    )
    assert (code, result["status"]) == (0, "passed")
    assert [arm["config"] for arm in result["arms"]] == [START, fast, START]
    assert [entry["order"] for entry in result["timing"]["plan"]] == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    for arm in result["arms"]:
        for case in arm["cases"]:
            assert [len(block) for block in case["samples"]["launch_us"]["blocks"]] == [2, 2, 2]
    first_us, fast_us, second_us = (arm["best_us"] for arm in result["arms"])
    assert fast_us < min(first_us, second_us)
    with capsys.disabled():
        print(
            f"\n  start {first_us:.0f} µs, fast {fast_us:.0f} µs, A/A {second_us / first_us - 1:+.2%},"
            f" {result['elapsed_seconds']} s for three arms",
            end="",
        )


def test_a_folder_that_cannot_keep_a_library_builds_elsewhere(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w")
    (folder / ".build").write_text("in the way")
    code, result, _ = run("benchmark.py", folder, *QUICK, TMPDIR=str(tmp_path))
    assert (code, result["status"]) == (0, "passed")
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_a_second_run_in_the_folder_builds_nothing(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w")
    runs = [run("benchmark.py", folder, *QUICK)[0] for _ in range(2)]
    assert runs == [0, 0]
    libraries = list((folder / ".build").glob("*.so"))
    assert len(libraries) == 1
    assert sorted(path.name for path in (folder / ".build").iterdir()) == [".gitignore", libraries[0].name]


def test_a_candidate_built_with_fast_maths_leaves_the_process_its_denormals(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w", FAST)
    loading = """
import numpy as np, toolchain
from pathlib import Path
folder = Path(".")
toolchain.load(toolchain.build(folder, toolchain.read_config(folder), toolchain.find_compiler()))
print((np.full(64, 1e-30, np.float32) * np.float32(1e-10)).max() > 0)
"""
    done = subprocess.run([sys.executable, "-c", loading], cwd=folder, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


def test_wrong_arguments_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w")
    for options in (["--mode", "quick"], ["--repeats", "0"], ["--warmup", "-1"]):
        done = subprocess.run(
            [sys.executable, "benchmark.py", *options], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert options[1] in done.stderr
    assert not (folder / ".build").exists()


def test_without_the_timing_file_beside_it_the_benchmark_says_how_to_get_it(tmp_path: Path) -> None:
    folder = lay_out(tmp_path / "w")
    (folder / "kerneldeck_timing.py").unlink()
    done = subprocess.run([sys.executable, "benchmark.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1
    assert "`kerneldeck init --template cpu_rmsnorm DIR`" in done.stderr
