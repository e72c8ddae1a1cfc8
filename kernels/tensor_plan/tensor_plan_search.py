"""The best k plans of a product of knob choices, proven without scoring every plan.

The product is walked as a tree: a node settles the first few knobs, and its bound (see Outlook) is never
above the jitter-free cycles of any plan below it. Best bounds go first; a node is dropped once k plans are
known that nothing below it can reach, jitter included. What is left at the end is scored exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from tensor_plan_arrays import (
    Columns,
    Floats,
    Indices,
    Outlook,
    PlanError,
    domain_indices,
    plans_of,
    row_count,
    take,
)
from tensor_plan_model import CASES, JITTER_SPAN
from tensor_plan_scores import passed, scores
from tensor_plan_space import DEFAULTS, DOMAINS, Plan, Value, count_raw, count_valid, in_domain
from tensor_plan_terms import Case

MOST_KEPT = 100_000
PIECE_ROWS = 1 << 13
FIRST_DIVE_ROWS = 64

# A plan's score lies within half a jitter span of its base cycles, but for truncation, which takes less than
# one cycle, and rounding, which is far less. So a plan further than this above the k-th lowest base scores
# worse than k others, and cannot even tie with one of them.
REACH = JITTER_SPAN + 2

# Knobs that decide most of the cost come first, so that bounds tell plans apart early.
BRANCHING_ORDER = (
    *("softmax", "schedule", "accum", "swizzle", "vector_width", "num_warps", "dma_stages"),
    *("block_n", "block_m", "block_k", "split_k", "prefetch_distance"),
    *("q_layout", "k_layout", "v_layout", "o_layout", "dma_burst", "epilogue", "scratchpad_kb"),
)


@dataclass(frozen=True, slots=True)
class Top:
    """The best plans of a product, best first; equal scores stand in the order of the product's listing.

    `scores` are best_cycles in `mode`; `other_scores` and `other_passed` judge the same plans in other modes.
    All of `total_valid` is covered: `looked_at` nodes were bounded, every other plan fell with one of them.
    """

    mode: str
    total_raw: int
    total_valid: int
    looked_at: int
    evaluated_exactly: int
    plans: tuple[Plan, ...]
    scores: tuple[int, ...]
    other_scores: Mapping[str, tuple[int, ...]]
    other_passed: Mapping[str, tuple[bool, ...]]


def top(mode: str, domains: Mapping[str, Sequence[Value]], k: int, include_modes: Sequence[str] = ()) -> Top:
    """The k plans of a product with the lowest best_cycles of those that pass in `mode`; all if fewer pass.

    `domains` gives the choices of each knob; one left out stays at its default. The product lists its plans
    with the last knob changing fastest. Raises PlanError for a mode, knob, value or k that is not allowed.
    """
    _check(mode, domains, k, include_modes)
    values = {knob: domains.get(knob, [DEFAULTS[knob]]) for knob in DOMAINS}
    choices = {knob: domain_indices(knob, values[knob]) for knob in DOMAINS}
    tree = _Tree(CASES[mode], choices, k)
    rows = tree.contenders()
    exact = scores(mode, rows)
    best = np.lexsort((_product_order(choices, rows), exact))[:k]
    kept = take(rows, best)
    return Top(
        mode=mode,
        total_raw=count_raw(values),
        total_valid=count_valid(values),
        looked_at=tree.looked_at,
        evaluated_exactly=len(exact),
        plans=tuple(plans_of(kept)),
        scores=tuple(exact[best].tolist()),
        other_scores={other: tuple(scores(other, kept).tolist()) for other in include_modes},
        other_passed={other: tuple(passed(other, kept).tolist()) for other in include_modes},
    )


def _check(mode: str, domains: Mapping[str, Sequence[Value]], k: int, include_modes: Sequence[str]) -> None:
    for name in (mode, *include_modes):
        if name not in tuple(CASES):
            raise PlanError(f"mode: {name!r} is not one of {', '.join(CASES)}")
    if not 1 <= k <= MOST_KEPT:
        raise PlanError(f"k: {k} is not between 1 and {MOST_KEPT}")
    for knob, values in domains.items():
        if knob not in DOMAINS:
            raise PlanError(f"domains: {knob!r} is not a knob; the knobs are {', '.join(DOMAINS)}")
        foreign = [value for value in values if not in_domain(knob, value)]
        if foreign:
            allowed = ", ".join(map(str, DOMAINS[knob]))
            raise PlanError(f"domains: {knob}: {foreign[0]!r} is not one of {allowed}")
        if not values or len(set(values)) < len(values):
            raise PlanError(f"domains: {knob}: needs at least one value, and each only once")


def _product_order(choices: Columns, rows: Columns) -> NDArray[np.int64]:
    """The place (n,) of each row in the product's listing."""
    order = np.zeros(row_count(rows), np.int64)
    for knob, allowed in choices.items():
        place = np.zeros(len(DOMAINS[knob]), np.int64)
        place[allowed] = np.arange(len(allowed))
        order = order * len(allowed) + place[rows[knob]]
    return order


class _Tree:
    """The walk. A node is a row of columns for the knobs settled so far, in the order of the columns."""

    def __init__(self, cases: Sequence[Case], choices: Columns, k: int) -> None:
        self.looked_at = 0
        self._cases, self._choices, self._k = cases, choices, k
        self._order = sorted(BRANCHING_ORDER, key=lambda knob: len(choices[knob]) > 1)
        self._outlooks = [
            Outlook({knob: choices[knob] for knob in self._order[n:]}) for n in range(len(DOMAINS) + 1)
        ]
        self._leaves: list[Columns] = [{knob: np.empty(0, np.uint8) for knob in DOMAINS}]
        self._leaf_bases: list[Floats] = [np.empty(0)]
        self._lowest_bases: Floats = np.empty(0)
        self._limit = math.inf

    def contenders(self) -> dict[str, Indices]:
        """Every passing plan whose exact score can be among the lowest k."""
        first = self._order[0]
        self._visit({first: self._choices[first]})
        near = np.flatnonzero(np.concatenate(self._leaf_bases) <= self._limit)
        return {knob: np.concatenate([leaves[knob] for leaves in self._leaves])[near] for knob in DOMAINS}

    def _visit(self, nodes: Columns) -> None:
        nodes, bounds = self._within_limit(nodes)
        if len(nodes) == len(DOMAINS):
            self._keep(nodes, bounds)
            return
        start = 0
        while start < (end := int(np.searchsorted(bounds, self._limit, side="right"))):
            stop = min(start + self._piece_rows(), end)
            self._visit(self._branches(take(nodes, slice(start, stop))))
            start = stop

    def _within_limit(self, nodes: Columns) -> tuple[Columns, Floats]:
        """The nodes that may lead to one of the lowest k, lowest bound first, and their bounds."""
        outlook = self._outlooks[len(nodes)]
        self.looked_at += row_count(nodes)
        # A score is never below 1, so bases below 0 are as good as 0: their plans may tie.
        bounds = reduce(
            np.maximum, (outlook.base_cycles(case, nodes) for case in self._cases), np.zeros(row_count(nodes))
        )
        may_pass = reduce(np.logical_and, (outlook.may_pass(case, nodes) for case in self._cases))
        near = np.flatnonzero(may_pass & (bounds <= self._limit))
        near = near[np.argsort(bounds[near], kind="stable")]
        return take(nodes, near), bounds[near]

    def _branches(self, nodes: Columns) -> dict[str, Indices]:
        knob = self._order[len(nodes)]
        choices = self._choices[knob]
        settled = {settled: np.repeat(column, len(choices)) for settled, column in nodes.items()}
        return settled | {knob: np.tile(choices, row_count(nodes))}

    def _piece_rows(self) -> int:
        """A narrow piece finds k plans, and so the first limit, soonest."""
        return PIECE_ROWS if self._limit < math.inf else max(FIRST_DIVE_ROWS, self._k)

    def _keep(self, plans: Columns, bases: Floats) -> None:
        self._leaves.append(plans)
        self._leaf_bases.append(bases)
        self._lowest_bases = np.sort(np.concatenate([self._lowest_bases, bases]))[: self._k]
        if len(self._lowest_bases) == self._k:
            self._limit = float(self._lowest_bases[-1]) + REACH
