"""The recorded H200 traces as evidence: each file is one process in which every config was visited.

A key `<rows>x<dim>|w<warps>r<rows per program>` has 12 interleaved rounds of [min, median, p90, max of
100 event pairs, graph replay or NaN], µs. The traces hold one load of each config, so the best's odd and
even rounds stand for its two loads: a pair of rounds is one round of the evidence. The first pair is
dropped by the protocol. Graph replays were taken in three rounds only; the first of them is dropped and
the other two are the best's two loads.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

from core.measure.arms import from_arms
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.objective import Objective

FOLDER = Path(__file__).parents[1] / "fixtures" / "h200"
PROCESSES = "abc"
MEDIAN, GRAPH = 1, 4
LAUNCH = Instrument("launch_us", "event_pair", Objective("sum"))
KERNEL = Instrument("kernel_us", "graph", Objective("sum"))
TRACES = {name: json.loads((FOLDER / f"h200_rmsnorm_events_{name}.json").read_text()) for name in PROCESSES}


def launches(process: str, best: str, candidate: str, cases: tuple[str, ...]) -> ProcessEvidence:
    """Medians of event pairs: 6 pairs of rounds, the first dropped."""
    return _evidence(TRACES[process], MEDIAN, range(12), best, candidate, cases, LAUNCH)


def kernels(process: str, best: str, candidate: str, cases: tuple[str, ...]) -> ProcessEvidence:
    """Graph replays of rounds 0, 4 and 8; round 0 stands for the dropped first pair."""
    return _evidence(TRACES[process], GRAPH, (0, 0, 4, 8), best, candidate, cases, KERNEL)


def _evidence(trace, column, rounds, best, candidate, cases, instrument) -> ProcessEvidence:  # type: ignore[no-untyped-def]
    def values(case: str, config: str) -> list[float]:
        found = [trace[f"{case}|{config}"][number][column] for number in rounds]
        assert not any(math.isnan(value) for value in found)
        return found

    first = {case: [[value] for value in values(case, best)[0::2]] for case in cases}
    again = {case: [[value] for value in values(case, best)[1::2]] for case in cases}
    pairs = {case: values(case, candidate) for case in cases}
    other = {case: [[*two] for two in zip(of[0::2], of[1::2], strict=True)] for case, of in pairs.items()}
    return from_arms(first, again, other, instrument)
