"""The space of candidates that a workspace's knobs and constraints span."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.words import Overlay, Scalar
from core.workspace.config import Knob, WorkspaceConfig
from core.workspace.constraints import Constraint, parse


@dataclass(frozen=True, slots=True)
class Space:
    """Knobs with their legal values, and the constraints between them."""

    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...]

    @classmethod
    def of(cls, config: WorkspaceConfig) -> Space:
        names = frozenset(knob.name for knob in config.knobs)
        return cls(config.knobs, tuple(parse(text, names) for text in config.constraints))

    def knob(self, name: str) -> Knob | None:
        return next((knob for knob in self.knobs if knob.name == name), None)

    def raw_count(self) -> int:
        """Number of combinations before constraints."""
        return math.prod(len(knob.values) for knob in self.knobs)

    def faults(self, values: Mapping[str, Scalar]) -> list[str]:
        """A sentence for every value outside its domain and every constraint broken; empty when legal."""
        sentences = [fault for name in values if (fault := self._domain_fault(name, values[name]))]
        known = {name for name in values if self.knob(name)}
        sentences += [
            f"constraint broken: {constraint.text} ({_named(constraint, values)})"
            for constraint in self.constraints
            if constraint.names <= known and not sentences and not constraint.holds(values)
        ]
        return sentences

    def _domain_fault(self, name: str, value: Scalar) -> str:
        knob = self.knob(name)
        if knob is None:
            names = ", ".join(knob.name for knob in self.knobs) or "none are declared"
            return f"{name} is no knob of this workspace (knobs: {names})"
        if not any(same(value, legal) for legal in knob.values):
            return f"{name}: {value!r} is not one of {', '.join(map(str, knob.values))}"
        return ""

    def overlays(self, narrowed: Mapping[str, Sequence[Scalar]]) -> Iterator[Overlay]:
        """Every combination of the knobs in `narrowed`, in the order given, constraints not yet tested."""
        names = list(narrowed)
        for combination in itertools.product(*(narrowed[name] for name in names)):
            yield dict(zip(names, combination, strict=True))

    def sample(self, rng: random.Random, narrowed: Mapping[str, Sequence[Scalar]]) -> Overlay:
        """One random combination of the knobs in `narrowed`, constraints not yet tested."""
        return {name: rng.choice(list(values)) for name, values in narrowed.items()}


def same(value: Scalar, legal: Scalar) -> bool:
    """Equality of a value and a domain's member; true is not 1, and 1.0 is 1."""
    return isinstance(value, bool) == isinstance(legal, bool) and value == legal


def _named(constraint: Constraint, values: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name} = {values[name]!r}" for name in sorted(constraint.names))
