"""Benchmark of cpu_rmsnorm: builds the candidate with the system's compiler, checks it, then times it.

    python3 benchmark.py --json --mode dev|final [--warmup N] [--repeats N] [--trace FILE]

The objective best_us is the sum over the mode's cases of the fastest launch, in µs of wall time; lower is
better. Every case is checked before anything is timed and again on what the timed launches wrote. Data is
fp32; caches are warm with the arm's own buffers. Several folders in KERNELDECK_ARMS are several candidates,
each with a library and buffers of its own (84 MB in final mode), timed in turn.
Exit codes: 0 passed, 1 not passed, 2 wrong arguments, 3 this machine cannot run it (no compiler).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import cases
import toolchain

try:
    import kerneldeck_timing as timing
except ModuleNotFoundError:
    sys.exit("kerneldeck_timing.py is not here: `kerneldeck init --template cpu_rmsnorm DIR` lays it out")
from arms import Candidate, prepare, problems_of

if TYPE_CHECKING:
    from arms import Inspect, Problem

    Json = dict[str, object]

WARMUP, REPEATS, WARM_S = 2, 24, 0.2
EXIT_CODES = {"passed": 0, "infra": 3}


def run(
    mode: str, warmup: int, repeats: int, inspect: Inspect | None = None
) -> tuple[Json, timing.Measurement | None]:
    """The result of all arms, and the measurement of those that passed (None: of none).

    `inspect` looks at each kernel before it is timed; what it finds makes the candidate incorrect.
    Raises NoCompiler and TimingError.
    """
    began_s = time.perf_counter()
    arms, compiler = timing.arms(), toolchain.find_compiler()
    problems = problems_of(mode)
    candidates = [prepare(arm, compiler, problems, inspect) for arm in arms]
    plan = timing.plan(arms, repeats, warmup, WARM_S)
    times = _timed([each for each in candidates if each.status == "passed"], problems, plan)
    result = timing.result_of([_report(each, problems, times) for each in candidates], mode, times)
    result.update(
        target_best_us=None,
        dtype="float32",
        device=_cpu_model(),
        compiler=compiler.version,
        elapsed_seconds=round(time.perf_counter() - began_s, 3),
    )
    return result, times


def _timed(
    candidates: list[Candidate], problems: list[Problem], plan: timing.Plan
) -> timing.Measurement | None:
    if not candidates:
        return None
    benches = {each.arm.slot: each.benches for each in candidates}
    arms, names = [each.arm for each in candidates], [problem.case.name for problem in problems]
    times = timing.measure(arms, names, lambda arm, name: benches[arm.slot][name].call, plan)
    for candidate in candidates:
        candidate.judge()
    return times


def _report(candidate: Candidate, problems: list[Problem], times: timing.Measurement | None) -> Json:
    entries = [_case_entry(candidate, problem.case, times) for problem in problems]
    best_us = _sum(entries, "best_us")
    report: Json = {
        "slot": candidate.arm.slot,
        "status": candidate.status,
        "best_us": best_us,
        "score": best_us,
        "median_us": _sum(entries, "median_us"),
        "config": candidate.config and candidate.config._asdict(),
        "cases": entries,
        "errors": candidate.errors,
    }
    if candidate.checks:
        report["checks"] = [check._asdict() for check in candidate.checks]
    return report


def _case_entry(candidate: Candidate, case: cases.Case, times: timing.Measurement | None) -> Json:
    error = candidate.max_abs.get(case.name)
    judged = "passed" if error is not None and error <= cases.TOLERANCE else "incorrect"
    entry: Json = {
        "name": case.name,
        "status": candidate.status if error is None else judged,
        "rows": case.rows,
        "dim": case.dim,
        "numel": case.rows * case.dim,
        "max_abs": error,
        "tolerance": cases.TOLERANCE,
        "best_us": None,
        "median_us": None,
        "gbps_effective": None,
    }
    if times is not None and candidate.status == "passed":
        entry.update(times.case_fields(candidate.arm.slot, case.name))
        if isinstance(entry["best_us"], float):
            entry["gbps_effective"] = round(case.moved_bytes / entry["best_us"] / 1e3, 2)
    return entry


def _sum(entries: list[Json], key: str) -> float | None:
    numbers = [number for entry in entries if isinstance(number := entry[key], float)]
    return round(sum(numbers), 3) if len(numbers) == len(entries) else None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def options(description: str, mode: str) -> argparse.Namespace:
    """The command line: --json --mode --warmup --repeats --trace."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print the result as one line of JSON")
    parser.add_argument("--mode", choices=sorted(cases.CASES), default=mode)
    parser.add_argument(
        "--warmup", type=_count, default=WARMUP, help="least warm-up launches per arm and case"
    )
    parser.add_argument("--repeats", type=_count, default=REPEATS, help="timed launches per arm and case")
    parser.add_argument("--trace", type=Path, help="file that gets every visit as a line of JSON")
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 up")
    return int(text)


def carry_out(asked: argparse.Namespace, inspect: Inspect | None = None) -> Json:
    """`run` with every way to fail turned into a result; writes the trace."""
    try:
        result, times = run(asked.mode, asked.warmup, asked.repeats, inspect)
    except (toolchain.NoCompiler, timing.TimingError) as error:
        print(error, file=sys.stderr)
        return {"status": "infra", "stage": "spawn", "mode": asked.mode, "errors": [str(error)]}
    except MemoryError:
        return {"status": "oom", "mode": asked.mode, "errors": ["the cases do not fit into memory"]}
    if asked.trace and times is not None:
        _write_trace(asked.trace, times)
    return result


def _write_trace(path: Path, times: timing.Measurement) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for (slot, name), blocks in times.blocks.items():
            for index, block in enumerate(blocks):
                visit = {"slot": slot, "case": name, "round": index, "launch_us": block}
                lines.write(json.dumps(visit) + "\n")


def hand_over(result: Json, as_json: bool) -> int:
    """Writes the result where the caller wants it, prints it, and returns the exit code."""
    text = timing.write_result(result)
    print(text if as_json else _table(json.loads(text)))
    return EXIT_CODES.get(str(result["status"]), 1)


def _table(result: Json) -> str:
    lines = [f"{result['mode']}: {result['status']}, best_us {result.get('best_us')}"]
    entries, errors = result.get("cases"), result.get("errors")
    row = "  {name:18} {status:13} best {best_us} µs, median {median_us} µs, largest error {max_abs}"
    lines += [row.format(**entry) for entry in entries] if isinstance(entries, list) else []
    return "\n".join([*lines, *map(str, errors if isinstance(errors, list) else [])])


def main() -> int:
    """One run by the command line."""
    asked = options("Times the fused RMSNorm and SiLU gate in C.", "dev")
    return hand_over(carry_out(asked), asked.json)


if __name__ == "__main__":
    sys.exit(main())
