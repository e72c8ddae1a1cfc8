"""Every answer of the gate, and the statistic behind it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy import stats

from core.measure.decision import Decision
from core.measure.errors import EvidenceFault, MixedEvidence, RuleFault
from core.measure.floor import Floor, Prior
from core.measure.gate import decide
from core.measure.reading import Channel
from core.measure.rule import Rule
from tests.measure.measured import case, channel, process

QUIET = [0.001, -0.001, 0.001, -0.001, 0.001, -0.001, 0.001, -0.001]


def near(m: float, count: int, spread: float = 0.002) -> list[float]:
    """`count` values around m, alternating."""
    return [m + spread * (-1) ** index for index in range(count)]


def decided(decision: Decision | None) -> Decision:
    assert decision is not None
    return decision


def test_the_statistic_is_the_moderated_t_of_the_protocol() -> None:
    d, a, prior = [-0.021, -0.012], [0.008, -0.005], Prior(1.2e-4, 3.0, 2.0, 3.0)
    reading = decided(decide(Rule(looks=(2,)), Channel(channel(d, a).evidence, prior))).objective
    nu = 3.0 + 2 * 2 - 1
    s = math.sqrt((3.0 * 1.2e-4 + 0.75 * 2.0 * (0.008**2 + 0.005**2) + 2 * 0.0045**2) / nu)
    se = s / math.sqrt(2)
    assert (reading.m, reading.s, reading.se, reading.nu) == pytest.approx((-0.0165, s, se, nu))
    assert reading.p == pytest.approx(stats.t.cdf(-0.0165 / se, nu))
    assert reading.p_worse == pytest.approx(stats.t.sf(-0.0165 / se, nu))
    low, high = stats.t.interval(0.95, nu, -0.0165, se)
    assert reading.interval == pytest.approx((1 - math.exp(high), 1 - math.exp(low)))
    assert reading.at_least == pytest.approx(1 - math.exp(-0.0165 + stats.t.ppf(1 - 0.05, nu) * se))
    s_restore = math.sqrt((3.0 * 1.2e-4 + 0.75 * 3.0 * (0.008**2 + 0.005**2) + 2 * 0.0045**2) / nu)
    assert reading.p_restore == pytest.approx(stats.t.sf(-0.0165 / (s_restore / math.sqrt(2)), nu))


def test_noise_is_never_taken_to_be_below_the_least() -> None:
    floor = Floor(ss=1e-12, nu=30.0)
    reading = decided(decide(Rule(), channel([-0.05, -0.05], [0.0001, -0.0001], floor))).objective
    assert reading.s == 0.003


def test_faster_is_accepted_at_the_first_look_that_shows_it() -> None:
    decision = decided(decide(Rule(), channel(near(-0.05, 2), QUIET[:2])))
    assert (decision.verdict, decision.accepted, decision.reason, decision.by) == (
        "faster",
        True,
        "faster",
        "launch_us",
    )
    assert decision.gain == pytest.approx(1 - math.exp(-0.05))
    assert 0 < decision.at_least < decision.gain
    assert not decision.rejected and not decision.restore


@pytest.mark.parametrize("d", [-3.0, -0.5, -0.01, 0.0, 0.01, 3.0])
def test_one_process_never_accepts_and_never_says_slower(d: float) -> None:
    decision = decide(Rule(), channel([d], [0.0001]))
    assert decision is None or (
        (decision.verdict, decision.accepted, decision.restore) == ("unclear", False, False)
    )


def test_one_process_rejects_what_even_a_lucky_bound_would_not_make_worth_it() -> None:
    quiet = Floor(ss=30 * 0.004**2, nu=30.0)
    decision = decided(decide(Rule(), channel([0.004], [0.001], quiet)))
    assert (decision.reason, decision.rejected, decision.processes) == ("no_worthwhile_gain", True, 1)
    assert decide(Rule(), channel([-0.004], [0.001], quiet)) is None
    assert decide(Rule(first_stop=0.0), channel([0.004], [0.001], quiet)) is None


def test_between_the_looks_nothing_is_said() -> None:
    for count in (3, 5, 6, 7):
        open_question = channel(near(-0.006, count), [0.01, -0.01] * 4 if count == 8 else [0.01] * count)
        assert decide(Rule(), open_question) is None
    assert decide(Rule(), Channel((), Floor())) is None


def test_slower_is_told_from_no_worthwhile_gain_by_the_mirrored_test() -> None:
    worse = decided(decide(Rule(), channel([-0.02, 0.12], [0.01, -0.01])))
    assert (worse.verdict, worse.reason, worse.rejected) == ("unclear", "no_worthwhile_gain", True)
    rule = Rule(first_stop=0.0)
    slower = decided(decide(rule, channel(near(0.05, 2), QUIET[:2])))
    assert (slower.verdict, slower.reason, slower.rejected) == ("slower", "slower", True)
    assert slower.gain == pytest.approx(1 - math.exp(0.05))


def test_same_needs_the_whole_interval_within_the_gain_that_matters() -> None:
    floor = Floor(ss=30 * 0.001**2, nu=30.0)
    rule = Rule(looks=(8,), first_stop=0.0)
    same = decided(decide(rule, channel(near(0.0, 8, 0.001), QUIET, floor)))
    assert (same.verdict, same.reason, same.rejected) == ("same", "same", True)
    assert -0.005 < same.interval[0] < 0 < same.interval[1] < 0.005


def test_after_the_last_look_it_is_unclear() -> None:
    d = [-0.03, 0.01] * 4
    decision = decided(decide(Rule(), channel(d, [0.01, -0.01] * 4)))
    assert (decision.verdict, decision.reason, decision.processes) == ("unclear", "looks_spent", 8)
    assert not decision.accepted and not decision.rejected


def test_the_first_look_that_speaks_is_the_decision_whatever_came_later() -> None:
    d, a = near(-0.05, 2), QUIET[:2]
    early = decide(Rule(), channel(d, a))
    assert decide(Rule(), channel([*d, 0.3, 0.3, 0.3, 0.3], [*a, *QUIET[:4]])) == early


def test_finalists_tested_together_raise_the_bar() -> None:
    evidence = channel([-0.02, -0.03], [0.01, -0.008])
    assert decided(decide(Rule(), evidence)).accepted
    assert decide(Rule(finalists=6), evidence) is None


def test_a_restore_needs_the_stricter_test_and_a_loss_worth_it() -> None:
    once = Rule(looks=(2,), first_stop=0.0)
    clear = decided(decide(once, channel(near(0.06, 2), QUIET[:2])))
    assert (clear.verdict, clear.restore, clear.restore_open) == ("slower", True, False)
    barely = decided(decide(once, channel([0.015, 0.025], [0.006, -0.006])))
    assert barely.objective.p_worse < once.level and barely.objective.p_restore > once.restore_level
    assert (barely.verdict, barely.restore, barely.restore_open) == ("slower", False, True)
    quiet = Floor(ss=30 * 0.0001**2, nu=30.0)
    rule = Rule(looks=(8,), first_stop=0.0)
    tiny = decided(decide(rule, channel(near(0.0045, 8, 0.0001), [0.0001] * 8, quiet)))
    assert tiny.objective.p_restore < rule.restore_level and tiny.m < rule.min_gain
    assert (tiny.verdict, tiny.restore) == ("slower", False)


def test_a_verification_goes_on_while_a_restore_is_neither_shown_nor_past_hope() -> None:
    d, a = [0.02, 0.03], [0.008, -0.008]
    plain, verify = Rule(), Rule(seek_restore=True)
    assert decided(decide(plain, channel(d[:1], a[:1]))).processes == 1
    assert decide(verify, channel(d[:1], a[:1])) is None
    assert decide(verify, channel(d, a)) is None
    longer = decided(decide(verify, channel([*d, 0.025, 0.022], [*a, 0.006, -0.004])))
    assert (longer.verdict, longer.restore, longer.processes) == ("slower", True, 4)


def test_a_verification_stops_when_the_last_look_could_not_show_a_loss_worth_a_restore() -> None:
    verify = Rule(seek_restore=True)
    decision = decided(decide(verify, channel([0.001, 0.002], [0.008, -0.008])))
    assert (decision.reason, decision.restore, decision.processes) == ("no_worthwhile_gain", False, 2)
    assert decision.restore_open  # half a per cent may still be lost: said, not acted on


def test_a_verification_still_accepts_and_still_ends() -> None:
    verify = Rule(seek_restore=True)
    assert decided(decide(verify, channel(near(-0.05, 2), QUIET[:2]))).accepted
    wide = decided(decide(verify, channel([0.1, -0.02] * 4, [0.03, -0.03] * 4)))
    assert wide.processes == 8


# Two channels


def two(objective: list[float], proxy: list[float], a: list[float], a_proxy: list[float]) -> Decision | None:
    rule = Rule(channels=2, first_stop=0.0)
    return decide(rule, channel(objective, a), channel(proxy, a_proxy, kind="kernel_us", engine="graph"))


LOUD = [0.2, -0.15]


def test_a_proxy_may_win_while_the_objective_is_not_slower() -> None:
    decision = decided(two([0.02, -0.1], near(-0.05, 2), LOUD, QUIET[:2]))
    assert (decision.verdict, decision.accepted, decision.by) == ("faster", True, "kernel_us")
    assert decision.gain == pytest.approx(1 - math.exp(-0.05))
    assert decision.objective.kind == "launch_us"


def test_the_objective_is_named_when_it_wins_itself() -> None:
    assert decided(two(near(-0.06, 2), [0.0, 0.001], QUIET[:2], QUIET[:2])).by == "launch_us"


def test_an_objective_shown_slower_outweighs_a_faster_proxy() -> None:
    decision = decided(two(near(0.06, 2), near(-0.05, 2), QUIET[:2], QUIET[:2]))
    assert (decision.verdict, decision.accepted, decision.by) == ("slower", False, "launch_us")


def test_a_rejection_needs_both_channels() -> None:
    assert two(near(0.05, 2, 0.1), near(-0.008, 2), LOUD, [0.01, -0.01]) is None


def test_a_proxy_shown_slower_speaks_where_the_objective_cannot_tell_but_restores_nothing() -> None:
    decision = decided(two([0.02, -0.03], near(0.5, 2), LOUD, QUIET[:2]))
    assert (decision.verdict, decision.by, decision.restore) == ("slower", "kernel_us", False)


def test_the_level_is_shared_by_the_channels() -> None:
    d, a = [-0.017, -0.023], [0.009, -0.009]
    alone = decided(decide(Rule(first_stop=0.0), channel(d, a)))
    assert alone.accepted and 0.01 < alone.p < 0.02
    assert two(d, d, a, a) is None


def test_a_proxy_asks_for_a_rule_of_two_channels_of_different_kinds_and_equal_length() -> None:
    objective = channel(near(0, 2), QUIET[:2])
    proxy = channel(near(0, 2), QUIET[:2], kind="kernel_us")
    with pytest.raises(RuleFault, match="channels=2"):
        decide(Rule(), objective, proxy)
    with pytest.raises(MixedEvidence, match="both 'launch_us'"):
        decide(Rule(channels=2), objective, objective)
    with pytest.raises(MixedEvidence, match="2 processes of the objective, 1 of the proxy"):
        decide(Rule(channels=2), objective, proxy.first(1))


# Cases


def with_cases(d: list[float], losses: list[float], count: int | None = None) -> Channel:
    """One process for each d, whose case `wide` loses as given and `narrow` gains."""
    evidence = [
        process(one, 0.001 * (-1) ** index, cases=[case("narrow", -0.1), case("wide", loss)])
        for index, (one, loss) in enumerate(zip(d, losses, strict=True))
    ]
    return Channel(tuple(evidence[:count]), Floor())


def test_a_case_that_loses_more_than_its_gate_blocks_an_accept_and_is_named() -> None:
    decision = decided(decide(Rule(), with_cases(near(-0.05, 2), [0.10, 0.10])))
    assert (decision.verdict, decision.accepted, decision.reason) == ("faster", False, "case_loses")
    assert decision.blocked == ("wide",) and decision.rejected
    wide = decision.cases[1]
    assert (wide.name, wide.gate, wide.over, wide.shown) == ("wide", 0.05, True, True)
    assert wide.gain == pytest.approx(1 - math.exp(0.10))


def test_a_gate_of_its_own_lets_a_case_lose_more() -> None:
    rule = Rule(case_gates=(("wide", 0.2),))
    assert decided(decide(rule, with_cases(near(-0.05, 2), [0.10, 0.10]))).accepted


def test_a_loss_that_is_not_sure_yet_waits_for_the_next_look_and_counts_at_the_last() -> None:
    d, losses = near(-0.05, 8), [0.03, 0.08, 0.04, 0.075, 0.03, 0.08, 0.04, 0.075]
    assert decide(Rule(), with_cases(d, losses, 2)) is None
    last = decided(decide(Rule(), with_cases(d, losses)))
    assert (last.processes, last.reason, last.blocked) == (8, "case_loses", ("wide",))
    recovered = [0.03, 0.08, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert decided(decide(Rule(), with_cases(d, recovered))).accepted


def test_a_noisy_objectives_cases_block_a_proxys_win_only_when_the_loss_is_shown() -> None:
    def decision(losses: list[float]) -> Decision:
        objective = Channel(
            tuple(
                process(one, a, cases=[case("wide", loss, a)])
                for one, a, loss in zip([0.02, -0.1], LOUD, losses, strict=True)
            ),
            Floor(),
        )
        proxy = tuple(
            process(one, 0.001, kind="kernel_us", cases=[case("wide", one)]) for one in near(-0.05, 2)
        )
        return decided(decide(Rule(channels=2), objective, Channel(proxy, Floor())))

    assert decision([0.3, -0.1]).accepted
    assert decision([1.9, 2.1]).blocked == ("wide",)


# What cannot be one decision


def test_processes_of_different_kinds_engines_or_cases_are_never_mixed() -> None:
    first = process(-0.01, 0.001)
    for other, named in (
        (process(-0.01, 0.001, kind="kernel_us"), "kind 'kernel_us'"),
        (process(-0.01, 0.001, engine="graph"), "engine 'graph'"),
        (process(-0.01, 0.001, direction="higher"), "direction 'higher'"),
        (replace(first, shape="process_an_arm"), "shape 'process_an_arm'"),
        (process(-0.01, 0.001, cases=[case("a", 0.0)]), "other cases"),
    ):
        with pytest.raises(MixedEvidence, match=named):
            decide(Rule(), Channel((first, other), Floor()))


def test_an_unstable_process_cannot_count() -> None:
    with pytest.raises(EvidenceFault, match="process 2 of launch_us is unstable"):
        decide(Rule(), Channel((process(-0.01, 0.001), process(-0.01, 0.001, unstable=True)), Floor()))


@pytest.mark.parametrize(
    "evidence",
    [
        channel(near(-0.05, 2), QUIET[:2]),
        channel([0.3], [0.001]),
        channel([-0.03, 0.01] * 4, [0.01, -0.01] * 4),
        with_cases(near(-0.05, 2), [0.10, 0.10]),
    ],
)
def test_a_stored_decision_reads_back_and_is_reached_again_from_what_it_holds(evidence: Channel) -> None:
    decision = decided(decide(Rule(), evidence))
    stored = decision.to_json()
    assert Decision.from_json(stored) == decision
    assert stored["gain"] == decision.gain and stored["interval"] == list(decision.interval)
    assert decide(decision.rule, Channel(evidence.evidence, decision.objective.prior)) == decision
