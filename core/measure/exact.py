"""Deterministic objectives: scores that repeat to the bit are compared as they are."""

from __future__ import annotations

from core.measure.case_gate import CaseLine
from core.measure.decision import Decision, Reason, Verdict
from core.measure.evidence import CaseEvidence, ProcessEvidence
from core.measure.objective import gain_fraction
from core.measure.reading import Channel, Reading
from core.measure.rule import Rule

# A coarse clock can look exact: three equal kernels that straddle one tick show this pattern (two equal
# bests, the candidate one tick better) with probability q²(1−q) a process, at most 4/27 at q = 2/3.
LUCKY_PROCESS = 4 / 27
ROUNDING = 1e-12  # a log difference that is only float rounding of a sum of cases


def looks_exact(rule: Rule, evidence: tuple[ProcessEvidence, ...]) -> bool:
    """Whether the scores may be compared as they are.

    Declared by the workspace, or seen: over at least two processes no arm shows any spread, best and
    candidate repeat to the bit, and a coarse clock would do so with a chance below alpha.
    """
    if rule.deterministic:
        return True
    repeats = (
        len({process.best for process in evidence}) == len({process.candidate for process in evidence}) == 1
    )
    constant = all(process.constant and process.a == 0.0 for process in evidence)
    lucky = LUCKY_PROCESS ** len(evidence)
    return len(evidence) >= 2 and constant and repeats and lucky <= rule.alpha


def decide_exactly(rule: Rule, channel: Channel) -> Decision:
    """The decision between exact scores: any gain is accepted, any declared exact loss calls for a restore.

    min_gain guards against noise and does not apply to declared scores; per-case gates do. Scores that
    only look exact may be a coarse clock's: their loss restores when it is worth it and the chance of
    such a look is below restore_alpha. Where the workspace declared
    exactness but the best differs from itself: `unclear`, reason `not_deterministic`.
    """
    process = channel.evidence[-1]
    exact = process.best[0] == process.best[1]
    cases = tuple(_line(rule, process, case) for case in process.cases)
    verdict = _compare(process) if exact else "unclear"
    blocked = tuple(case.name for case in cases if case.over) if verdict == "faster" else ()
    return Decision(
        verdict=verdict,
        accepted=verdict == "faster" and not blocked,
        reason=_reason(verdict, blocked),
        by=process.kind,
        objective=_reading(channel, process),
        proxy=None,
        cases=cases,
        blocked=blocked,
        restore=verdict == "slower" and (rule.deterministic or _sure_loss(rule, channel)),
        restore_open=not exact,
        exact=exact,
        rule=rule,
    )


def _sure_loss(rule: Rule, channel: Channel) -> bool:
    lucky = LUCKY_PROCESS ** len(channel.evidence)
    return lucky <= rule.restore_alpha and channel.evidence[-1].d >= rule.min_gain


def _line(rule: Rule, process: ProcessEvidence, case: CaseEvidence) -> CaseLine:
    gain = gain_fraction(process.direction, case.d)
    return CaseLine(process.kind, case.name, gain, -gain, rule.gate_of(case.name))


def _compare(process: ProcessEvidence) -> Verdict:
    """Published scores by themselves; objectives put together from cases up to float rounding."""
    same = process.candidate == process.best[0]
    same |= process.shape == "arms_together" and abs(process.d) < ROUNDING
    if same:
        return "same"
    lower = process.candidate < process.best[0]
    return "faster" if lower == (process.direction == "lower") else "slower"


def _reason(verdict: Verdict, blocked: tuple[str, ...]) -> Reason:
    if verdict == "unclear":
        return "not_deterministic"
    return "case_loses" if blocked else verdict


def _reading(channel: Channel, process: ProcessEvidence) -> Reading:
    """A reading without noise: the interval is the point."""
    d = tuple(one.d for one in channel.evidence)
    a = tuple(one.a for one in channel.evidence)
    m = process.d
    p = 0.5 if m == 0.0 else float(m > 0.0)
    return Reading(
        process.kind, process.engine, process.direction, process.shape, d, a, channel.prior, m,
        s=0.0, se=0.0, nu=0.0, p=p, p_worse=1.0 - p, s_restore=0.0, p_restore=1.0 - p,
        low=m, high=m, critical=m,
    )  # fmt: skip
