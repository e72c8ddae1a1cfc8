"""The published number: how a process's cases make one score, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from core.measure.errors import RuleFault

Aggregate = Literal["sum", "geomean", "mean", "max", "min", "single"]
Statistic = Literal["median", "minimum"]
Direction = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Objective:
    """What decides: `aggregate` over the cases of each case's `statistic`, and the better `direction`.

    `statistic` is how a process's launches of one case become one number:
    `median`: medians of visits, paired by round, 20 % trimmed mean over rounds;
    `minimum`: the best single launch of the process (the largest where higher is better), unpaired.
    The aggregate then is the same for both: see `aggregate_log`.
    """

    aggregate: Aggregate = "sum"
    statistic: Statistic = "median"
    direction: Direction = "lower"

    def __post_init__(self) -> None:
        words = (("aggregate", Aggregate), ("statistic", Statistic), ("direction", Direction))
        for name, domain in words:
            if getattr(self, name) not in get_args(domain):
                raise RuleFault(f"{name} {getattr(self, name)!r} is not one of {', '.join(get_args(domain))}")

    @property
    def sign(self) -> float:
        """+1 or −1, so that sign · (log candidate − log best) below 0 always is better."""
        return 1.0 if self.direction == "lower" else -1.0


def aggregate_log(aggregate: Aggregate, logs: Sequence[float]) -> float:
    """Log of the aggregate of cases whose log values are `logs`.

    sum: log Σexp(x); mean: the same − log n; geomean: Σx/n; max, min: the largest, smallest x;
    single: the only x (RuleFault when there are more).
    """
    if aggregate == "single" and len(logs) != 1:
        raise RuleFault(
            f"the objective's aggregate is single, but the samples have {len(logs)} cases",
            "say in kerneldeck.toml how cases are put together: sum, geomean, mean, max or min",
        )
    return _AGGREGATES[aggregate](logs)


def _log_sum(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


_AGGREGATES: dict[Aggregate, Callable[[Sequence[float]], float]] = {
    "sum": _log_sum,
    "mean": lambda logs: _log_sum(logs) - math.log(len(logs)),
    "geomean": lambda logs: math.fsum(logs) / len(logs),
    "max": max,
    "min": min,
    "single": lambda logs: logs[0],
}


def gain_fraction(direction: Direction, m: float) -> float:
    """The gain of a log difference `m` (below 0 is better) as a fraction of the best, positive is better.

    Lower is better: 1 − exp(m), the share of time saved. Higher is better: exp(−m) − 1, the share of
    score added.
    """
    return -math.expm1(m) if direction == "lower" else math.expm1(-m)
