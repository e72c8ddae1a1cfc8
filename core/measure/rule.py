"""The settings of a decision, and the critical level they give."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.measure.errors import RuleFault

# Pocock-type factor by the number of looks: Monte Carlo of correlated looks, see `Rule.level`.
LOOK_FACTORS = {1: 1.0, 2: 0.56, 3: 0.40}
MULTIPLICITY_POWER = -0.9  # k finalists share one best, so they cost less than Bonferroni's k**-1


@dataclass(frozen=True, slots=True)
class Rule:
    """How sure a verdict must be, and how much evidence may be spent on it.

    `looks`: numbers of processes after which the gate may speak.
    `alpha`: one-sided chance of accepting an equal candidate, over all looks.
    `min_gain`: the least gain worth having and the least loss worth a restore; a difference of log time.
    `channels`: 2 when the objective and a proxy may both win, else 1.
    `finalists`: how many candidates are tested together in the same processes.
    `first_stop`: confidence of the reject-only look after one process; 0 switches that look off.
    `futility`: confidence of the bound by which a look gives a candidate up.
    `case_gate`: loss (fraction) of one case that blocks an accept; `case_gates` names exceptions.
    `rounds`, `launches`: a process's rounds, and launches of one visit.
    `max_discarded`: share of rounds thrown away above which a process is unstable.
    `restore_alpha`: one-sided chance of calling an equal kernel worth a restore, over all looks.
    `seek_restore`: a rejection waits until a restore is shown, or not to be expected (for a verification).
    `least_noise`: a process's standard deviation is never taken to be smaller (log time).
    `deterministic`: the workspace declares its scores exact; they are compared exactly.
    """

    looks: tuple[int, ...] = (2, 4, 8)
    alpha: float = 0.05
    min_gain: float = 0.005
    channels: int = 1
    finalists: int = 1
    first_stop: float = 0.90
    futility: float = 0.80
    case_gate: float = 0.05
    case_gates: tuple[tuple[str, float], ...] = ()
    rounds: int = 12
    launches: int = 25
    max_discarded: float = 0.5
    restore_alpha: float = 0.01
    seek_restore: bool = False
    least_noise: float = 0.003
    deterministic: bool = False

    def __post_init__(self) -> None:
        looks = self.looks
        if not looks or looks[0] < 2 or list(looks) != sorted(set(looks)):
            raise RuleFault(f"looks {looks} must rise and start at 2 or more: one process never accepts")
        for name in ("alpha", "restore_alpha", "futility", "max_discarded"):
            self._within(name, 0.0 < getattr(self, name) < 1.0, "between 0 and 1")
        self._within("first_stop", 0.0 <= self.first_stop < 1.0, "0 (off) or a confidence below 1")
        for name in ("min_gain", "least_noise", "case_gate"):
            self._within(name, getattr(self, name) >= 0.0, "0 or more")
        self._within("channels", self.channels in (1, 2), "1 or 2")
        for name, least in (("finalists", 1), ("launches", 1), ("rounds", 2)):
            self._within(name, getattr(self, name) >= least, f"{least} or more")

    def _within(self, name: str, holds: bool, domain: str) -> None:
        if not holds:
            raise RuleFault(f"{name} is {getattr(self, name)}", f"it must be {domain}")

    @property
    def look_factor(self) -> float:
        """f: 0.40 for three looks, 0.56 for two, 1 for one; more looks share alpha equally."""
        return LOOK_FACTORS.get(len(self.looks), 1.0 / len(self.looks))

    @property
    def level(self) -> float:
        """A look calls a channel faster (or slower) below this p: alpha · f · k^-0.9 / channels."""
        multiplicity = math.pow(self.finalists, MULTIPLICITY_POWER)
        return self.alpha * self.look_factor * multiplicity / self.channels

    @property
    def restore_level(self) -> float:
        """A look calls for a restore below this mirrored p: restore_alpha shared equally by the looks.

        A restore touches the user's files, so this bound holds however the looks hang together.
        """
        return self.restore_alpha / len(self.looks)

    @property
    def last_look(self) -> int:
        return self.looks[-1]

    def gate_of(self, case: str) -> float:
        """The loss (fraction) of `case` that blocks an accept."""
        return dict(self.case_gates).get(case, self.case_gate)


PERSON = Rule()  # apply, by a person who looks at one candidate
VERIFY = Rule(seek_restore=True)  # verify, which also asks whether the best must be put back
SWEEP = Rule(alpha=0.01)  # sweeps and campaigns, where many candidates get their chance
