#!/usr/bin/env python3
"""Batch evaluator of tensor-layout kernel plans: exact scores of many, and the best k of a whole product.

Needs numpy. Meant for a process of its own, which a caller starts once and talks to:

    python batch.py --serve
        reads one JSON request a line, answers one JSON object a line
        {"call": "scores", "mode": "dev", "plans": [{...}]}  ->  {"scores": [262005], "passed": [true]}
        {"call": "top", "mode": "dev", "domains": {...}, "k": 10, "include": ["final"]}  ->  the fields of Top
        {"call": "profiles"}  ->  {"iteration3_dev_core": {"block_m": [16, ...], ...}, ...}
        a request that cannot be answered  ->  {"error": "sentence"}
        `top` takes "profile": NAME in place of "domains".
    python batch.py --mode dev --profile iteration3_dev_core --top 10 --include final [--json]
        without --profile: the best of the full product

Functions: `columns` turns plans into arrays of domain indices, `scores` and `passed` judge those, and `top`
searches.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))  # python -I and -P leave the script's folder out

from tensor_plan_arrays import PlanError, columns
from tensor_plan_model import CASES
from tensor_plan_scores import passed, scores
from tensor_plan_search import Top, top
from tensor_plan_space import DOMAINS, Value

__all__ = ["PROFILES", "PlanError", "Top", "columns", "passed", "profile", "scores", "top"]

Json = dict[str, Any]
Domains = dict[str, list[Value]]

PROFILES: dict[str, Domains] = {
    "iteration3_dev_core": {
        "block_m": [16, 32, 48, 64, 96],
        "block_n": [16, 32, 48, 64, 96, 128],
        "block_k": [32, 64, 96, 128],
        "num_warps": [2, 4, 6, 8],
        "vector_width": [16],
        "q_layout": ["swizzled_mn"],
        "k_layout": ["swizzled_nk"],
        "v_layout": ["swizzled_kd"],
        "o_layout": ["streamed"],
        "accum": ["tree", "pairwise"],
        "softmax": ["online_renorm", "approx_poly"],
        "dma_stages": [1, 2, 3, 4],
        "prefetch_distance": [0, 1, 2, 3, 4],
        "dma_burst": [64, 128, 256],
        "split_k": [1, 2],
        "swizzle": ["tensorcore"],
        "schedule": ["persistent", "split_pipeline"],
        "epilogue": ["fused_scale", "fused_scale_mask"],
        "scratchpad_kb": [64, 96, 128],
    },
    "iteration3_layout_relaxed": {
        "block_m": [48, 64],
        "block_n": [64, 96],
        "block_k": [64, 96],
        "num_warps": [4, 6, 8],
        "vector_width": [16],
        "q_layout": ["swizzled_mn", "blocked_m"],
        "k_layout": ["swizzled_nk", "blocked_nk", "transposed"],
        "v_layout": ["swizzled_kd", "blocked_kd"],
        "o_layout": ["streamed", "blocked_m"],
        "accum": ["tree", "pairwise"],
        "softmax": ["online_renorm", "approx_poly"],
        "dma_stages": [3, 4],
        "prefetch_distance": [2, 3, 4],
        "dma_burst": [128, 256],
        "split_k": [1, 2],
        "swizzle": ["tensorcore", "cyclic"],
        "schedule": ["persistent", "split_pipeline"],
        "epilogue": ["fused_scale", "fused_scale_mask", "store_vector"],
        "scratchpad_kb": [64, 96, 128],
    },
}


def profile(name: str) -> Domains:
    """The choices of each knob in a bounded profile; raises PlanError for a name that is none."""
    if name not in PROFILES:
        raise PlanError(f"profile: {name!r} is not one of {', '.join(PROFILES)}")
    return PROFILES[name]


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.serve:
        serve()
        return 0
    try:
        domains = (
            profile(options.profile) if options.profile else {knob: [*DOMAINS[knob]] for knob in DOMAINS}
        )
        best = top(options.mode, domains, options.top, options.include)
    except PlanError as error:
        print(f"batch.py: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(best)) if options.json else _table(best))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Find the best plans of a product, or serve requests on stdin."
    )
    parser.add_argument(
        "--mode", choices=list(CASES), default="dev", help="suite that ranks (default: %(default)s)"
    )
    parser.add_argument(
        "--profile", choices=list(PROFILES), help="a bounded profile (default: the full product)"
    )
    parser.add_argument(
        "--top", type=int, default=10, metavar="K", help="how many plans (default: %(default)s)"
    )
    parser.add_argument(
        "--include", choices=list(CASES), action="append", default=[], help="score in this mode too"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--serve", action="store_true", help="answer JSON requests, one a line, until stdin ends"
    )
    return parser


def _table(best: Top) -> str:
    counts = f"{best.looked_at:,} bounded, {best.evaluated_exactly:,} scored exactly"
    lines = [f"{best.total_valid:,} valid plans, {counts}"]
    for number, plan in enumerate(best.plans):
        others = "".join(f"  {mode} {cycles[number]:,}" for mode, cycles in best.other_scores.items())
        lines.append(f"{number + 1:3}  {best.mode} {best.scores[number]:,}{others}  {json.dumps(plan)}")
    return "\n".join(lines)


def serve() -> None:
    """Answer requests on stdin until it ends."""
    for line in sys.stdin:
        if line.strip():
            print(json.dumps(answer(line)), flush=True)


def answer(line: str) -> Json:
    """The reply to one request line; never raises for what a request holds."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise PlanError("the request is not a JSON object")
        call = _field(request, "call", str)
        if call not in CALLS:
            raise PlanError(f"call: {call!r} is not one of {', '.join(CALLS)}")
        return CALLS[call](request)
    except (json.JSONDecodeError, RecursionError) as error:
        return {"error": f"the request is not valid JSON: {error}"}
    except PlanError as error:
        return {"error": str(error)}


def _answer_scores(request: Json) -> Json:
    mode, plans = _field(request, "mode", str), _field(request, "plans", list)
    if mode not in CASES:
        raise PlanError(f"mode: {mode!r} is not one of {', '.join(CASES)}")
    if not all(isinstance(plan, dict) for plan in plans):
        raise PlanError("plans: every one must be a JSON object of knobs")
    rows = columns(plans)
    return {"scores": scores(mode, rows).tolist(), "passed": passed(mode, rows).tolist()}


def _answer_top(request: Json) -> Json:
    domains = (
        profile(_field(request, "profile", str)) if "profile" in request else _field(request, "domains", dict)
    )
    if not all(isinstance(values, list) for values in domains.values()):
        raise PlanError("domains: every knob needs a list of values")
    include = _field(request, "include", list) if "include" in request else []
    return asdict(top(_field(request, "mode", str), domains, _field(request, "k", int), include))


def _field(request: Mapping[str, Any], name: str, kind: type) -> Any:
    if name not in request:
        raise PlanError(f"the request has no {name!r}")
    if type(request[name]) is not kind:
        raise PlanError(f"{name}: {json.dumps(request[name])[:80]} is not of JSON type {JSON_TYPES[kind]}")
    return request[name]


JSON_TYPES = {str: "string", int: "integer", list: "array", dict: "object"}
CALLS: dict[str, Callable[[Json], Json]] = {
    "scores": _answer_scores,
    "top": _answer_top,
    "profiles": lambda _: dict(PROFILES),
}


if __name__ == "__main__":
    sys.exit(main())
