"""One channel's statistic after P processes: the moderated t of the three-arm protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.measure.errors import EvidenceFault, MixedEvidence
from core.measure.evidence import ProcessEvidence, Shape
from core.measure.floor import LOAD_RATIO, Floor, Prior
from core.measure.objective import Direction, gain_fraction
from core.measure.rule import Rule
from core.measure.student import t_cdf, t_quantile

INTERVAL_LEVEL = 0.975  # upper end of a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Channel:
    """The processes' evidence of one kind, and the floor learned for that kind."""

    evidence: tuple[ProcessEvidence, ...]
    floor: Floor | Prior

    @property
    def prior(self) -> Prior:
        return self.floor if isinstance(self.floor, Prior) else self.floor.prior()

    def first(self, count: int) -> Channel:
        """The channel as it was after its first `count` processes."""
        return Channel(self.evidence[:count], self.floor)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a channel says at a look; all of m, s, se, low, high and critical in log time, below 0 is better.

    `m` mean of `d`; `s` noise a process; `se` = s/√P; `nu` degrees of freedom; `p` chance of an m this
    good from an equal candidate, `p_worse` the mirror, `p_restore` the same with the noise `s_restore` that
    a restore goes by (the cautious c); `low`..`high` the 95 % interval; `critical` the
    upper bound of m at the decision's own level (its gain is what is shown "at least").
    """

    kind: str
    engine: str
    direction: Direction
    shape: Shape
    d: tuple[float, ...]
    a: tuple[float, ...]
    prior: Prior
    m: float
    s: float
    se: float
    nu: float
    p: float
    p_worse: float
    s_restore: float
    p_restore: float
    low: float
    high: float
    critical: float

    @property
    def gain(self) -> float:
        """Fraction, positive is better."""
        return gain_fraction(self.direction, self.m)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the gain, worse end first."""
        return gain_fraction(self.direction, self.high), gain_fraction(self.direction, self.low)

    @property
    def at_least(self) -> float:
        """The gain shown at the decision's own level."""
        return gain_fraction(self.direction, self.critical)

    @property
    def process_gains(self) -> tuple[float, ...]:
        return tuple(gain_fraction(self.direction, value) for value in self.d)

    def optimistic(self, confidence: float) -> float:
        """m − t(confidence, ν)·se: how much better it might still be."""
        return self.m - t_quantile(self.nu, confidence) * self.se

    def pessimistic(self, confidence: float) -> float:
        """m + t(confidence, ν)·se: how much worse it might still be."""
        return self.m + t_quantile(self.nu, confidence) * self.se


def degrees_of_freedom(prior: Prior, processes: int) -> float:
    """ν = ν0 + 2P − 1: P of the A/A differences, P − 1 of the candidate's."""
    return prior.dof + 2 * processes - 1


def pooled_variance(d: Sequence[float], a: Sequence[float], prior: Prior, inflation: float) -> float:
    """s² = (ν0·s0² + 0.75·c·Σa² + Σ(d−d̄)²) / ν, with c the `inflation`.

    Source: moderated t (Smyth 2004) with the A/A differences as a second estimate of the same noise.
    """
    mean = math.fsum(d) / len(d)
    spread = math.fsum((value - mean) ** 2 for value in d)
    loads = LOAD_RATIO * inflation * math.fsum(value**2 for value in a)
    return (prior.dof * prior.variance + loads + spread) / degrees_of_freedom(prior, len(d))


def read(rule: Rule, channel: Channel) -> Reading:
    """The channel's statistic over all its processes; the evidence must have passed `check_alike`."""
    first, prior = channel.evidence[0], channel.prior
    d = tuple(process.d for process in channel.evidence)
    a = tuple(process.a for process in channel.evidence)
    m = math.fsum(d) / len(d)
    nu = degrees_of_freedom(prior, len(d))
    s, s_restore = (
        math.sqrt(max(pooled_variance(d, a, prior, c), rule.least_noise**2))
        for c in (prior.inflation, prior.cautious_inflation)
    )
    root = math.sqrt(len(d))
    se = s / root
    half = t_quantile(nu, INTERVAL_LEVEL) * se
    return Reading(
        first.kind, first.engine, first.direction, first.shape, d, a, prior, m, s, se, nu,
        p=t_cdf(nu, m / se), p_worse=t_cdf(nu, -m / se),
        s_restore=s_restore, p_restore=t_cdf(nu, -m * root / s_restore), low=m - half, high=m + half,
        critical=m + t_quantile(nu, 1 - rule.level) * se,
    )  # fmt: skip


def check_alike(evidence: Sequence[ProcessEvidence]) -> None:
    """MixedEvidence or EvidenceFault unless all processes are stable and of one kind, engine and shape."""
    for number, process in enumerate(evidence, 1):
        first = evidence[0]
        if process.unstable:
            raise EvidenceFault(
                f"process {number} of {process.kind} is unstable and cannot count",
                "run that process again",
            )
        for name in ("kind", "engine", "direction", "shape"):
            expected, found = getattr(first, name), getattr(process, name)
            if found != expected:
                raise MixedEvidence(
                    f"process {number} has {name} {found!r}, the first one {expected!r}",
                    "kinds and engines are never compared with each other: measure all of it the same way",
                )
        if [case.name for case in process.cases] != [case.name for case in first.cases]:
            raise MixedEvidence(f"process {number} of {process.kind} has other cases than the first one")
