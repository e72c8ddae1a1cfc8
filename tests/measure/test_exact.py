"""Deterministic objectives are compared as they are."""

from __future__ import annotations

import pytest

from core.measure.arms import from_arms
from core.measure.decision import Decision
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.floor import Floor
from core.measure.gate import decide
from core.measure.objective import Direction, Objective
from core.measure.reading import Channel
from core.measure.rule import Rule
from core.measure.scores import ArmScore, from_scores

DECLARED = Rule(deterministic=True)


def cycles(
    candidate: float, best: float = 134_000, again: float | None = None, direction: Direction = "lower"
) -> ProcessEvidence:
    instrument = Instrument("best_cycles", "published", Objective("max", direction=direction))
    return from_scores(ArmScore(best), ArmScore(again or best), ArmScore(candidate), instrument)


def decision(*processes: ProcessEvidence, rule: Rule = DECLARED) -> Decision | None:
    return decide(rule, Channel(processes, Floor()))


def test_one_process_decides_a_declared_deterministic_score() -> None:
    better = decision(cycles(126_630))
    assert better is not None
    assert (better.verdict, better.accepted, better.exact, better.processes) == ("faster", True, True, 1)
    assert better.gain == pytest.approx(0.055)
    assert better.interval == pytest.approx((0.055, 0.055)) and better.at_least == better.gain


def test_one_cycle_counts_either_way() -> None:
    one_less, one_more, none = decision(cycles(133_999)), decision(cycles(134_001)), decision(cycles(134_000))
    assert one_less and one_more and none
    assert (one_less.verdict, one_less.accepted) == ("faster", True)
    assert (one_more.verdict, one_more.accepted, one_more.restore) == ("slower", False, True)
    assert (none.verdict, none.accepted, none.restore, none.gain) == ("same", False, False, 0.0)


def test_higher_is_better_turns_the_comparison() -> None:
    best = decision(cycles(140_000, direction="higher"))
    assert best and best.accepted and best.gain == pytest.approx(6_000 / 134_000)


def test_a_losing_case_blocks_an_exact_gain_too() -> None:
    instrument = Instrument("best_cycles", "published", Objective("sum"))
    best, candidate = ArmScore(200, {"a": 100, "b": 100}), ArmScore(190, {"a": 80, "b": 110})
    blocked = decision(from_scores(best, best, candidate, instrument))
    assert blocked and (blocked.reason, blocked.blocked, blocked.accepted) == ("case_loses", ("b",), False)


def test_a_declaration_that_the_best_contradicts_is_unclear() -> None:
    noisy = decision(cycles(120_000, 134_000, 134_010))
    assert noisy and (noisy.verdict, noisy.reason, noisy.exact) == ("unclear", "not_deterministic", False)
    assert not noisy.accepted and not noisy.rejected and not noisy.restore


def test_scores_that_repeat_to_the_bit_are_seen_to_be_exact() -> None:
    rule = Rule(first_stop=0.0)
    assert decision(cycles(133_900), rule=rule) is None
    seen = decision(cycles(133_900), cycles(133_900), rule=rule)
    assert seen and (seen.verdict, seen.exact, seen.processes) == ("faster", True, 2)


def test_a_stricter_rule_wants_more_repeats_because_a_coarse_clock_can_look_exact() -> None:
    strict, one = Rule(alpha=0.01, first_stop=0.0), cycles(133_000)
    assert decision(one, one, rule=strict) is None  # (4/27)² = 2.2 %
    seen = decision(one, one, one, one, rule=strict)
    assert seen and seen.exact


@pytest.mark.parametrize(
    "processes",
    [
        (cycles(120_000), cycles(120_001)),
        (cycles(120_000), cycles(120_000, 134_001)),
        (cycles(120_000), cycles(120_000, 134_000, 134_001)),
    ],
)
def test_any_spread_is_noise(processes: tuple[ProcessEvidence, ...]) -> None:
    measured = decision(*processes, rule=Rule(first_stop=0.0))
    assert measured and measured.accepted and not measured.exact


def test_timed_launches_count_as_exact_only_without_any_spread() -> None:
    def measured(launches: list[float]) -> Decision | None:
        instrument = Instrument("launch_us", "wall", Objective("sum"))
        best, candidate = {"": [launches] * 3}, {"": [[x * 0.999 for x in launches]] * 3}
        one = from_arms(best, best, candidate, instrument)
        return decision(one, one, rule=Rule(first_stop=0.0))

    flat, spread = measured([5.0] * 9), measured([5.0, 6.0, 7.0] * 3)
    assert flat and flat.exact and flat.accepted
    assert spread is None or not spread.exact


def test_an_exact_decision_survives_json_and_is_reached_again() -> None:
    one = cycles(126_630)
    first = decision(one)
    assert first and Decision.from_json(first.to_json()) == first
    assert decide(first.rule, Channel((one,), first.objective.prior)) == first
