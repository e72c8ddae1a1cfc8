"""Evidence made by hand for the gate's tests."""

from __future__ import annotations

from collections.abc import Sequence

from core.measure.evidence import CaseEvidence, ProcessEvidence
from core.measure.floor import Floor
from core.measure.objective import Direction, Objective
from core.measure.reading import Channel


def process(
    d: float,
    a: float,
    *,
    kind: str = "launch_us",
    engine: str = "event_pair",
    direction: Direction = "lower",
    cases: Sequence[CaseEvidence] = (),
    unstable: bool = False,
) -> ProcessEvidence:
    """A process whose candidate is exp(±d) times the best of about 100."""
    sign = Objective(direction=direction).sign
    return ProcessEvidence(
        kind, engine, direction, "arms_together", d, a,
        best=(100.0, 100.0 * 2.718281828459045 ** (sign * a)),
        candidate=100.0 * 2.718281828459045 ** (sign * d),
        cases=tuple(cases), rounds_kept=11, unstable=unstable,
    )  # fmt: skip


def case(name: str, d: float, a: float = 0.001) -> CaseEvidence:
    return CaseEvidence(name, d, a, (10.0, 10.0), 10.0)


def channel(d: Sequence[float], a: Sequence[float], floor: Floor | None = None, **more: object) -> Channel:
    """One process for each d and a."""
    evidence = tuple(process(one, other, **more) for one, other in zip(d, a, strict=True))  # type: ignore[arg-type]
    return Channel(evidence, floor or Floor())
