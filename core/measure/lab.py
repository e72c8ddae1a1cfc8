"""One candidate against the best on a lab: any machine that starts processes and visits loaded copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

from core.measure.arms import from_arms
from core.measure.decision import Decision
from core.measure.errors import RuleFault
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.floor import Floor
from core.measure.gate import decide
from core.measure.objective import Objective
from core.measure.plan import ProcessPlan, plan_process, visit_orders
from core.measure.reading import Channel
from core.measure.rule import Rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

__all__ = ["Answer", "Floor", "Lab", "Rule", "compare", "measure_process", "visit_orders"]

LAUNCHES = Instrument("launch_us", "lab", Objective("single"))
SEEDS = 2**63


class Lab(Protocol):
    """A machine. `start_process` starts a fresh process with one loaded copy, a slot, for each id (an id
    may repeat); `visit` times n launches of each slot in the order given: (len(slots), n), µs."""

    def start_process(self, ids: Sequence[int]) -> None: ...

    def visit(self, slots: Sequence[int], n: int) -> NDArray[np.float64]: ...


class Answer(TypedDict):
    """`verdict`: accept, reject, or unclear when it could not be told; `gain`: fraction, positive is
    better; `decision`: all of it."""

    verdict: str
    winner: int
    gain: float
    decision: Decision


def compare(
    lab: Lab,
    finalists: Sequence[int],
    checkpoint: int,
    floor: Floor,
    rng: Generator,
    rule: Rule | None = None,
) -> Answer:
    """Whether the one finalist beats the checkpoint, with as many fresh processes as the rule asks for.

    `floor` learns from the decision, in place. Several finalists are a race, not one comparison:
    RuleFault.
    """
    if len(finalists) != 1:
        raise RuleFault(
            f"{len(finalists)} finalists: one candidate is compared with the best at a time",
            "compare them one after the other",
        )
    rule = rule or Rule()
    seed = int(rng.integers(SEEDS))
    evidence: list[ProcessEvidence] = []
    decision: Decision | None = None
    while decision is None:
        plan = plan_process(rule, seed, len(evidence) + 1)
        evidence.append(measure_process(lab, plan, checkpoint, finalists[0]))
        decision = decide(rule, Channel(tuple(evidence), floor))
    if not decision.exact:
        floor.adopt(floor.learn(decision.objective.d, decision.objective.a))
    word = "accept" if decision.accepted else "reject" if decision.rejected else "unclear"
    return Answer(verdict=word, winner=finalists[0], gain=decision.gain, decision=decision)


def measure_process(lab: Lab, plan: ProcessPlan, best: int, candidate: int) -> ProcessEvidence:
    """Run one planned process on the lab."""
    lab.start_process([(best, best, candidate)[arm] for arm in plan.loads])
    blocks: list[list[list[float]]] = [[] for _ in plan.loads]
    for order in plan.rounds:
        for slot, launches in zip(order, lab.visit(order, plan.launches).tolist(), strict=True):
            blocks[slot].append(launches)
    first, again, other = ({"": of_slot} for of_slot in plan.by_arm(blocks))
    return from_arms(first, again, other, LAUNCHES)
