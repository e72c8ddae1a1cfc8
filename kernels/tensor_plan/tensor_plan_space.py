"""The space of tensor-layout kernel plans: 19 knobs, the rules between them, and what is wrong with a plan.

The task and its figures come from HarnessGym (Apache-2.0); this is a fresh implementation.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import cast

Value = int | str
Plan = dict[str, Value]

DOMAINS: dict[str, tuple[Value, ...]] = {
    "block_m": (16, 32, 48, 64, 96),
    "block_n": (16, 32, 48, 64, 96, 128),
    "block_k": (32, 64, 96, 128),
    "num_warps": (2, 4, 6, 8),
    "vector_width": (4, 8, 16),
    "q_layout": ("row_major", "blocked_m", "swizzled_mn"),
    "k_layout": ("row_major", "blocked_nk", "swizzled_nk", "transposed"),
    "v_layout": ("row_major", "blocked_kd", "swizzled_kd"),
    "o_layout": ("row_major", "blocked_m", "streamed"),
    "accum": ("scalar", "pairwise", "tree"),
    "softmax": ("exact", "online", "online_renorm", "approx_poly"),
    "dma_stages": (1, 2, 3, 4),
    "prefetch_distance": (0, 1, 2, 3, 4),
    "dma_burst": (32, 64, 128, 256),
    "split_k": (1, 2, 4),
    "swizzle": ("none", "xor", "cyclic", "tensorcore"),
    "schedule": ("serial", "overlap_k", "persistent", "split_pipeline"),
    "epilogue": ("store_plain", "store_vector", "fused_scale", "fused_scale_mask"),
    "scratchpad_kb": (32, 48, 64, 96, 128),
}
DEFAULTS: dict[str, Value] = {knob: values[0] for knob, values in DOMAINS.items()}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule between knobs: `expression` for tools, `holds` for this model, `remedy` for people."""

    expression: str
    knobs: tuple[str, ...]
    holds: Callable[..., bool]
    remedy: str

    def of(self, plan: Plan) -> bool:
        return self.holds(*[plan[knob] for knob in self.knobs])


CONSTRAINTS = (
    Constraint(
        "block_k <= 2 * block_n",
        ("block_n", "block_k"),
        lambda block_n, block_k: block_k <= 2 * block_n,
        "block_k {block_k} is more than twice block_n {block_n}; lower block_k or raise block_n",
    ),
    Constraint(
        "schedule != 'persistent' or num_warps >= 4",
        ("num_warps", "schedule"),
        lambda num_warps, schedule: schedule != "persistent" or num_warps >= 4,
        "schedule persistent needs num_warps 4 or more, not {num_warps}; raise it or change the schedule",
    ),
    Constraint(
        "split_k != 4 or accum != 'scalar'",
        ("accum", "split_k"),
        lambda accum, split_k: split_k != 4 or accum != "scalar",
        "split_k 4 cannot be summed by accum scalar; use pairwise or tree, or lower split_k",
    ),
)


def complete(given: Mapping[str, object]) -> tuple[Plan, list[str]]:
    """The plan with all 19 knobs, and a sentence for everything that makes it invalid.

    A missing knob takes its default, which is no error. A value outside its domain is one; the default stands
    in for it, so that an invalid plan has cycles to look at too.
    """
    plan = {knob: given.get(knob, DEFAULTS[knob]) for knob in DOMAINS}
    foreign = {knob for knob, value in plan.items() if not in_domain(knob, value)}
    filled = DEFAULTS | {knob: cast("Value", plan[knob]) for knob in DOMAINS if knob not in foreign}
    unknown = [_unknown_knob(knob) for knob in given if knob not in DOMAINS]
    outside = [_outside_domain(knob, plan[knob]) for knob in DOMAINS if knob in foreign]
    return filled, [*unknown, *outside, *broken_rules(filled, ignoring=foreign)]


def broken_rules(plan: Plan, ignoring: Collection[str] = ()) -> list[str]:
    """A sentence for every constraint that a plan of in-domain values breaks, save those on ignored knobs."""
    rules = [rule for rule in CONSTRAINTS if not set(rule.knobs) & set(ignoring)]
    return [rule.remedy.format_map(plan) for rule in rules if not rule.of(plan)]


def in_domain(knob: str, value: object) -> bool:
    """Type included: 1.0 and true equal 1, but their JSON text, which the jitter hashes, differs."""
    return any(value == allowed and type(value) is type(allowed) for allowed in DOMAINS[knob])


def _unknown_knob(knob: str) -> str:
    close = get_close_matches(knob, DOMAINS, n=1)
    advice = f"did you mean {close[0]}?" if close else "remove it"
    return f"{reprlib.repr(knob)} is not a knob of this plan; {advice}"


def _outside_domain(knob: str, value: object) -> str:
    allowed = ", ".join(map(str, DOMAINS[knob]))
    return f"{knob}: {reprlib.repr(value)} is not one of {allowed}"


def count_raw(choices: Mapping[str, Sequence[Value]] = DOMAINS) -> int:
    """Plans in the product of the choices of all 19 knobs."""
    return math.prod(len(values) for values in choices.values())


def count_valid(choices: Mapping[str, Sequence[Value]] = DOMAINS) -> int:
    """Plans of the product that keep every constraint, counted over the knobs that constraints read."""
    knobs = sorted({knob for rule in CONSTRAINTS for knob in rule.knobs})
    combinations = product(*([(knob, value) for value in choices[knob]] for knob in knobs))
    valid = sum(all(rule.of(dict(pairs)) for rule in CONSTRAINTS) for pairs in combinations)
    return valid * math.prod(len(values) for knob, values in choices.items() if knob not in knobs)
