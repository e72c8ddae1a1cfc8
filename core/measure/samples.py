"""Launches to numbers: checked samples, a visit's value, a trimmed mean, rounds to throw away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from core.measure.errors import BadSamples, EvidenceFault

Block = Sequence[float]  # launches of one visit, any positive unit
Blocks = Sequence[Block]  # a block a round
ArmSamples = Mapping[str, Blocks]  # case -> blocks of one arm

TRIM = 0.2
FEW_DISTINCT = 5  # below this many values a clock's ticks, not the kernel, make the median
CLOCK_TOLERANCE = 0.10
LEAST_OF_FLOOR = 0.8  # a time under this share of what bandwidth or arithmetic allow is a fault, not a win


def trimmed_mean(values: Sequence[float]) -> float:
    """Mean without the lowest and highest fifth (⌊n/5⌋ values at each end)."""
    cut = int(TRIM * len(values))
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


def visit_log(block: Block) -> float:
    """A visit's value: median of log launches; their 20 % trimmed mean with fewer than 5 distinct ones."""
    logs = [math.log(value) for value in block]
    return trimmed_mean(logs) if len(set(logs)) < FEW_DISTINCT else median(logs)


def check_positive(values: Sequence[float], where: str, least: float = 0.0) -> None:
    """BadSamples, naming `where` and the value, unless all are finite, above 0 and at least `least`."""
    for value in values:
        if not math.isfinite(value) or value <= 0.0:
            raise BadSamples(
                f"{where}: {value} is not a time or a score that can be compared",
                "samples must be finite and above 0; look at the benchmark's timer and its output",
            )
        if value < least:
            raise BadSamples(
                f"{where}: {value:g} is below {least:g}, what the hardware or the timer can show at best",
                "the work was not done inside the timed region, or the floor is measured too high",
            )


def check_arm(samples: ArmSamples, arm: str, floors: Mapping[str, float]) -> None:
    """Refuse an arm without cases, with an empty block, or with samples that are not times.

    `floors`: case -> the least its launches can take, in the samples' unit, where it is known.
    """
    if not samples:
        raise EvidenceFault(f"{arm}: no case has samples")
    for case, blocks in samples.items():
        for number, block in enumerate(blocks):
            where = f"{arm}, case {case!r}, round {number}"
            if not len(block):
                raise EvidenceFault(f"{where}: no launches")
            check_positive(block, where, LEAST_OF_FLOOR * floors.get(case, 0.0))


def rounds_to_discard(clock_mhz: Sequence[float], throttled: Sequence[bool]) -> frozenset[int]:
    """Rounds taken while throttled, or with a clock more than 10 % off the process's median.

    Both are a value a round. Whole rounds go, over all arms; slow samples never go for being slow.
    """
    if len(clock_mhz) != len(throttled):
        raise EvidenceFault(f"{len(clock_mhz)} clock readings and {len(throttled)} throttle flags")
    if not clock_mhz:
        return frozenset()
    usual = median(clock_mhz)
    return frozenset(
        number
        for number, (clock, flag) in enumerate(zip(clock_mhz, throttled, strict=True))
        if flag or abs(clock - usual) > CLOCK_TOLERANCE * usual
    )
