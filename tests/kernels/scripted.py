"""An engine whose clock a test writes, and the timing file run with it."""

from __future__ import annotations

from types import ModuleType
from typing import Any


class ScriptedEngine:
    """Launches that all take `launch_us`; a visit whose number is in `distrusted` is a fault."""

    name = "scripted"
    unit = "us"

    def __init__(self, launch_us: float, distrusted: tuple[int, ...] = ()) -> None:
        self.launch_us = launch_us
        self.distrusted = distrusted
        self.visits = 0

    def resolution_us(self) -> float:
        return 0.001

    def time_launches(self, call: object, count: int) -> list[float]:
        return [self.launch_us + self.visits] * count

    def sync(self) -> None:
        """Nothing to wait for."""

    def fault(self, launch_us: list[float]) -> str | None:
        self.visits += 1
        return "distrusted" if self.visits - 1 in self.distrusted else None


def measured(timing: ModuleType, arms: list[Any], engine: object = None, repeats: int | None = None) -> Any:
    """A measurement of one case that does nothing."""
    return timing.measure(
        arms, ["only"], lambda arm, case: lambda: None, timing.plan(arms, repeats, 1, 0.0), engine
    )
