"""What measuring refuses: a rule that makes no sense, and evidence that is none."""

from __future__ import annotations

from core.errors import UsageFault, WorkFault


class RuleFault(UsageFault):
    """A setting of the decision rule, of an objective or of a plan is out of its domain."""

    code = "measure.rule"


class EvidenceFault(WorkFault):
    """Samples or processes that cannot count: not positive, unequal, unstable, or outside the looks."""

    code = "measure.evidence"


class BadSamples(EvidenceFault):
    """A sample is zero, negative, not a number, infinite, or below what the hardware can do."""

    code = "measure.samples"


class MixedEvidence(EvidenceFault):
    """Processes of different kinds, engines, shapes or cases were put into one decision."""

    code = "measure.mixed"
