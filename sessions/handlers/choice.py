"""Which configurations a sweep runs: those asked for, or the product of knobs, whole or a sample of it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.candidates import read_config, value_at
from core.errors import ArgumentFault, WorkFault
from core.records import FileSet
from core.space import Space
from core.words import JsonObject, Overlay, Scalar
from core.workspace.batch import top
from core.workspace.constraints import Constraint
from sessions.session import Session

ENUMERATE_UP_TO = 200_000
DRAWS_EACH = 20
STEPS_EACH, LEAST_STEPS = 50, 100_000
NAMED_KNOBS = ("num_warps", "num_stages", "block_size")
Domains = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The overlays to run, how many combinations they were chosen from, and a sentence on how."""

    overlays: list[Overlay]
    raw: int
    how: str
    batch: JsonObject = field(default_factory=dict)


async def choose(session: Session, current: FileSet, arguments: JsonObject, mode: str, seed: int) -> Choice:
    """The configurations to run in `mode`; ArgumentFault when there is none, or one is not legal."""
    engine = session.engine
    space = Space.of(engine.config)
    now = read_config(current, engine.store.blobs, engine.config.config_file)
    if arguments["configs"]:
        return _listed(space, now, arguments["configs"])
    knobs = _narrowed(space, arguments)
    held = _held(space, now)
    raw = math.prod(len(values) for values in knobs.values())
    most = arguments["max_configs"]
    if engine.config.extras.batch and raw > most:
        choice = await _by_batch(session, space, held, knobs, mode, most)
    elif raw <= ENUMERATE_UP_TO:
        choice = _enumerated(space, held, knobs, most, seed)
    else:
        chosen = _sampled(space, held, knobs, most, seed)
        how = f"{_count(chosen)} drawn from {raw:,} combinations, seed {seed}"
        choice = Choice(chosen, raw, how)
    if not choice.overlays:
        raise ArgumentFault(
            f"none of the {raw:,} combinations was found to satisfy the constraints",
            "name other values with --set, or correct the constraints in kerneldeck.toml",
        )
    return choice


def _listed(space: Space, now: JsonObject, configs: Sequence[Overlay]) -> Choice:
    for overlay in configs:
        faults = faults_of(space, now, overlay)
        if faults:
            raise ArgumentFault(f"configuration {json.dumps(overlay)}: {faults[0]}", "; ".join(faults[1:]))
    return Choice(list(configs), len(configs), f"{_count(configs)} as given")


def _count(overlays: Sequence[Overlay]) -> str:
    return f"{len(overlays):,} configuration{'' if len(overlays) == 1 else 's'}"


def faults_of(space: Space, now: JsonObject, overlay: Overlay) -> list[str]:
    """A sentence for all that makes `overlay`, set in the config `now`, no legal configuration."""
    if not space.knobs:
        return _free(now, overlay)
    values = {**_held(space, now), **overlay}
    return space.faults(overlay) or [
        f"constraint broken, with the other knobs as they are: {constraint.text}"
        for constraint in _broken(space, values)
    ]


def _free(now: JsonObject, overlay: JsonObject) -> list[str]:
    """Without declared knobs any single value may be set, of a key that the config file has."""
    keys = ", ".join(now)
    unknown = [name for name in overlay if name not in now and value_at(now, name) is None]
    nested = [name for name, value in overlay.items() if not isinstance(value, bool | int | float | str)]
    return [f"{name} is no key of the config file (keys: {keys})" for name in unknown] + [
        f"{name}: {json.dumps(overlay[name])} is not a number, a word or a truth value" for name in nested
    ]


def _narrowed(space: Space, arguments: JsonObject) -> dict[str, list[Scalar]]:
    """The knobs to cross, each with its values; all declared ones when none was named."""
    asked: dict[str, list[Scalar]] = dict(arguments["knobs"] or {})
    asked |= {name: arguments[name] for name in NAMED_KNOBS if arguments[name] is not None}
    if not space.knobs:
        raise ArgumentFault("no knobs are declared in kerneldeck.toml", "add [knobs], or give --config '{…}'")
    if not asked:
        return {knob.name: list(knob.values) for knob in space.knobs}
    for name, values in asked.items():
        if not values:
            raise ArgumentFault(f"{name}: no value is named", "name at least one, or leave the knob out")
        for value in values:
            faults = space.faults({name: value})
            if faults:
                raise ArgumentFault(faults[0])
    return {name: list(dict.fromkeys(values)) for name, values in asked.items()}


def _held(space: Space, now: JsonObject) -> dict[str, Scalar]:
    """What the config file says of the knobs; a key it lacks takes no part in constraints."""
    values = {knob.name: value_at(now, knob.name) for knob in space.knobs}
    return {name: value for name, value in values.items() if value is not None}


def _broken(space: Space, values: Mapping[str, Scalar]) -> Iterator[Constraint]:
    """The constraints that `values` break; one that names other knobs too cannot be told yet."""
    return (c for c in space.constraints if c.names <= values.keys() and not c.holds(values))


def _legal(space: Space, values: Mapping[str, Scalar]) -> bool:
    return next(_broken(space, values), None) is None


def _enumerated(space: Space, held: Overlay, knobs: Domains, most: int, seed: int) -> Choice:
    valid = [o for o in space.overlays(knobs) if _legal(space, {**held, **o})]
    raw = math.prod(len(values) for values in knobs.values())
    if len(valid) <= most:
        return Choice(valid, raw, f"{_count(valid)}, all valid ones of {raw:,} combinations")
    chosen = random.Random(seed).sample(valid, most)
    how = f"{_count(chosen)} of {len(valid):,} valid ones ({raw:,} combinations), seed {seed}"
    return Choice(chosen, raw, how)


def _sampled(space: Space, held: Overlay, knobs: Domains, most: int, seed: int) -> list[Overlay]:
    """Distinct valid combinations, the same for the same seed: drawn, and sought where few draws are."""
    rng = random.Random(seed)
    chosen: dict[tuple[Scalar, ...], Overlay] = {}
    for _ in range(most * DRAWS_EACH):
        if len(chosen) == most:
            break
        overlay = space.sample(rng, knobs)
        if _legal(space, {**held, **overlay}):
            chosen.setdefault(tuple(overlay.values()), overlay)
    if len(chosen) < most:
        for overlay in _Search(space, held, knobs, rng).found(most - len(chosen)):
            chosen.setdefault(tuple(overlay.values()), overlay)
    return list(chosen.values())


class _Search:
    """Looks for valid combinations knob by knob, going back where a constraint is broken already."""

    def __init__(self, space: Space, held: Overlay, knobs: Domains, rng: random.Random) -> None:
        self.space = space
        self.knobs = knobs
        self.fixed = {name: value for name, value in held.items() if name not in knobs}
        self.rng = rng
        self.steps = 0

    def found(self, most: int) -> Iterator[Overlay]:
        """Up to `most`, each from a start of its own; ends when the steps are spent."""
        self.steps = LEAST_STEPS + STEPS_EACH * most
        order = self._order()
        for _ in range(most):
            overlay = self._complete({}, order)
            if overlay is None:
                return
            yield {name: overlay[name] for name in self.knobs}

    def _order(self) -> list[str]:
        """Next always the knob after which most constraints can be told, so that few values are in vain."""
        order: list[str] = []
        left = self.rng.sample(list(self.knobs), len(self.knobs))
        while left:
            known = {*self.fixed, *order}
            order.append(max(left, key=lambda name: self._told(known, name)))
            left.remove(order[-1])
        return order

    def _told(self, known: set[str], name: str) -> tuple[int, int]:
        """How many constraints on `name` can be told once it is known too, and how many there are."""
        own = [constraint.names for constraint in self.space.constraints if name in constraint.names]
        return sum(names <= known | {name} for names in own), len(own)

    def _complete(self, chosen: Overlay, left: Sequence[str]) -> Overlay | None:
        if not left:
            return chosen
        name, *rest = left
        for value in self.rng.sample(list(self.knobs[name]), len(self.knobs[name])):
            self.steps -= 1
            if self.steps < 0:
                return None
            tried = {**chosen, name: value}
            if _legal(self.space, {**self.fixed, **tried}):
                complete = self._complete(tried, rest)
                if complete is not None:
                    return complete
        return None


async def _by_batch(
    session: Session, space: Space, held: Overlay, knobs: Domains, mode: str, most: int
) -> Choice:
    """The evaluator ranks the whole product; only its best are run."""
    domains = {
        knob.name: list(knobs.get(knob.name, [held.get(knob.name, knob.values[0])])) for knob in space.knobs
    }
    found = await top(session.workspace, mode, domains, most)
    try:
        overlays: list[Overlay] = [{name: plan[name] for name in knobs} for plan in found.plans]
    except (KeyError, TypeError) as error:
        raise WorkFault(f"{session.workspace.config.extras.batch}: a plan lacks {error}") from None
    how = (
        f"{_count(overlays)}, the batch evaluator's best of {found.valid:,} valid ones "
        f"({found.raw:,} combinations, {found.seconds:.1f} s)"
    )
    batch: JsonObject = {"raw": found.raw, "valid": found.valid, "seconds": found.seconds}
    return Choice(overlays, found.raw, how, batch)
