"""What people read."""

from __future__ import annotations

import math

import pytest

from core.measure.anchor import Anchor, case_anchors
from core.measure.decision import Decision
from core.measure.errors import BadSamples
from core.measure.evidence import Instrument
from core.measure.floor import Floor, Prior
from core.measure.gate import decide
from core.measure.objective import Objective
from core.measure.reading import Channel
from core.measure.rule import Rule
from core.measure.scores import ArmScore, from_scores
from core.measure.texts import (
    noise_warning,
    percent,
    process_text,
    provisional_text,
    reach_text,
    score_text,
    smallest_shown,
    unstable_text,
    verdict_text,
)
from tests.measure.measured import case, channel, process

A = [0.004, -0.004, 0.003, -0.003, 0.004, -0.004, 0.003, -0.003]
NOW = Rule(first_stop=0.0)


def decided(rule: Rule, evidence: Channel, proxy: Channel | None = None) -> Decision:
    decision = decide(rule, evidence, proxy)
    assert decision is not None
    return decision


def exact(candidate: float, rule: Rule | None = None) -> Decision:
    instrument = Instrument("best_cycles", "published", Objective("max"))
    one = from_scores(ArmScore(200_000.0), ArmScore(200_000.0), ArmScore(candidate), instrument)
    return decided(rule or Rule(deterministic=True), Channel((one,), Floor()))


def test_a_figure_has_one_decimal_and_a_true_minus() -> None:
    assert [percent(x) for x in (0.0214, -0.0214, 0.0, -0.00001, 1.5)] == [
        "2.1 %",
        "−2.1 %",
        "0.0 %",
        "0.0 %",
        "150.0 %",
    ]


def test_faster() -> None:
    text = verdict_text(decided(NOW, channel([-0.022, -0.020], A[:2], Floor(ss=30 * 0.004**2, nu=30))))
    assert text == "faster by 2.1 % (1.5 to 2.7), at least 1.4 %, 2 processes"


def test_slower() -> None:
    text = verdict_text(decided(NOW, channel([0.031, 0.030], A[:2], Floor(ss=30 * 0.004**2, nu=30))))
    assert text == "slower by 3.1 % (2.4 to 3.8), 2 processes"


def test_same() -> None:
    rule = Rule(looks=(8,), first_stop=0.0)
    d = [0.0005, -0.0005] * 4
    text = verdict_text(decided(rule, channel(d, A, Floor(ss=30 * 0.003**2, nu=30))))
    assert text == "same: 0.0 % (−0.2 to 0.2), within ±0.5 %, 8 processes"


def test_no_worthwhile_gain_after_one_process_is_provisional() -> None:
    one = decided(Rule(), channel([0.12], [0.004]))
    assert verdict_text(one).startswith("no worthwhile gain: −12.7 % (")
    assert verdict_text(one).endswith(", 1 process, provisional")


def test_no_worthwhile_gain_of_a_verification_says_what_is_not_excluded() -> None:
    decision = decided(Rule(seek_restore=True), channel([0.001, 0.002], [0.008, -0.008]))
    assert verdict_text(decision).endswith("2 processes; a loss of 0.5 % or more is not excluded")


def test_unclear_names_the_gain_that_is_unlikely() -> None:
    decision = decided(Rule(), channel([-0.03, 0.01] * 4, [0.01, -0.01] * 4))
    high = percent(decision.interval[1])
    assert (
        verdict_text(decision)
        == f"unclear: 1.0 % (−0.2 to {high[:-2]}) after 8 processes; a gain above {high} is unlikely"
    )


def test_a_blocked_accept_names_the_case_its_loss_and_its_gate() -> None:
    evidence = tuple(process(-0.05, a, cases=[case("wide", 0.0705)]) for a in A[:2])
    text = verdict_text(decided(NOW, Channel(evidence, Floor())))
    assert text.endswith("; not accepted: wide loses 7.3 % (gate 5.0 %)")


def test_with_a_proxy_the_text_says_which_kind_spoke() -> None:
    proxy = channel([-0.05, -0.049], A[:2], kind="kernel_us")
    decision = decided(Rule(channels=2, first_stop=0.0), channel([0.2, -0.3], [0.2, -0.2]), proxy)
    assert "[by kernel_us; launch_us: " in verdict_text(decision)


def test_exact_scores() -> None:
    assert verdict_text(exact(189_000)) == "faster by 5.5 %, exact (deterministic)"
    assert verdict_text(exact(211_000)) == "slower by 5.5 %, exact (deterministic)"
    assert verdict_text(exact(200_000)) == "same score, exact (deterministic)"
    assert verdict_text(exact(199_999)) == "faster by 0.0005 %, exact (deterministic)"


def test_a_false_declaration_names_the_remedy() -> None:
    instrument = Instrument("best_cycles", "published", Objective("max"))
    one = from_scores(ArmScore(1.0), ArmScore(2.0), ArmScore(1.0), instrument)
    text = verdict_text(decided(Rule(deterministic=True), Channel((one,), Floor())))
    assert text.startswith("unclear: declared deterministic, but") and "kerneldeck.toml" in text


def test_one_process_an_arm_counts_rounds() -> None:
    instrument = Instrument("score", "published", Objective())
    rounds = tuple(
        from_scores(ArmScore(x), ArmScore(x * 1.001), ArmScore(x * 0.9), instrument) for x in (10, 11)
    )
    assert verdict_text(decided(NOW, Channel(rounds, Floor()))).endswith(", 2 rounds of 3 processes")


def test_processes_and_noise_stand_below_the_verdict() -> None:
    decision = decided(NOW, channel([-0.05, -0.04], A[:2], Floor(ss=30 * 0.004**2, nu=30)))
    assert process_text(decision) == f"processes: 4.9 3.9 %; noise {percent(decision.noise)} a process"


def test_a_one_process_value_is_provisional() -> None:
    assert provisional_text(94.712, "µs") == "94.71 µs, provisional: one process, do not compare"


def test_the_shown_score_is_the_bests_long_run_value_times_the_ratio() -> None:
    decision = decided(NOW, channel([-0.05, -0.05], A[:2]))
    anchor = Anchor((104.0, 104.3, 110.0))
    assert anchor.value == 104.3
    assert anchor.estimate(decision.m) == pytest.approx(104.3 * math.exp(-0.05))
    assert anchor.estimate(-0.05, "higher") == pytest.approx(104.3 * math.exp(0.05))
    assert score_text(anchor, decision, "µs") == "99.21 µs (best 104.3 µs, anchored on 3 processes)"
    assert score_text(Anchor(()), decision, "µs") == "no anchored µs yet"


def test_an_anchor_keeps_the_last_twenty_stable_processes() -> None:
    anchor = Anchor(tuple(float(x) for x in range(1, 31)))
    assert anchor.values == tuple(float(x) for x in range(11, 31))
    longer = anchor.extended([process(0.0, 0.0), process(0.0, 0.0, unstable=True)])
    assert longer.values[-2:] == (30.0, 100.0) and len(longer.values) == 20
    with pytest.raises(BadSamples, match="anchor"):
        Anchor((1.0, 0.0))


def test_case_anchors_are_medians_over_processes() -> None:
    evidence = [process(0.0, 0.0, cases=[case("a", 0.0), case("b", 0.0)]) for _ in range(3)]
    assert case_anchors(evidence) == {"a": 10.0, "b": 10.0}


def test_a_benchmark_says_what_it_can_show() -> None:
    typical = Prior(0.0127**2, 4.0, 1.0, 1.0)
    assert smallest_shown(Rule(), typical) == pytest.approx(0.0139, abs=0.0005)
    assert reach_text(Rule(), typical) == "this benchmark shows 1.4 % or more in 8 processes"


def test_noise_is_warned_of_with_threshold_and_remedy() -> None:
    loud = decided(NOW, channel([-0.5, -0.4], [0.05, -0.05]))
    warning = noise_warning(loud)
    assert warning is not None and "above 2.0 %" in warning and "keep other work off" in warning
    assert noise_warning(decided(NOW, channel([-0.05, -0.05], A[:2], Floor(ss=30 * 0.004**2, nu=30)))) is None
    assert noise_warning(exact(189_000)) is None


def test_an_unstable_process_says_how_many_rounds_and_what_to_do() -> None:
    one = process(0.0, 0.0)
    thrown = type(one).from_json(one.to_json() | {"rounds_kept": 4, "rounds_discarded": 7, "unstable": True})
    text = unstable_text(thrown, Rule())
    assert text.startswith("unstable: 7 of 11 rounds thrown away") and "above 50.0 %" in text
