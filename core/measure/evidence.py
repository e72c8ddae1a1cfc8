"""One number a process: how the candidate compares with the best, and the best with itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.measure.errors import EvidenceFault
from core.measure.json_form import from_json, to_json
from core.measure.objective import Direction, Objective
from core.words import JsonObject

Shape = Literal["arms_together", "process_an_arm"]
ARM_NAMES = ("best", "best again", "candidate")


@dataclass(frozen=True, slots=True)
class Instrument:
    """How numbers were taken: their kind (`launch_us`, `kernel_us`, `score`), the engine that took them
    (`event_pair`, `graph`, `wall`, …), and how they make the objective. Never compared across either."""

    kind: str
    engine: str
    objective: Objective


@dataclass(frozen=True, slots=True)
class CaseEvidence:
    """One case of one process: log differences as in ProcessEvidence, values in the samples' unit."""

    name: str
    d: float
    a: float
    best: tuple[float, float]
    candidate: float


@dataclass(frozen=True, slots=True)
class ProcessEvidence:
    """What one process (or one process an arm) says; nothing else of it is evidence.

    `d`: log candidate − log best, below 0 is better whatever the direction; `a`: the same between the
    best's two loads. `best`, `candidate`: the objective in its own unit. `constant`: no arm showed any
    spread, so the score may be exact. Unstable evidence never counts: the process is run again.
    """

    kind: str
    engine: str
    direction: Direction
    shape: Shape
    d: float
    a: float
    best: tuple[float, float]
    candidate: float
    cases: tuple[CaseEvidence, ...] = ()
    rounds_kept: int = 1
    rounds_discarded: int = 0
    unstable: bool = False
    constant: bool = False

    @property
    def best_value(self) -> float:
        """The best's value in this process: geometric mean of its two loads."""
        return geometric_mean(self.best)

    def to_json(self) -> JsonObject:
        return to_json(self)

    @classmethod
    def from_json(cls, stored: JsonObject) -> ProcessEvidence:
        return from_json(cls, stored)


def geometric_mean(pair: tuple[float, float]) -> float:
    """√(first · second), without overflow; the value itself, to the bit, when both are equal."""
    first, second = pair
    return first if first == second else math.sqrt(first) * math.sqrt(second)


def log_differences(logs: Sequence[float]) -> tuple[float, float]:
    """(candidate − mean of the bests, best again − best) of log values in the order of ARM_NAMES."""
    first, again, candidate = logs
    return candidate - (first + again) / 2, again - first


def check_same_cases(arms: Sequence[Mapping[str, object]]) -> None:
    """EvidenceFault unless all arms name the same cases."""
    if not all(arm.keys() == arms[0].keys() for arm in arms):
        lists = (
            f"{name}: {', '.join(sorted(arm)) or 'none'}" for name, arm in zip(ARM_NAMES, arms, strict=True)
        )
        raise EvidenceFault(f"the arms name different cases ({'; '.join(lists)})")
