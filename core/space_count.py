"""How many valid combinations a choice of values has, without listing them.

Knobs that no constraint ties together are counted apart and multiplied, so that a space of many millions
costs a few thousand steps.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.space import Space
from core.words import Overlay, Scalar
from core.workspace.constraints import Constraint

MOST_STEPS = 50_000
DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Count:
    """Combinations in all, and the valid ones among them; about so many where that is not `exact`."""

    raw: int
    valid: int
    exact: bool = True


def count_valid(
    space: Space,
    held: Mapping[str, Scalar],
    chosen: Mapping[str, Sequence[Scalar]],
    most_steps: int = MOST_STEPS,
) -> Count:
    """Count the combinations of `chosen` (knob to values), the other knobs being as `held`.

    A constraint with a knob of neither cannot be told and is left out, as a sweep does. ConfigFault when
    a constraint cannot be computed.
    """
    raw = math.prod(len(values) for values in chosen.values())
    fixed: Overlay = {name: value for name, value in held.items() if name not in chosen}
    known = {*fixed, *chosen}
    told = [constraint for constraint in space.constraints if constraint.names <= known]
    if any(not one.holds(fixed) for one in told if one.names <= fixed.keys()):
        return Count(raw, 0)
    valid, exact, budget = 1, True, _Budget(most_steps)
    for group in _groups(list(chosen), told):
        own = [one for one in told if one.names & group]
        part = _Part([name for name in chosen if name in group], own, chosen, fixed, budget)
        count, whole = part.count()
        valid, exact = valid * count, exact and whole
    return Count(raw, valid, exact)


def _groups(names: Sequence[str], constraints: Sequence[Constraint]) -> list[set[str]]:
    """Knobs that constraints tie together, directly or through others."""
    groups = [{name} for name in names]
    for constraint in constraints:
        tied = [group for group in groups if group & constraint.names]
        if tied:
            groups = [group for group in groups if not group & constraint.names]
            groups.append(set().union(*tied))
    return groups


class _Budget:
    """Steps left, for all groups together."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


class _Part:
    """One group of knobs with its constraints."""

    def __init__(
        self,
        names: Sequence[str],
        constraints: Sequence[Constraint],
        chosen: Mapping[str, Sequence[Scalar]],
        fixed: Overlay,
        budget: _Budget,
    ) -> None:
        self.names = names
        self.constraints = constraints
        self.chosen = chosen
        self.fixed = fixed
        self.budget = budget
        # Each constraint is asked once, at the knob that completes it.
        self.asked_at = [
            [
                one
                for one in constraints
                if one.names & {*names} <= {*names[: place + 1]} and name in one.names
            ]
            for place, name in enumerate(names)
        ]

    def count(self) -> tuple[int, bool]:
        """How many are valid, and whether they were all counted."""
        if not self.constraints:
            return math.prod(len(self.chosen[name]) for name in self.names), True
        count = self._from(0, dict(self.fixed))
        return (count, True) if self.budget.left >= 0 else (self._estimate(), False)

    def _from(self, place: int, values: Overlay) -> int:
        if place == len(self.names):
            return 1
        total, name = 0, self.names[place]
        for value in self.chosen[name]:
            if not self.budget.spend():
                return total
            values[name] = value
            if all(one.holds(values) for one in self.asked_at[place]):
                total += self._from(place + 1, values)
        del values[name]
        return total

    def _estimate(self) -> int:
        """By the share of valid ones among some draws, the same at each call."""
        rng = random.Random(0)
        domains = {name: list(self.chosen[name]) for name in self.names}
        hits = sum(
            self._holds({name: rng.choice(values) for name, values in domains.items()}) for _ in range(DRAWS)
        )
        return round(math.prod(map(len, domains.values())) * hits / DRAWS)

    def _holds(self, overlay: Overlay) -> bool:
        return all(one.holds({**self.fixed, **overlay}) for one in self.constraints)
