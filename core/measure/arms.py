"""Evidence of three arms (best, best again, candidate) visited side by side in one process."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from core.measure.errors import EvidenceFault
from core.measure.evidence import (
    ARM_NAMES,
    CaseEvidence,
    Instrument,
    ProcessEvidence,
    check_same_cases,
    log_differences,
)
from core.measure.objective import Direction, Objective, aggregate_log
from core.measure.samples import ArmSamples, Blocks, check_arm, check_positive, trimmed_mean, visit_log

UNSTABLE_ABOVE = 0.5


def from_arms(
    best: ArmSamples,
    best_again: ArmSamples,
    candidate: ArmSamples,
    instrument: Instrument,
    *,
    discarded: Collection[int] = (),
    anchored: Mapping[str, float] | None = None,
    floors: Mapping[str, float] | None = None,
    max_discarded: float = UNSTABLE_ABOVE,
) -> ProcessEvidence:
    """Evidence of three arms in one process; the same cases, rounds × launches, any positive unit.

    Round 0 is dropped (first blocks are suspect), and so are the `discarded` rounds, numbered from 0,
    over all arms and cases; with more than `max_discarded` of the rest gone the process is unstable
    (with none left, the values describe all rounds and are for display only).

    Per case, with y the visit values: d_c = trimmed mean over rounds of y_cand − (y_best + y_again)/2,
    a_c = the same of y_again − y_best; for `minimum`, of the arms' best launches instead, without rounds.
    Objective, with u_c the best's long-run value of the case (`anchored`; else its value here) and
    F the aggregate of log values: d = F(log u + d_c) − F(log u), a = F(log u + a_c/2) − F(log u − a_c/2).
    For sums this is the log of the ratio of weighted sums, for geomeans the mean of d_c.

    `floors`: case -> the least a launch can take. Raises BadSamples or EvidenceFault. Source: the
    verdict study, sections 5.2 and 5.6.
    """
    arms = (best, best_again, candidate)
    rounds = _checked_rounds(arms, floors or {})
    if not all(0 <= number < rounds for number in discarded):
        raise EvidenceFault(f"discarded rounds {sorted(discarded)} are not all among the {rounds} measured")
    kept = [number for number in range(1, rounds) if number not in discarded]
    dropped = rounds - 1 - len(kept)
    used = kept or range(1, rounds)
    measured = [_measure(arms, case, used, instrument.objective) for case in sorted(best)]
    unstable = dropped > max_discarded * (rounds - 1)
    return _evidence(measured, instrument, anchored, len(kept), dropped, unstable)


@dataclass(frozen=True, slots=True)
class _Case:
    """One case before its direction is known: d, a in log of the unit, and each arm's log value."""

    name: str
    d: float
    a: float
    logs: tuple[float, ...]
    constant: bool

    def evidence(self, sign: float) -> CaseEvidence:
        first, again, candidate = (math.exp(value) for value in self.logs)
        return CaseEvidence(self.name, sign * self.d, sign * self.a, (first, again), candidate)


def _checked_rounds(arms: Sequence[ArmSamples], floors: Mapping[str, float]) -> int:
    """The number of rounds; EvidenceFault unless every case and arm has the same, at least two."""
    check_same_cases(arms)
    for arm, name in zip(arms, ARM_NAMES, strict=True):
        check_arm(arm, name, floors)
    counts = {len(blocks) for arm in arms for blocks in arm.values()}
    if len(counts) != 1:
        raise EvidenceFault(f"the arms have unequal numbers of rounds: {sorted(counts)}")
    if min(counts) < 2:
        raise EvidenceFault("one round is not enough: the first is always dropped; run at least two")
    return counts.pop()


def _measure(arms: Sequence[ArmSamples], name: str, used: Collection[int], objective: Objective) -> _Case:
    kept = [[arm[name][number] for number in used] for arm in arms]
    spread = any(value != blocks[0][0] for blocks in kept for block in blocks for value in block)
    if objective.statistic == "minimum":
        _check_equal_launches(name, kept)
        logs = tuple(_best_launch_log(blocks, objective.direction) for blocks in kept)
        d, a = log_differences(logs)
    else:
        visits = [[visit_log(block) for block in blocks] for blocks in kept]
        rounds = [log_differences(row) for row in zip(*visits, strict=True)]
        d = trimmed_mean([of_candidate for of_candidate, _ in rounds])
        a = trimmed_mean([of_best for _, of_best in rounds])
        logs = tuple(median(row) for row in visits)
    return _Case(name, d, a, logs, constant=not spread and logs[0] == logs[1])


def _best_launch_log(blocks: Blocks, direction: Direction) -> float:
    extreme = min if direction == "lower" else max
    return math.log(extreme(extreme(block) for block in blocks))


def _check_equal_launches(case: str, kept: Sequence[Blocks]) -> None:
    counts = {sum(len(block) for block in blocks) for blocks in kept}
    if len(counts) != 1:
        raise EvidenceFault(
            f"case {case!r}: the arms have {sorted(counts)} launches",
            "the minimum of more launches is smaller by itself: give every arm the same number",
        )


def _anchor_log(case: _Case, anchored: Mapping[str, float] | None) -> float:
    """log u_c: the best's anchored value of the case, or its value in this process."""
    if anchored is None:
        return (case.logs[0] + case.logs[1]) / 2
    if case.name not in anchored:
        raise EvidenceFault(f"no anchored value of the best for case {case.name!r}")
    check_positive([anchored[case.name]], f"anchored value, case {case.name!r}")
    return math.log(anchored[case.name])


def _evidence(
    measured: Sequence[_Case],
    instrument: Instrument,
    anchored: Mapping[str, float] | None,
    kept: int,
    dropped: int,
    unstable: bool,
) -> ProcessEvidence:
    objective = instrument.objective
    weights = [_anchor_log(case, anchored) for case in measured]

    def total(differences: Sequence[float]) -> float:
        logs = [weight + x for weight, x in zip(weights, differences, strict=True)]
        return aggregate_log(objective.aggregate, logs)

    d = total([case.d for case in measured]) - total([0.0] * len(measured))
    a = total([case.a / 2 for case in measured]) - total([-case.a / 2 for case in measured])
    by_arm = zip(*(case.logs for case in measured), strict=True)
    first, again, candidate = (math.exp(aggregate_log(objective.aggregate, logs)) for logs in by_arm)
    return ProcessEvidence(
        instrument.kind, instrument.engine, objective.direction, "arms_together",
        d=objective.sign * d, a=objective.sign * a, best=(first, again), candidate=candidate,
        cases=tuple(case.evidence(objective.sign) for case in measured),
        rounds_kept=kept, rounds_discarded=dropped, unstable=unstable,
        constant=all(case.constant for case in measured),
    )  # fmt: skip
