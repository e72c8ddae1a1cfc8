"""What the next process of a decision runs, drawn from the decision's seed: load order, shifts, visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from core.measure.errors import RuleFault
from core.measure.rule import Rule

if TYPE_CHECKING:
    from numpy.random import Generator

Slot = TypeVar("Slot")
Order = tuple[int, ...]

ARMS = 3  # best, best again, candidate: the order of `evidence.ARM_NAMES`
SHIFT_BYTES = 256  # a buffer's start moves by multiples of the allocator's alignment
SHIFTS = 16


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process with three arms, or one round of three processes.

    `number` counts a decision's processes from 1. `loads[slot]` is the arm (0 best, 1 best again,
    2 candidate) loaded as that slot, and the order in which single processes run; `shifts_bytes[slot]`
    moves its buffers. `rounds[r]` is the order of slots in round r, `case_orders[r]` that of the cases.
    """

    seed: int
    number: int
    loads: Order
    shifts_bytes: Order
    rounds: tuple[Order, ...]
    case_orders: tuple[Order, ...]
    launches: int

    def by_arm(self, of_slots: Sequence[Slot]) -> tuple[Slot, Slot, Slot]:
        """What belongs to the slots, put in the order (best, best again, candidate)."""
        if len(of_slots) != ARMS:
            raise RuleFault(f"a process has {ARMS} slots, not {len(of_slots)}")
        first, again, candidate = (of_slots[self.loads.index(arm)] for arm in range(ARMS))
        return first, again, candidate


def plan_process(rule: Rule, seed: int, number: int, cases: int = 1) -> ProcessPlan:
    """The plan of the decision's process `number` (from 1); the same seed and number, the same plan."""
    if seed < 0 or number < 1 or cases < 1:
        raise RuleFault(f"seed {seed}, process {number}, {cases} cases: seed from 0, the others from 1")
    from numpy.random import default_rng

    rng = default_rng([seed, number])
    return ProcessPlan(
        seed=seed,
        number=number,
        loads=tuple(rng.permutation(ARMS).tolist()),
        shifts_bytes=tuple((SHIFT_BYTES * rng.integers(0, SHIFTS, size=ARMS)).tolist()),
        rounds=visit_orders(rng, range(ARMS), rule.rounds),
        case_orders=visit_orders(rng, range(cases), rule.rounds),
        launches=rule.launches,
    )


def visit_orders(rng: Generator, slots: Sequence[int], rounds: int) -> tuple[Order, ...]:
    """`rounds` fresh random orders of `slots`: every one once a round, so that drift favours none."""
    return tuple(tuple(rng.permutation(slots).tolist()) for _ in range(rounds))
