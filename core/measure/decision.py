"""A verdict with everything that was behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.measure.case_gate import CaseLine
from core.measure.json_form import from_json, to_json
from core.measure.reading import Reading
from core.measure.rule import Rule
from core.words import JsonObject

Verdict = Literal["faster", "slower", "same", "unclear"]
Reason = Literal[
    "faster",  # shown faster on the deciding channel
    "case_loses",  # shown faster, but a case loses more than its gate
    "slower",
    "same",
    "no_worthwhile_gain",  # given up: a gain of min_gain is not to be expected; may be slower or same
    "looks_spent",  # could not tell with the processes allowed
    "not_deterministic",  # declared exact, but the best's own two loads differ
]
DERIVED = ("gain", "interval", "at_least", "noise", "processes")


@dataclass(frozen=True, slots=True)
class Decision:
    """The gate's answer; final, and the same again from the same rule, evidence and prior.

    `verdict` `unclear` covers two reasons: `no_worthwhile_gain` is a settled rejection that need not
    know whether the candidate is slower or same, `looks_spent` could not tell.
    `by` is the kind of the channel that decided; `objective` and `proxy` are both channels' readings.
    `blocked`: cases that lose more than their gate. `restore`: slower enough to put the best back.
    `restore_open`: a loss of min_gain on the objective is neither shown nor excluded.
    `exact`: scores are deterministic and were compared as they are.
    """

    verdict: Verdict
    accepted: bool
    reason: Reason
    by: str
    objective: Reading
    proxy: Reading | None
    cases: tuple[CaseLine, ...]
    blocked: tuple[str, ...]
    restore: bool
    restore_open: bool
    exact: bool
    rule: Rule

    @property
    def deciding(self) -> Reading:
        """The reading of the channel that decided."""
        return self.proxy if self.proxy is not None and self.proxy.kind == self.by else self.objective

    @property
    def rejected(self) -> bool:
        """Settled, and not an accept."""
        return not self.accepted and self.reason not in ("looks_spent", "not_deterministic")

    @property
    def m(self) -> float:
        return self.deciding.m

    @property
    def s(self) -> float:
        return self.deciding.s

    @property
    def se(self) -> float:
        return self.deciding.se

    @property
    def nu(self) -> float:
        return self.deciding.nu

    @property
    def p(self) -> float:
        return self.deciding.p

    @property
    def gain(self) -> float:
        """Fraction of the best, positive is better."""
        return self.deciding.gain

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the gain, worse end first."""
        return self.deciding.interval

    @property
    def at_least(self) -> float:
        return self.deciding.at_least

    @property
    def noise(self) -> float:
        """Standard deviation of one process's difference, log time."""
        return self.deciding.s

    @property
    def processes(self) -> int:
        """Processes (with one process an arm: rounds of three) that the decision rests on."""
        return len(self.objective.d)

    def to_json(self) -> JsonObject:
        """All fields, and the derived figures that a reader wants, at the top level."""
        derived = {name: getattr(self, name) for name in DERIVED}
        return to_json(self) | derived | {"interval": list(self.interval)}

    @classmethod
    def from_json(cls, stored: JsonObject) -> Decision:
        return from_json(cls, {name: value for name, value in stored.items() if name not in DERIVED})
