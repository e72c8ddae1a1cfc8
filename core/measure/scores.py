"""Evidence of one process an arm: three published numbers, run in random order, make one round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.measure.evidence import (
    ARM_NAMES,
    CaseEvidence,
    Instrument,
    ProcessEvidence,
    check_same_cases,
    log_differences,
)
from core.measure.samples import check_positive


@dataclass(frozen=True, slots=True)
class ArmScore:
    """What one process of one arm published: the objective, and its cases where it names them."""

    objective: float
    cases: Mapping[str, float] = field(default_factory=dict)


def from_scores(
    best: ArmScore, best_again: ArmScore, candidate: ArmScore, instrument: Instrument
) -> ProcessEvidence:
    """Evidence of one round of three processes; d and a as for three arms, of the published numbers.

    The objective is taken as published, not put together again from the cases. Raises BadSamples, or
    EvidenceFault when the arms name different cases.
    """
    arms = (best, best_again, candidate)
    check_same_cases([arm.cases for arm in arms])
    for arm, name in zip(arms, ARM_NAMES, strict=True):
        check_positive([arm.objective], f"{name}, objective")
        for case, value in arm.cases.items():
            check_positive([value], f"{name}, case {case!r}")
    sign = instrument.objective.sign
    whole = _compare("", [arm.objective for arm in arms], sign)
    return ProcessEvidence(
        instrument.kind, instrument.engine, instrument.objective.direction, "process_an_arm",
        d=whole.d, a=whole.a, best=whole.best, candidate=whole.candidate,
        cases=tuple(_compare(name, [arm.cases[name] for arm in arms], sign) for name in sorted(best.cases)),
        constant=best.objective == best_again.objective,
    )  # fmt: skip


def _compare(name: str, values: Sequence[float], sign: float) -> CaseEvidence:
    d, a = log_differences([math.log(value) for value in values])
    first, again, candidate = values
    return CaseEvidence(name, sign * d, sign * a, (first, again), candidate)
