"""The cost model over many plans at once: each term as a table, gathered by arrays of domain indices.

Plans are rows of `Columns`: for each knob an array (n,) of indices into its domain. Every table is filled by
the scalar term itself and the tables are combined in the scalar model's order, so that every float64 here is
the scalar model's number to the last bit (IEEE addition, multiplication and division round alike in both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import product
from typing import cast

import numpy as np
from numpy.typing import NDArray
from tensor_plan_model import OVER_TOLERANCE_CYCLES, TOLERANCE
from tensor_plan_space import CONSTRAINTS, DEFAULTS, DOMAINS, Plan, Value, complete, in_domain
from tensor_plan_terms import (
    BANK_CONFLICTS,
    DMA_PENALTIES,
    FACTORS,
    PRESSURE,
    SYNERGIES,
    Case,
    Term,
    max_abs,
    memory_cycles,
    scratchpad_cycles,
)

Indices = NDArray[np.uint8]
Columns = Mapping[str, Indices]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class PlanError(ValueError):
    """A request that cannot be answered; the message says what is wrong with it."""


def columns(plans: Sequence[Mapping[str, object]]) -> dict[str, Indices]:
    """Domain indices of plans: for each of the 19 knobs an array (n,). A missing knob takes its default.

    Raises PlanError for an unknown knob or a value outside its domain. A plan that only breaks a constraint
    is accepted: it has cycles too.
    """
    given = {knob: [plan.get(knob, DEFAULTS[knob]) for plan in plans] for knob in DOMAINS}
    foreign = any(plan.keys() - DOMAINS.keys() for plan in plans)
    if foreign or not all(_all_in_domain(knob, values) for knob, values in given.items()):
        raise PlanError(_first_fault(plans))
    return {knob: domain_indices(knob, cast("list[Value]", values)) for knob, values in given.items()}


def plans_of(rows: Columns) -> list[Plan]:
    """The plans that rows of domain indices stand for; the inverse of `columns`."""
    values = [[DOMAINS[knob][index] for index in rows[knob]] for knob in DOMAINS]
    return [dict(zip(DOMAINS, row, strict=True)) for row in zip(*values, strict=True)]


def domain_indices(knob: str, values: Iterable[Value]) -> Indices:
    index = {value: position for position, value in enumerate(DOMAINS[knob])}
    return np.fromiter((index[value] for value in values), np.uint8)


def row_count(rows: Columns) -> int:
    return len(next(iter(rows.values())))


def take(rows: Columns, which: slice | NDArray[np.intp]) -> dict[str, Indices]:
    return {knob: column[which] for knob, column in rows.items()}


def chunks(rows: Columns, size: int) -> Iterator[dict[str, Indices]]:
    for start in range(0, row_count(rows), size):
        yield take(rows, slice(start, start + size))


def _all_in_domain(knob: str, values: Sequence[object]) -> bool:
    kind = type(DOMAINS[knob][0])
    return all(type(value) is kind for value in values) and set(values) <= set(DOMAINS[knob])


def _first_fault(plans: Sequence[Mapping[str, object]]) -> str:
    for number, plan in enumerate(plans):
        if any(knob not in DOMAINS or not in_domain(knob, value) for knob, value in plan.items()):
            return f"plans[{number}]: {'; '.join(complete(plan)[1])}"
    raise AssertionError("a fault was seen, so a plan has one")


@cache
def term_table(term: Term, case: Case) -> Floats:
    """A term over the full domains of its knobs, one axis a knob."""
    choices = product(*(DOMAINS[knob] for knob in term.knobs))
    values = [float(term.value(case, *choice)) for choice in choices]
    return np.array(values).reshape([len(DOMAINS[knob]) for knob in term.knobs])


RULES = [
    Term(rule.expression, rule.knobs, lambda _, *values, holds=rule.holds: holds(*values))
    for rule in CONSTRAINTS
]


class Outlook:
    """What plans can cost while some knobs are settled, a row for each plan, and others are open.

    With nothing open every figure is exact. An open knob's terms are taken, each on its own, at the least (or
    the most, where more is better) over its choices. Everything that combines terms is monotone, and so is
    rounding: the result is never above the exact figure of a plan within reach, a bound that needs no margin.
    """

    def __init__(self, open_choices: Columns) -> None:
        self._open = open_choices
        self._narrowed: dict[tuple[str, str, str], tuple[list[str], Floats]] = {}

    def base_cycles(self, case: Case, rows: Columns) -> Floats:
        """Cycles of one case before jitter and truncation, (n,), or one number if no row matters to it."""
        least = partial(self._read, np.min, case, rows)
        most = partial(self._read, np.max, case, rows)
        throughput = reduce(np.multiply, map(most, FACTORS))
        compute = case.operations / np.maximum(0.1, throughput) / 17.5 + 48_000
        excess = np.maximum(0.0, reduce(np.add, map(least, PRESSURE)) - case.pressure_limit)
        costs: Floats = np.maximum(compute, least(memory_cycles)) + excess * excess * case.spill_weight
        costs = costs + least(scratchpad_cycles) + reduce(np.add, map(least, BANK_CONFLICTS))
        costs = costs + reduce(np.add, map(least, DMA_PENALTIES)) - reduce(np.add, map(most, SYNERGIES))
        return costs + OVER_TOLERANCE_CYCLES * (least(max_abs) > TOLERANCE)

    def may_pass(self, case: Case, rows: Columns) -> Flags:
        """Whether a plan within reach can be valid and within tolerance, (n,); exact with nothing open."""
        valid = (self._read(np.max, case, rows, rule) > 0 for rule in RULES)
        within = self._read(np.min, case, rows, max_abs) <= TOLERANCE
        return np.broadcast_to(reduce(np.logical_and, valid, within), row_count(rows))

    def _read(self, narrow: Callable[..., Floats], case: Case, rows: Columns, term: Term) -> Floats:
        key = (term.name, case.name, narrow.__name__)
        if key not in self._narrowed:
            self._narrowed[key] = self._narrowed_table(narrow, case, term)
        settled, table = self._narrowed[key]
        return table[tuple(rows[knob] for knob in settled)]

    def _narrowed_table(
        self, narrow: Callable[..., Floats], case: Case, term: Term
    ) -> tuple[list[str], Floats]:
        """The term's table over its settled knobs, its open ones narrowed to the best of their choices."""
        reach = [self._open.get(knob, np.arange(len(DOMAINS[knob]))) for knob in term.knobs]
        axes = tuple(axis for axis, knob in enumerate(term.knobs) if knob in self._open)
        settled = [knob for knob in term.knobs if knob not in self._open]
        return settled, narrow(term_table(term, case)[np.ix_(*reach)], axis=axes)


NOTHING_OPEN = Outlook({})
