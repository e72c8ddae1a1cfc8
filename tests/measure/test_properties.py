"""What must hold of any samples and any processes."""

from __future__ import annotations

import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from core.measure.arms import from_arms
from core.measure.decision import Decision
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.floor import Floor
from core.measure.gate import decide
from core.measure.objective import Aggregate, Objective
from core.measure.reading import Channel
from core.measure.rule import Rule
from tests.measure.measured import channel

AGGREGATES: list[Aggregate] = ["sum", "geomean", "mean", "max", "min"]
times = st.floats(1.0, 1000.0)
differences = st.floats(-0.2, 0.2)
rules = st.builds(
    Rule,
    looks=st.sampled_from([(2, 4, 8), (2, 4), (4,)]),
    alpha=st.sampled_from([0.01, 0.05]),
    first_stop=st.sampled_from([0.0, 0.9]),
    seek_restore=st.booleans(),
)
floors = st.builds(
    lambda noise, nu, loads, n_aa: Floor(noise**2 * nu, nu, loads**2 * n_aa, n_aa),
    noise=st.floats(0, 0.1),
    nu=st.floats(0, 60),
    loads=st.floats(0, 0.1),
    n_aa=st.floats(0, 60),
)
processes = st.lists(st.tuples(differences, differences), min_size=1, max_size=8)


@st.composite
def arms(draw: st.DrawFn) -> list[dict[str, list[list[float]]]]:
    rounds, launches = draw(st.integers(2, 5)), draw(st.integers(1, 7))
    blocks = st.lists(st.lists(times, min_size=launches, max_size=launches), min_size=rounds, max_size=rounds)
    return draw(st.lists(st.fixed_dictionaries({"a": blocks, "b": blocks}), min_size=3, max_size=3))


def close(one: ProcessEvidence, other: ProcessEvidence) -> bool:
    return math.isclose(one.d, other.d, abs_tol=1e-9) and math.isclose(one.a, other.a, abs_tol=1e-9)


@settings(max_examples=60, deadline=None)
@given(arms(), st.sampled_from(AGGREGATES), st.sampled_from(["median", "minimum"]), st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(measured, aggregate, statistic, factor) -> None:  # type: ignore[no-untyped-def]
    instrument = Instrument("launch_us", "wall", Objective(aggregate, statistic))
    scaled = [
        {case: [[factor * x for x in block] for block in blocks] for case, blocks in arm.items()}
        for arm in measured
    ]
    assert close(from_arms(*measured, instrument), from_arms(*scaled, instrument))


@settings(max_examples=60, deadline=None)
@given(arms(), st.sampled_from(["median", "minimum"]))
def test_times_and_their_reciprocal_rates_are_the_same_evidence(measured, statistic) -> None:  # type: ignore[no-untyped-def]
    rates = [
        {case: [[1.0 / x for x in block] for block in blocks] for case, blocks in arm.items()}
        for arm in measured
    ]
    lower = from_arms(*measured, Instrument("x", "wall", Objective("geomean", statistic, "lower")))
    higher = from_arms(*rates, Instrument("x", "wall", Objective("geomean", statistic, "higher")))
    assert close(lower, higher)
    for one, other in zip(lower.cases, higher.cases, strict=True):
        assert math.isclose(one.d, other.d, abs_tol=1e-9)


@settings(max_examples=60, deadline=None)
@given(arms(), st.randoms(use_true_random=False))
def test_the_order_of_the_kept_rounds_does_not_matter(measured, random) -> None:  # type: ignore[no-untyped-def]
    later = list(range(1, len(measured[0]["a"])))
    random.shuffle(later)
    shuffled = [{case: [blocks[r] for r in (0, *later)] for case, blocks in arm.items()} for arm in measured]
    instrument = Instrument("launch_us", "wall", Objective("sum"))
    assert close(from_arms(*measured, instrument), from_arms(*shuffled, instrument))


@settings(max_examples=60, deadline=None)
@given(arms())
def test_swapping_the_bests_loads_turns_only_the_aa_difference(measured) -> None:  # type: ignore[no-untyped-def]
    instrument = Instrument("launch_us", "wall", Objective("sum"))
    first, again, candidate = measured
    one, other = (
        from_arms(first, again, candidate, instrument),
        from_arms(again, first, candidate, instrument),
    )
    assert math.isclose(one.d, other.d, abs_tol=1e-9) and math.isclose(one.a, -other.a, abs_tol=1e-9)


@settings(max_examples=150, deadline=None)
@given(rules, floors, processes)
def test_one_process_is_never_enough_to_accept_or_to_restore(
    rule: Rule, floor: Floor, measured: list[tuple[float, float]]
) -> None:
    decision = decide(rule, channel(*zip(*measured[:1], strict=True), floor))
    assert decision is None or (decision.reason == "no_worthwhile_gain" and not decision.restore)


@settings(max_examples=150, deadline=None)
@given(rules, floors, processes)
def test_every_answer_comes_at_a_look_and_the_last_look_always_answers(
    rule: Rule, floor: Floor, measured: list[tuple[float, float]]
) -> None:
    decision = decide(rule, channel(*zip(*measured, strict=True), floor))
    if decision is None:
        assert len(measured) < rule.last_look
    else:
        assert decision.processes in (1, *rule.looks)
        assert decision.accepted == (decision.reason == "faster")
        assert not (decision.accepted and decision.restore)


@settings(max_examples=150, deadline=None)
@given(rules, floors, processes)
def test_more_processes_never_change_an_answer(
    rule: Rule, floor: Floor, measured: list[tuple[float, float]]
) -> None:
    whole = channel(*zip(*measured, strict=True), floor)
    decision = decide(rule, whole)
    if decision is not None:
        assert decide(rule, whole.first(decision.processes)) == decision


@settings(max_examples=100, deadline=None)
@given(rules, floors, processes)
def test_a_decision_is_recomputed_from_json(
    rule: Rule, floor: Floor, measured: list[tuple[float, float]]
) -> None:
    evidence = channel(*zip(*measured, strict=True), floor).evidence
    decision = decide(rule, Channel(evidence, floor))
    if decision is None:
        return
    text = json.dumps(
        {"decision": decision.to_json(), "evidence": [one.to_json() for one in evidence]}, allow_nan=False
    )
    stored = json.loads(text)
    again = Decision.from_json(stored["decision"])
    processes = tuple(ProcessEvidence.from_json(one) for one in stored["evidence"])
    assert again == decision
    assert decide(again.rule, Channel(processes, again.objective.prior)) == decision


@settings(max_examples=100, deadline=None)
@given(floors, processes, st.floats(-1.0, 1.0))
def test_a_better_candidate_is_never_judged_worse(
    floor: Floor, measured: list[tuple[float, float]], shift: float
) -> None:
    """Shifting all processes of a candidate to the better side never turns an accept into a rejection."""
    rule = Rule(looks=(len(measured),), first_stop=0.0) if len(measured) > 1 else Rule()
    d, a = zip(*measured, strict=True)
    plain = decide(rule, channel(d, a, floor))
    better = decide(rule, channel([x - abs(shift) for x in d], a, floor))
    if plain is not None and plain.accepted:
        assert better is not None and better.accepted
    if better is not None and better.restore:
        assert plain is not None and plain.restore
