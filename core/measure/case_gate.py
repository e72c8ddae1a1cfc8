"""Per-case gates: a case that loses too much blocks an accept, whatever the sum gains."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.measure.floor import Prior
from core.measure.objective import gain_fraction
from core.measure.reading import Channel, pooled_variance
from core.measure.rule import Rule
from core.measure.student import t_quantile

LOSS_SHOWN_AT = 0.95  # one-sided


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One case over the processes: its gain and 95 % lower bound of loss (fractions), and its gate."""

    kind: str
    name: str
    gain: float
    loss_at_least: float
    gate: float

    @property
    def over(self) -> bool:
        """The measured loss is above the gate."""
        return -self.gain > self.gate

    @property
    def shown(self) -> bool:
        """The loss is above the gate even at its lower bound: more processes would not change that."""
        return self.loss_at_least > self.gate


def case_lines(rule: Rule, channel: Channel) -> tuple[CaseLine, ...]:
    """A line for each case; their noise is pooled over cases, without a prior:

    s_c² = max[mean over cases of (0.75·c·Σa_c² + Σ(d_c−d̄_c)²)/(2P−1), least_noise²], ν = C·(2P−1).
    """
    first, processes = channel.evidence[0], len(channel.evidence)
    if not first.cases:
        return ()
    columns = [[process.cases[index] for process in channel.evidence] for index in range(len(first.cases))]
    c, none = channel.prior.inflation, Prior(0.0, 0.0, 1.0, 1.0)
    variances = [pooled_variance([x.d for x in column], [x.a for x in column], none, c) for column in columns]
    s = math.sqrt(max(math.fsum(variances) / len(columns), rule.least_noise**2))
    half = t_quantile(len(columns) * (2 * processes - 1), LOSS_SHOWN_AT) * s / math.sqrt(processes)
    lines = []
    for column in columns:
        m = math.fsum(case.d for case in column) / processes
        gain, best_gain = gain_fraction(first.direction, m), gain_fraction(first.direction, m - half)
        name = column[0].name
        lines.append(CaseLine(first.kind, name, gain, -best_gain, rule.gate_of(name)))
    return tuple(lines)
