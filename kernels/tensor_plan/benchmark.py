#!/usr/bin/env python3
"""Benchmark of a tensor-layout kernel plan: cycles of each case of a mode, the slowest of which is the score.

Exit status: 0 when the plan passed, 1 when it did not, 2 when the plan file cannot be used.
When the environment names a result file in KERNELDECK_RESULT, the JSON result is written there too, with the
value of KERNELDECK_NONCE.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tensor_plan_model import CASES, Json, suite_report
from tensor_plan_space import CONSTRAINTS, DEFAULTS, DOMAINS, count_raw, count_valid

PLAN_FILE = Path(__file__).resolve().with_name("kernel_plan.json")
LARGEST_PLAN_BYTES = 1 << 20


class UnusableError(Exception):
    """The command cannot be carried out; the message says what is wrong, where, and what to do."""


def main(argv: Sequence[str] | None = None, *, verifies: bool = False) -> int:
    """Run the suite on a plan; returns the exit status. A verifier adds `verified` and defaults to final."""
    options = _parser("final" if verifies else "dev").parse_args(argv)
    if options.list_valid:
        print(json.dumps(space_listing(), indent=2))
        return 0
    report = _scored(options.mode, options.plan, verifies)
    try:
        _write_copies(report, options.trace)
    except UnusableError as error:
        report = _unusable_report(options.mode, str(error), verifies)
    if report["score"] is None:
        print(f"{Path(sys.argv[0]).name}: {report['errors'][0]}", file=sys.stderr)
    print(json.dumps(report, indent=2) if options.json else _table(report))
    return 2 if report["score"] is None else int(report["status"] != "passed")


def _parser(default_mode: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Score a tensor-layout kernel plan on the deterministic cost model."
    )
    parser.add_argument(
        "--mode", choices=list(CASES), default=default_mode, help="suite of cases (default: %(default)s)"
    )
    parser.add_argument(
        "--plan", type=Path, default=PLAN_FILE, help="plan file (default: the one beside this file)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="also write the JSON result to FILE")
    parser.add_argument(
        "--list-valid", action="store_true", help="print knobs, constraints and counts as JSON"
    )
    return parser


def space_listing() -> Json:
    """Knob domains, their defaults and constraints, and how many plans that makes."""
    return {
        "knobs": {knob: list(values) for knob, values in DOMAINS.items()},
        "defaults": DEFAULTS,
        "constraints": [rule.expression for rule in CONSTRAINTS],
        "counts": {"raw": count_raw(), "valid": count_valid()},
    }


def read_plan(path: Path) -> Json:
    """The knobs in a plan file, values unchecked; a fixture or a result counts as the plan that it holds."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_PLAN_BYTES + 1)
    except OSError as error:
        raise UnusableError(f"cannot read plan {path}: {error.strerror}; name another with --plan") from error
    if len(content) > LARGEST_PLAN_BYTES:
        raise UnusableError(
            f"plan {path} is larger than {LARGEST_PLAN_BYTES} bytes; it should hold one JSON object"
        )
    try:
        plan = json.loads(content.decode(), object_pairs_hook=_object_without_repeats)
    except (ValueError, RecursionError) as error:
        raise UnusableError(f"plan {path} is not valid JSON: {error}; correct the file") from error
    if not isinstance(plan, dict):
        raise UnusableError(f"plan {path} holds {type(plan).__name__} instead of a JSON object of knobs")
    inner = plan.get("plan")
    return inner if isinstance(inner, dict) and not DOMAINS.keys() & plan else plan


def _object_without_repeats(pairs: list[tuple[str, object]]) -> Json:
    keys = [key for key, _ in pairs]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise ValueError(f"{repeated[0]!r} stands more than once")
    return dict(pairs)


def _scored(mode: str, plan_path: Path, verifies: bool) -> Json:
    try:
        report = suite_report(mode, read_plan(plan_path))
    except UnusableError as error:
        return _unusable_report(mode, str(error), verifies)
    return report | ({"verified": report["status"] == "passed"} if verifies else {})


def _unusable_report(mode: str, error: str, verifies: bool) -> Json:
    verdict = {"verified": False} if verifies else {}
    unscored = {"best_cycles": None, "score": None, "errors": [error], "cases": []}
    return {"status": "failed", "mode": mode, **unscored, **verdict}


def _table(report: Json) -> str:
    """The result for people: a line a case, then the score and what is wrong."""
    lines = [
        f"{case['name']:24} {case['status']} {case['best_cycles']:>12,} cycles  max_abs {case['max_abs']:.2e}"
        for case in report["cases"]
    ]
    score = "no score" if report["score"] is None else f"{report['score']:,} cycles"
    verified = f", verified {report['verified']}".lower() if "verified" in report else ""
    errors = [] if report["score"] is None else report["errors"]
    return "\n".join([*lines, f"{report['mode']}: {report['status']}, {score}{verified}", *errors])


def _write_copies(report: Json, trace: Path | None) -> None:
    """Write the trace where one is asked for, and the trial's result where the environment names a file."""
    if trace is not None:
        _write(trace, json.dumps(report, indent=2) + "\n")
    result = os.environ.get("KERNELDECK_RESULT")
    if result:
        trial = {"schema": 1, "nonce": os.environ.get("KERNELDECK_NONCE")} | report
        _write(Path(result), json.dumps(trial))


def _write(path: Path, text: str) -> None:
    """Put the text at the path in one step, so that no reader sees half of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UnusableError(
            f"cannot write {path}: {error.strerror}; name a file in a writable folder"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
