"""Measuring and deciding: evidence of processes, the gate, verdicts in words. No I/O, no clock.

`from_arms` and `from_scores` make a process's evidence, `decide` the verdict, `Floor.learn` the noise for
the next one. `plan` and `lab` need numpy and are imported by their users.
"""

from core.measure.anchor import Anchor, case_anchors
from core.measure.arms import from_arms
from core.measure.decision import Decision
from core.measure.errors import BadSamples, EvidenceFault, MixedEvidence, RuleFault
from core.measure.evidence import CaseEvidence, Instrument, ProcessEvidence
from core.measure.floor import Floor, Prior
from core.measure.gate import decide
from core.measure.objective import Objective, gain_fraction
from core.measure.reading import Channel, Reading
from core.measure.rule import PERSON, SWEEP, VERIFY, Rule
from core.measure.samples import rounds_to_discard
from core.measure.scores import ArmScore, from_scores
from core.measure.texts import verdict_text

__all__ = [
    "PERSON",
    "SWEEP",
    "VERIFY",
    "Anchor",
    "ArmScore",
    "BadSamples",
    "CaseEvidence",
    "Channel",
    "Decision",
    "EvidenceFault",
    "Floor",
    "Instrument",
    "MixedEvidence",
    "Objective",
    "Prior",
    "ProcessEvidence",
    "Reading",
    "Rule",
    "RuleFault",
    "case_anchors",
    "decide",
    "from_arms",
    "from_scores",
    "gain_fraction",
    "rounds_to_discard",
    "verdict_text",
]
