"""Constraints between knobs: which of the conditions that a folder states are one, and say something."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import ConfigFault
from core.words import JsonObject, Scalar
from core.workspace.config import Knob
from core.workspace.constraints import Constraint, parse
from core.workspace.infer.findings import Notes
from core.workspace.infer.literals import parsed_expression
from core.workspace.infer.sources import Folder

_MOST_COMBINATIONS = 20_000
_MOST_TEXT = 300
_CONSTRAINT_KEYS = re.compile(r"constraint|rule|require|condition", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a program said about its space when asked; `text` where that was no JSON."""

    place: str
    document: JsonObject = field(default_factory=dict)
    text: str = ""


def listed_constraints(listing: Listing) -> list[tuple[str, str]]:
    """Texts under keys such as `constraints`, plain or in objects, with their place."""
    found: list[tuple[str, str]] = []
    for key, value in listing.document.items():
        if _CONSTRAINT_KEYS.search(key) and isinstance(value, list):
            for item in value:
                texts = (
                    [v for v in item.values() if is_condition(str(v))] if isinstance(item, dict) else [item]
                )
                found += [(text, listing.place) for text in texts if isinstance(text, str)]
        elif isinstance(value, dict):
            found += listed_constraints(Listing(listing.place, value))
    return found


def written_constraints(folder: Folder, paths: Iterable[str]) -> list[tuple[str, str]]:
    """String constants that read like a condition; whether they are one over knobs is seen later."""
    found: list[tuple[str, str]] = []
    for source, tree in folder.trees(paths):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_condition(node.value):
                found.append((node.value, source.place(node)))
    return found


def is_condition(text: str) -> bool:
    """Whether `text` reads as a comparison or a join of some."""
    if not re.search(r"[<>=]|\bin\b", text) or "\\" in text or len(text) > _MOST_TEXT:
        return False
    body = parsed_expression(text)
    return isinstance(body, ast.Compare | ast.BoolOp | ast.UnaryOp)


def constraints_of(
    listed: Sequence[tuple[str, str]],
    stated: Sequence[tuple[str, str]],
    knobs: tuple[Knob, ...],
    start: Mapping[str, Scalar],
    notes: Notes,
) -> tuple[str, ...]:
    """The texts that are constraints over knobs, exclude something, and allow the start values.

    What a program lists when asked is complete; what its source states is used when it lists nothing, or
    something that is no constraint this language can say.
    """
    domains = {knob.name: knob.values for knob in knobs}
    told = [(constraint, place) for text, place in listed if (constraint := _parsed(text, domains))]
    complete = bool(listed) and len(told) == len(listed)
    read = [] if complete else [(c, place) for text, place in stated if (c := _parsed(text, domains))]
    kept: list[Constraint] = []
    for constraint, place in [*told, *read]:
        if not _says_something(constraint, domains, kept):
            continue
        if not _allows_start(constraint, start):
            notes.open(f"{place}: {constraint.text} is broken by the config itself, so it was left out")
            continue
        kept.append(constraint)
        notes.found("constraint", constraint.text, place)
    if listed and len(kept) < len(listed) and not complete:
        said = "; ".join(text for text, _ in listed if not _parsed(text, domains))
        notes.open(f"{listed[0][1]}: check that constraints say this too: {said}")
    return tuple(constraint.text for constraint in kept)


def _parsed(text: str, domains: Mapping[str, tuple[Scalar, ...]]) -> Constraint | None:
    try:
        return parse(text, frozenset(domains)) if is_condition(text) else None
    except ConfigFault:
        return None


def _says_something(
    constraint: Constraint, domains: Mapping[str, tuple[Scalar, ...]], kept: Iterable[Constraint]
) -> bool:
    """Whether it excludes any combination, and not the same ones as another constraint."""
    truths = _truths(constraint, domains)
    if not constraint.names or truths is None or all(truths):
        return False
    return not any(other.names == constraint.names and _truths(other, domains) == truths for other in kept)


def _truths(constraint: Constraint, domains: Mapping[str, tuple[Scalar, ...]]) -> list[bool] | None:
    """Whether it holds, for combinations of its knobs' values in a fixed order; None when types misfit."""
    names = sorted(constraint.names)
    product = itertools.product(*(domains[name] for name in names))
    combinations = itertools.islice(product, _MOST_COMBINATIONS)
    try:
        return [constraint.holds(dict(zip(names, values, strict=True))) for values in combinations]
    except ConfigFault:
        return None


def _allows_start(constraint: Constraint, start: Mapping[str, Scalar]) -> bool:
    if not constraint.names <= set(start):
        return True
    try:
        return constraint.holds(start)
    except ConfigFault:
        return False
