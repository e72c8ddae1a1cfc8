"""The rule's critical levels and the learned floor, against numbers computed by hand."""

from __future__ import annotations

import pytest

from core.measure.errors import RuleFault
from core.measure.floor import Floor
from core.measure.rule import PERSON, SWEEP, VERIFY, Rule


def test_the_level_of_a_look_is_alpha_times_the_factor_of_the_looks() -> None:
    assert Rule().level == pytest.approx(0.05 * 0.40)
    assert Rule(looks=(2, 4)).level == pytest.approx(0.05 * 0.56)
    assert Rule(looks=(4,)).level == pytest.approx(0.05)
    assert Rule(looks=(2, 4, 6, 8)).level == pytest.approx(0.05 / 4)


def test_finalists_and_channels_share_the_level() -> None:
    assert Rule(finalists=6).level == pytest.approx(0.05 * 0.40 * 0.199372, rel=1e-5)  # 6^-0.9
    assert Rule(channels=2).level == pytest.approx(0.05 * 0.40 / 2)


def test_a_restore_is_asked_at_its_own_level_whatever_the_other_settings() -> None:
    assert Rule(alpha=0.05, channels=2, finalists=6).restore_level == pytest.approx(0.01 / 3)


def test_presets_for_a_person_a_verification_and_a_sweep() -> None:
    assert (PERSON.alpha, PERSON.seek_restore) == (0.05, False)
    assert (VERIFY.alpha, VERIFY.seek_restore) == (0.05, True)
    assert (SWEEP.alpha, SWEEP.seek_restore) == (0.01, False)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"looks": (1, 2)}, "looks"),
        ({"looks": (4, 2)}, "looks"),
        ({"looks": ()}, "looks"),
        ({"alpha": 0.0}, "alpha"),
        ({"first_stop": 1.0}, "first_stop"),
        ({"min_gain": -0.1}, "min_gain"),
        ({"min_gain": float("nan")}, "min_gain"),
        ({"channels": 3}, "channels"),
        ({"finalists": 0}, "finalists"),
        ({"rounds": 1}, "rounds"),
    ],
)
def test_a_rule_outside_its_domain_is_refused_by_name(settings: dict[str, object], named: str) -> None:
    with pytest.raises(RuleFault, match=named):
        Rule(**settings)  # type: ignore[arg-type]


def test_a_case_may_have_a_gate_of_its_own() -> None:
    rule = Rule(case_gate=0.05, case_gates=(("wide", 0.01),))
    assert rule.gate_of("wide") == 0.01
    assert rule.gate_of("narrow") == 0.05


def test_a_new_floor_is_one_degree_of_freedom_at_one_per_cent() -> None:
    floor = Floor()
    assert (floor.ss, floor.nu, floor.aa, floor.n_aa) == (1e-4, 1.0, 0.0, 0.0)
    assert (floor.s0_squared, floor.nu0, floor.c) == (1e-4, 1.0, 1.5)


def test_learning_adds_the_spread_of_a_decision_and_lets_older_ones_decay() -> None:
    old = Floor(ss=2e-4, nu=10.0, aa=3e-4, n_aa=12.0)
    new = old.learn([0.01, 0.03], [0.02, -0.01])
    assert new.ss == pytest.approx(0.98 * 2e-4 + 2e-4)  # spread (−0.01)² + (0.01)²
    assert new.nu == pytest.approx(0.98 * 10 + 1)
    assert new.aa == pytest.approx(0.98 * 3e-4 + 5e-4)
    assert new.n_aa == pytest.approx(0.98 * 12 + 2)
    assert old.nu == 10.0


def test_one_process_teaches_the_loads_but_no_spread() -> None:
    new = Floor(ss=1e-4, nu=1.0).learn([0.5], [0.01])
    assert (new.ss, new.nu, new.aa, new.n_aa) == pytest.approx((0.98e-4, 0.98, 1e-4, 1.0))


def test_stored_noise_never_weighs_more_than_four_degrees_of_freedom() -> None:
    assert Floor(ss=1e-3, nu=50.0).nu0 == 4.0
    assert Floor(ss=0.0, nu=0.0).nu0 == 0.0
    assert Floor(ss=0.0, nu=0.0).s0_squared == 0.0


@pytest.mark.parametrize(
    ("ss", "aa", "expected"),
    [
        (25 * 3e-4, 40 * 2e-4, 2.0),  # 3e-4 / (0.75 · 2e-4)
        (25 * 1e-4, 40 * 2e-4, 1.0),  # below 1: clipped
        (25 * 9e-4, 40 * 1e-4, 6.0),  # above 6: clipped
    ],
)
def test_c_compares_processes_with_loads_once_twenty_degrees_are_known(
    ss: float, aa: float, expected: float
) -> None:
    floor = Floor(ss=ss, nu=25.0, aa=aa, n_aa=40.0)
    assert floor.c == pytest.approx(expected)
    assert floor.prior().cautious_inflation == pytest.approx(expected)


def test_while_c_is_unknown_a_restore_uses_the_cautious_one() -> None:
    prior = Floor(ss=19 * 3e-4, nu=19.0, aa=40 * 2e-4, n_aa=40.0).prior()
    assert (prior.inflation, prior.cautious_inflation) == (1.5, 3.0)


def test_a_floor_held_for_a_run_adopts_what_it_learned() -> None:
    floor = Floor()
    floor.adopt(floor.learn([0.01, 0.02], [0.0, 0.01]))
    assert floor == Floor().learn([0.01, 0.02], [0.0, 0.01])
