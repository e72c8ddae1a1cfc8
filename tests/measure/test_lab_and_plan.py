"""The lab seam: whole decisions on a small simulated machine, and the plans that drive it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from core.measure.errors import RuleFault
from core.measure.floor import Floor
from core.measure.lab import compare
from core.measure.plan import plan_process, visit_orders
from core.measure.rule import VERIFY, Rule


class SimulatedLab:
    """Kernels of given log times on a machine with drift, offsets a process and a loaded copy, and jitter.

    `offset` is the spread (log time) of a loaded copy in a process: what more launches cannot average.
    """

    def __init__(self, seed: int, log_times: Sequence[float], offset: float = 0.006) -> None:
        self._rng = np.random.default_rng(seed)
        self._log_times, self._offset = log_times, offset
        self.processes: list[list[int]] = []
        self.visits: list[list[int]] = []

    def start_process(self, ids: Sequence[int]) -> None:
        self.processes.append(list(ids))
        own = self._rng.normal(0, self._offset, len(ids))
        self._slots = np.array([self._log_times[one] for one in ids]) + own + self._rng.normal(0, 0.02)
        self._drift = 0.0

    def visit(self, slots: Sequence[int], n: int) -> NDArray[np.float64]:
        self.visits.append(list(slots))
        self._drift += self._rng.normal(0, 0.003)
        jitter = self._rng.normal(0, 0.012, (len(slots), n))
        return 100 * np.exp(self._slots[list(slots), None] + self._drift + jitter)


def verdicts(difference: float, count: int, rule: Rule | None = None) -> tuple[Counter[str], int, float]:
    """Verdicts, restores and mean processes of `count` decisions on fresh labs with one learning floor."""
    floor, found, restores, spent = Floor(), Counter[str](), 0, 0
    for seed in range(count):
        lab = SimulatedLab(seed, [0.0, difference])
        answer = compare(lab, [1], 0, floor, np.random.default_rng(seed), rule)
        found[answer["verdict"]] += 1
        restores += answer["decision"].restore
        spent += len(lab.processes)
    return found, restores, spent / count


def test_an_equal_kernel_is_seldom_accepted() -> None:
    found, _, _ = verdicts(0.0, 100)
    assert found["accept"] <= 8


def test_a_kernel_three_per_cent_faster_is_accepted_in_few_processes() -> None:
    found, _, spent = verdicts(-0.03, 40)
    assert found["accept"] >= 37 and spent < 4


def test_a_kernel_five_per_cent_slower_is_rejected_after_one_process() -> None:
    found, _, spent = verdicts(0.05, 40)
    assert found["reject"] == 40 and spent < 1.5


def test_a_verification_restores_what_is_five_per_cent_slower_and_leaves_an_equal_kernel() -> None:
    assert verdicts(0.05, 40, VERIFY)[1] >= 38
    assert verdicts(0.0, 60, VERIFY)[1] <= 3


def test_every_process_loads_the_best_twice_and_visits_each_arm_once_a_round() -> None:
    lab, rule = SimulatedLab(1, [0.0, -0.05]), Rule(rounds=5, launches=7)
    answer = compare(lab, [1], 0, Floor(), np.random.default_rng(1), rule)
    assert answer["winner"] == 1 and answer["gain"] == answer["decision"].gain
    assert all(sorted(ids) == [0, 0, 1] for ids in lab.processes)
    assert len(lab.visits) == 5 * len(lab.processes)
    assert all(sorted(order) == [0, 1, 2] for order in lab.visits)


def test_the_floor_learns_in_place_from_every_decision() -> None:
    floor = Floor()
    answer = compare(SimulatedLab(2, [0.0, -0.05]), [1], 0, floor, np.random.default_rng(2))
    reading = answer["decision"].objective
    assert floor == Floor().learn(reading.d, reading.a)


def test_the_same_seed_gives_the_same_decision() -> None:
    first, second = (
        compare(SimulatedLab(3, [0.0, -0.02]), [1], 0, Floor(), np.random.default_rng(3)) for _ in range(2)
    )
    assert first["decision"] == second["decision"]


def test_several_finalists_are_refused() -> None:
    with pytest.raises(RuleFault, match="2 finalists"):
        compare(SimulatedLab(4, [0.0, 0.0, 0.0]), [1, 2], 0, Floor(), np.random.default_rng(4))


def test_orders_are_fresh_permutations() -> None:
    orders = visit_orders(np.random.default_rng(0), [4, 7, 9], 50)
    assert all(sorted(order) == [4, 7, 9] for order in orders)
    assert len(set(orders)) == 6


def test_a_plan_is_drawn_from_seed_and_number_alone() -> None:
    rule = Rule()
    plan = plan_process(rule, 42, 3, cases=4)
    assert plan == plan_process(rule, 42, 3, cases=4)
    assert plan.rounds != plan_process(rule, 42, 4, cases=4).rounds
    assert plan.rounds != plan_process(rule, 43, 3, cases=4).rounds
    assert len(plan.rounds) == len(plan.case_orders) == rule.rounds
    assert all(sorted(order) == [0, 1, 2, 3] for order in plan.case_orders)
    assert all(shift % 256 == 0 for shift in plan.shifts_bytes)


def test_what_slots_gave_comes_back_by_arm() -> None:
    plan = plan_process(Rule(), 7, 1)
    assert plan.by_arm([f"arm {arm}" for arm in plan.loads]) == ("arm 0", "arm 1", "arm 2")
    with pytest.raises(RuleFault, match="3 slots, not 2"):
        plan.by_arm([1, 2])
    with pytest.raises(RuleFault, match="process 0"):
        plan_process(Rule(), 7, 0)
