"""From launches or published numbers to one number a process."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from core.measure.arms import from_arms
from core.measure.errors import BadSamples, EvidenceFault, RuleFault
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.objective import Aggregate, Objective
from core.measure.samples import ArmSamples, rounds_to_discard, trimmed_mean, visit_log
from core.measure.scores import ArmScore, from_scores

SUM = Instrument("launch_us", "event_pair", Objective("sum"))
MINIMUM = Instrument("launch_us", "event_pair", Objective("sum", "minimum"))


def arm(rng: random.Random, scale: float, cases: tuple[str, ...] = ("x",), rounds: int = 12) -> ArmSamples:
    return {
        case: [[scale * rng.lognormvariate(0, 0.05) for _ in range(25)] for _ in range(rounds)]
        for case in cases
    }


def three(scales: tuple[float, float, float] = (100, 101, 95), **more: object) -> list[ArmSamples]:
    rng = random.Random(5)
    return [arm(rng, scale, **more) for scale in scales]  # type: ignore[arg-type]


def by_numpy(arms: list[ArmSamples], case: str, used: list[int]) -> tuple[float, float]:
    """d and a of one case, computed another way."""
    y = np.median(np.log([[one[case][r] for r in used] for one in arms]), axis=2)
    d = stats.trim_mean(y[2] - (y[0] + y[1]) / 2, 0.2)
    return float(d), float(stats.trim_mean(y[1] - y[0], 0.2))


def test_a_visit_is_the_median_of_log_launches() -> None:
    assert visit_log([10, 11, 12, 13, 1000]) == math.log(12)


def test_a_coarse_clock_is_averaged_instead() -> None:
    block = [10.0] * 6 + [11.0] * 3 + [90.0]
    expected = stats.trim_mean(np.log(block), 0.2)
    assert visit_log(block) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 2, 4, 5, 9, 10, 11, 25])
def test_the_trimmed_mean_is_that_of_scipy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    assert trimmed_mean(values.tolist()) == pytest.approx(stats.trim_mean(values, 0.2))


def test_three_arms_give_paired_trimmed_means_without_the_first_round() -> None:
    arms = three()
    evidence = from_arms(*arms, SUM)
    d, a = by_numpy(arms, "x", list(range(1, 12)))
    assert (evidence.d, evidence.a) == pytest.approx((d, a))
    assert (evidence.rounds_kept, evidence.rounds_discarded, evidence.unstable) == (11, 0, False)
    assert (evidence.kind, evidence.engine, evidence.shape) == ("launch_us", "event_pair", "arms_together")


def test_discarded_rounds_go_whole_over_all_arms() -> None:
    arms = three()
    for one in arms:
        one["x"][3][:] = [1e6] * 25  # type: ignore[index]
    evidence = from_arms(*arms, SUM, discarded=[0, 3])
    d, a = by_numpy(arms, "x", [1, 2, *range(4, 12)])
    assert (evidence.d, evidence.a) == pytest.approx((d, a))
    assert (evidence.rounds_kept, evidence.rounds_discarded) == (10, 1)


@pytest.mark.parametrize(("gone", "unstable"), [(5, False), (6, True), (11, True)])
def test_more_than_half_of_the_rounds_gone_is_unstable(gone: int, unstable: bool) -> None:
    evidence = from_arms(*three(), SUM, discarded=range(1, 1 + gone))
    assert (evidence.unstable, evidence.rounds_kept) == (unstable, 11 - gone)


def test_a_sum_weighs_each_case_with_the_bests_anchored_time() -> None:
    arms = three(cases=("big", "small"))
    evidence = from_arms(*arms, SUM, anchored={"big": 90.0, "small": 10.0})
    d = {case: by_numpy(arms, case, list(range(1, 12)))[0] for case in ("big", "small")}
    ratio = (90 * math.exp(d["big"]) + 10 * math.exp(d["small"])) / 100
    assert evidence.d == pytest.approx(math.log(ratio))
    assert {case.name: case.d for case in evidence.cases} == pytest.approx(d)


def test_without_an_anchor_the_cases_weigh_as_in_this_process() -> None:
    exact = {"a": [[30.0] * 5] * 3, "b": [[10.0] * 5] * 3}
    halved = {"a": [[15.0] * 5] * 3, "b": [[10.0] * 5] * 3}
    evidence = from_arms(exact, exact, halved, SUM)
    assert evidence.d == pytest.approx(math.log(25 / 40))
    assert (evidence.best, evidence.candidate) == (pytest.approx((40.0, 40.0)), pytest.approx(25.0))


@pytest.mark.parametrize(
    ("aggregate", "ratio"),
    [
        ("sum", 25 / 40),
        ("mean", 25 / 40),
        ("geomean", math.sqrt(15 * 10) / math.sqrt(30 * 10)),
        ("max", 15 / 30),
        ("min", 1.0),
    ],
)
def test_every_aggregate_compares_what_the_benchmark_publishes(aggregate: Aggregate, ratio: float) -> None:
    exact = {"a": [[30.0] * 5] * 3, "b": [[10.0] * 5] * 3}
    halved = {"a": [[15.0] * 5] * 3, "b": [[10.0] * 5] * 3}
    evidence = from_arms(exact, exact, halved, Instrument("launch_us", "wall", Objective(aggregate)))
    assert evidence.d == pytest.approx(math.log(ratio))


def test_the_aa_difference_is_that_of_the_objective() -> None:
    first, second = (
        {"a": [[30.0] * 5] * 3, "b": [[10.0] * 5] * 3},
        {"a": [[33.0] * 5] * 3, "b": [[10.0] * 5] * 3},
    )
    evidence = from_arms(first, second, first, SUM)
    x = math.log(33 / 30) / 2
    u = math.sqrt(30 * 33)
    expected = math.log((u * math.exp(x) + 10) / (u * math.exp(-x) + 10))
    assert evidence.a == pytest.approx(expected)
    assert evidence.a == pytest.approx(math.log(43 / 40))


def test_single_takes_one_case_only() -> None:
    with pytest.raises(RuleFault, match="2 cases"):
        from_arms(*three(cases=("a", "b")), Instrument("launch_us", "wall", Objective("single")))


def test_minimum_compares_the_best_launches_of_the_process() -> None:
    arms = three()
    lows = [min(value for block in one["x"][1:] for value in block) for one in arms]
    evidence = from_arms(*arms, MINIMUM)
    assert evidence.d == pytest.approx(math.log(lows[2]) - (math.log(lows[0]) + math.log(lows[1])) / 2)
    assert evidence.a == pytest.approx(math.log(lows[1] / lows[0]))
    assert evidence.best == pytest.approx((lows[0], lows[1]))


def test_minimum_needs_equal_numbers_of_launches() -> None:
    arms = three()
    arms[2] = {"x": [[*block, 90.0] for block in arms[2]["x"]]}
    with pytest.raises(EvidenceFault, match="launches"):
        from_arms(*arms, MINIMUM)


def test_where_higher_is_better_the_sign_turns_and_the_best_launch_is_the_largest() -> None:
    instrument = Instrument("tflops", "wall", Objective("sum", "minimum", "higher"))
    evidence = from_arms(
        {"": [[1.0], [10.0, 8.0]]}, {"": [[1.0], [10.0, 9.0]]}, {"": [[1.0], [12.0, 3.0]]}, instrument
    )
    assert evidence.d == pytest.approx(-math.log(1.2))
    assert (evidence.best, evidence.candidate) == (pytest.approx((10.0, 10.0)), pytest.approx(12.0))


def test_three_published_numbers_are_one_round() -> None:
    evidence = from_scores(
        ArmScore(100.0, {"a": 40.0}), ArmScore(110.0, {"a": 44.0}), ArmScore(95.0, {"a": 50.0}), SUM
    )
    assert evidence.d == pytest.approx(math.log(95 / math.sqrt(100 * 110)))
    assert evidence.a == pytest.approx(math.log(1.1))
    assert evidence.cases[0].d == pytest.approx(math.log(50 / math.sqrt(40 * 44)))
    assert (evidence.shape, evidence.best, evidence.candidate) == ("process_an_arm", (100.0, 110.0), 95.0)
    assert evidence.best_value == pytest.approx(math.sqrt(11000))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_sample_that_is_no_time_is_refused_with_its_place(bad: float) -> None:
    arms = three()
    arms[1]["x"][4][7] = bad  # type: ignore[index]
    with pytest.raises(BadSamples, match="best again, case 'x', round 4"):
        from_arms(*arms, SUM)
    with pytest.raises(BadSamples, match="candidate, objective"):
        from_scores(ArmScore(1.0), ArmScore(1.0), ArmScore(bad), SUM)
    with pytest.raises(BadSamples, match="best, case 'a'"):
        from_scores(*[ArmScore(1.0, {"a": bad})] * 3, SUM)


def test_a_time_below_what_the_hardware_can_do_is_refused() -> None:
    arms = three()
    assert from_arms(*arms, SUM, floors={"x": 80.0})
    with pytest.raises(BadSamples, match="at best"):
        from_arms(*arms, SUM, floors={"x": 130.0})


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda arms: arms[2].pop("x"), "candidate: none"),
        (lambda arms: [one.pop("x") for one in arms], "no case"),
        (lambda arms: arms[0]["x"].pop(), "unequal numbers of rounds"),
        (lambda arms: arms[0]["x"][2].clear(), "no launches"),
        (lambda arms: [one["x"].__delitem__(slice(1, None)) for one in arms], "at least two"),
    ],
)
def test_arms_that_do_not_fit_are_refused(
    spoil: Callable[[list[dict[str, list[list[float]]]]], object], named: str
) -> None:
    arms = three()
    spoil(arms)  # type: ignore[arg-type]
    with pytest.raises(EvidenceFault, match=named):
        from_arms(*arms, SUM)


def test_a_discarded_round_that_was_not_measured_is_refused() -> None:
    with pytest.raises(EvidenceFault, match="12"):
        from_arms(*three(), SUM, discarded=[12])


def test_rounds_go_for_throttling_or_for_clocks_ten_per_cent_off_the_median() -> None:
    clocks = [1980.0, 1980.0, 1780.0, 1985.0, 1790.0, 2200.0]
    assert rounds_to_discard(clocks, [False, True, False, False, False, False]) == {1, 2, 5}
    assert rounds_to_discard([], []) == frozenset()
    with pytest.raises(EvidenceFault, match="2 clock readings and 1 throttle"):
        rounds_to_discard([1.0, 1.0], [False])


def test_evidence_survives_json() -> None:
    evidence = from_arms(*three(cases=("a", "b")), SUM, discarded=[4])
    assert ProcessEvidence.from_json(evidence.to_json()) == evidence


def test_stored_evidence_with_other_fields_is_refused_by_name() -> None:
    stored = from_arms(*three(), SUM).to_json()
    with pytest.raises(EvidenceFault, match="lacks field 'd'"):
        ProcessEvidence.from_json({name: value for name, value in stored.items() if name != "d"})
    with pytest.raises(EvidenceFault, match="unknown field 'mood'"):
        ProcessEvidence.from_json(stored | {"mood": 1})
