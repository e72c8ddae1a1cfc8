"""Cycles of a tensor-layout kernel plan: the suite of cases of a mode, each with its components.

Deterministic and without a GPU. The task and its figures come from HarnessGym (Apache-2.0); this is a fresh
implementation. The knobs are in tensor_plan_space, the parts of the cost in tensor_plan_terms.

Folds run from left to right and never use `sum`, which rounds floats differently from Python 3.12 on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any

from tensor_plan_space import Plan, complete
from tensor_plan_terms import (
    BANK_CONFLICTS,
    DMA_PENALTIES,
    FACTORS,
    PRESSURE,
    SYNERGIES,
    Case,
    Term,
    descriptor_count,
    max_abs,
    memory_cycles,
    scratchpad_cycles,
    scratchpad_need_kb,
)

Json = dict[str, Any]

TOLERANCE = 2.5e-4
OVER_TOLERANCE_CYCLES = 900_000
TARGET_BEST_CYCLES = 135_000
JITTER_SPAN = 5200.0

CASES: dict[str, tuple[Case, ...]] = {
    "dev": (
        Case("dev_256x96_causal", 256, 96, 8, 0.58, 730123),
        Case("dev_192x64_dense", 192, 64, 12, 1.0, 12648430),
    ),
    "final": (
        Case("final_128x64_dense", 128, 64, 12, 1.0, 659918),
        Case("final_256x96_causal", 256, 96, 8, 0.58, 730123),
        Case("final_320x80_sliding", 320, 80, 10, 0.42, 1027296),
        Case("final_384x128_dense", 384, 128, 6, 1.0, 533737),
        Case("final_224x96_sparse", 224, 96, 16, 0.36, 917339),
    ),
}


def throughput(case: Case, plan: Plan) -> float:
    return reduce(mul, (factor.of(case, plan) for factor in FACTORS))


def register_pressure(case: Case, plan: Plan) -> float:
    return reduce(add, (part.of(case, plan) for part in PRESSURE))


def compute_cycles(case: Case, plan: Plan) -> float:
    return case.operations / max(0.1, throughput(case, plan)) / 17.5 + 48_000


def spill_cycles(case: Case, plan: Plan) -> float:
    excess = max(0.0, register_pressure(case, plan) - case.pressure_limit)
    return excess * excess * case.spill_weight


def correctness_cycles(case: Case, plan: Plan) -> int:
    return OVER_TOLERANCE_CYCLES if max_abs.of(case, plan) > TOLERANCE else 0


def jitter_cycles(case: Case, plan: Plan) -> float:
    """Between -2600 and 2600, by the first four bytes of a SHA-256 over the plan and the case's seed."""
    text = json.dumps({"plan": dict(plan), "seed": case.seed}, sort_keys=True)
    first = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    return (first / 0xFFFFFFFF - 0.5) * JITTER_SPAN


def components(case: Case, plan: Plan) -> dict[str, float]:
    """The parts of a case's cycles, by name; synergies are what is saved."""
    return {
        "compute": compute_cycles(case, plan),
        "memory": memory_cycles.of(case, plan),
        "spill": spill_cycles(case, plan),
        "scratchpad": scratchpad_cycles.of(case, plan),
        "bank": sum(int(conflict.of(case, plan)) for conflict in BANK_CONFLICTS),
        "dma": sum(int(penalty.of(case, plan)) for penalty in DMA_PENALTIES),
        "synergies": sum(int(synergy.of(case, plan)) for synergy in SYNERGIES),
        "correctness": correctness_cycles(case, plan),
        "jitter": jitter_cycles(case, plan),
    }


def total_cycles(parts: Mapping[str, float]) -> int:
    bound = max(parts["compute"], parts["memory"])
    costs = bound + parts["spill"] + parts["scratchpad"] + parts["bank"] + parts["dma"]
    return max(1, int(costs - parts["synergies"] + parts["correctness"] + parts["jitter"]))


def case_cycles(case: Case, plan: Plan) -> int:
    return total_cycles(components(case, plan))


def best_cycles(mode: str, plan: Plan) -> int:
    """The score of a complete plan: the cycles of the mode's slowest case."""
    return max(case_cycles(case, plan) for case in CASES[mode])


def case_report(case: Case, plan: Plan, plan_is_valid: bool) -> Json:
    """The JSON object of one case."""
    parts = components(case, plan)
    error = max_abs.of(case, plan)
    return {
        "name": case.name,
        "status": "passed" if plan_is_valid and error <= TOLERANCE else "failed",
        **_cycle_fields(total_cycles(parts)),
        "max_abs": _rounded_error(error),
        "tolerance": TOLERANCE,
        "register_pressure": round(register_pressure(case, plan), 4),
        "pressure_limit": case.pressure_limit,
        "scratchpad_need_kb": round(scratchpad_need_kb.of(case, plan), 4),
        "descriptor_count": descriptor_count.of(case, plan),
        "components": {name: round(cycles, 3) for name, cycles in parts.items()},
        "bank_conflicts": _named(BANK_CONFLICTS, case, plan),
        "dma_penalties": _named(DMA_PENALTIES, case, plan),
        "synergies": _named(SYNERGIES, case, plan),
    }


def suite_report(mode: str, given: Mapping[str, object]) -> Json:
    """The JSON result of a plan as a file gives it: every case of the mode, and the score of the slowest."""
    plan, errors = complete(given)
    cases = [case_report(case, plan, not errors) for case in CASES[mode]]
    errors = [*errors, *(_over_tolerance(case) for case in cases if case["max_abs"] > TOLERANCE)]
    score = max(case["best_cycles"] for case in cases)
    return {
        "status": "failed" if errors else "passed",
        "mode": mode,
        **_cycle_fields(score),
        "score": score,
        "target_best_cycles": TARGET_BEST_CYCLES,
        "max_abs": max(case["max_abs"] for case in cases),
        "tolerance": TOLERANCE,
        "plan": plan,
        "errors": errors,
        "cases": cases,
    }


def _cycle_fields(best: int) -> Json:
    return {"best_cycles": best, "median_cycles": int(1.018 * best), "p90_cycles": int(1.045 * best)}


def _rounded_error(error: float) -> float:
    """All error terms are multiples of 1e-6, so this drops only what float addition left behind."""
    return round(error, 9)


def _over_tolerance(case: Json) -> str:
    return (
        f"{case['name']}: max_abs {case['max_abs']:.3g} is above the tolerance {TOLERANCE:g}; "
        "use a softmax, accum or split_k with less error"
    )


def _named(terms: Sequence[Term], case: Case, plan: Plan) -> list[Json]:
    """Those terms that cost or save anything."""
    cycles = ((term.name, int(term.of(case, plan))) for term in terms)
    return [{"name": name, "cycles": count} for name, count in cycles if count]
