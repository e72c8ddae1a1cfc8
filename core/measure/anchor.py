"""Displayed scores: the best's long-run value times the measured ratio, never the luckiest sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from core.measure.evidence import ProcessEvidence, geometric_mean
from core.measure.objective import Direction
from core.measure.samples import check_positive

WINDOW = 20


@dataclass(frozen=True, slots=True)
class Anchor:
    """The best's last process values, oldest first, in the objective's unit; at most 20 are kept."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        check_positive(self.values, "anchor")
        object.__setattr__(self, "values", tuple(self.values[-WINDOW:]))

    @property
    def value(self) -> float | None:
        """The median of the values; None before the first process."""
        return median(self.values) if self.values else None

    def extended(self, evidence: Sequence[ProcessEvidence]) -> Anchor:
        """With what the best showed in these processes; unstable ones do not count."""
        return Anchor((*self.values, *(one.best_value for one in evidence if not one.unstable)))

    def estimate(self, m: float, direction: Direction = "lower") -> float | None:
        """The displayed score of a candidate that differs by `m`: anchor · exp(m).

        m is a log difference whose negative side is better, so where higher is better: anchor · exp(−m).
        """
        value = self.value
        return None if value is None else value * math.exp(m if direction == "lower" else -m)


def case_anchors(evidence: Sequence[ProcessEvidence]) -> Mapping[str, float]:
    """Case -> median of the best's last 20 values of it: the weights u_c of a sum."""
    stable = [one for one in evidence if not one.unstable][-WINDOW:]
    values: dict[str, list[float]] = {}
    for process in stable:
        for case in process.cases:
            values.setdefault(case.name, []).append(geometric_mean(case.best))
    return {name: median(of_case) for name, of_case in values.items()}
