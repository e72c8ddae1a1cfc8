"""Knobs and constraints of a folder, from all that its programs say about its config's keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from core.space import same
from core.words import JsonObject
from core.workspace.config import Knob
from core.workspace.infer.domains import Domain, domains_in_json, domains_in_lines, tables_in_source
from core.workspace.infer.findings import Notes
from core.workspace.infer.keys import ConfigKeys
from core.workspace.infer.limits import bounds_of
from core.workspace.infer.requirements import requirements
from core.workspace.infer.rules import Listing, constraints_of, listed_constraints, written_constraints
from core.workspace.infer.sources import Folder


def infer_space(
    folder: Folder,
    tiers: Sequence[Sequence[str]],
    start: JsonObject,
    listings: Iterable[Listing],
    notes: Notes,
) -> tuple[tuple[Knob, ...], tuple[str, ...]]:
    """Knobs and constraint texts. `tiers` are source paths, the most telling first; listings before all."""
    keys = ConfigKeys.of(start)
    demanded = requirements(folder, [path for tier in tiers[:2] for path in tier], keys)
    bounds = bounds_of(demanded, keys)
    domains: dict[str, Domain] = {}
    for listing in listings:
        values = domains_in_json(listing.document, keys) or domains_in_lines(listing.text, keys)
        domains |= {
            name: Domain(found, listing.place) for name, found in values.items() if name not in domains
        }
    domains |= {n: Domain(b.values, b.place) for n, b in bounds.items() if b.values and n not in domains}
    for tier in tiers:
        domains = tables_in_source(folder, tier, keys) | domains
    domains |= {n: Domain(b.domain(), b.place) for n, b in bounds.items() if b.domain() and n not in domains}
    knobs = _knobs(keys, _with_sizes(keys, domains), notes)
    listed = [pair for listing in listings for pair in listed_constraints(listing)]
    stated = written_constraints(folder, tiers[0])
    stated += [(ast.unparse(requirement.test), requirement.place) for requirement in demanded]
    return knobs, constraints_of(listed, stated, knobs, keys.start, notes)


def _with_sizes(keys: ConfigKeys, domains: dict[str, Domain]) -> dict[str, Domain]:
    """A key such as `num_warps_1024` without a domain of its own takes that of `num_warps`."""
    found = dict(domains)
    for name in keys.start:
        base = re.sub(r"_\d+$", "", name)
        if name not in found and base in found:
            found[name] = Domain(found[base].values, f"{found[base].place}, as {base}")
    return found


def _knobs(keys: ConfigKeys, domains: Mapping[str, Domain], notes: Notes) -> tuple[Knob, ...]:
    """Knobs in the config's order; keys without a domain become open points."""
    knobs: list[Knob] = []
    for name in dict.fromkeys([*keys.start, *domains]):
        domain = domains.get(name)
        start = keys.start.get(name)
        if domain is None and isinstance(start, bool):
            domain = Domain((True, False), "a truth value")
        if domain is None:
            notes.open(
                f"{name}: no list of legal values was found; [knobs] needs {name} = [{start!r}, …] to tune it"
            )
            continue
        knobs.append(Knob(name, domain.values))
        notes.found(f"knob {name}", ", ".join(map(str, domain.values)), domain.place)
        if start is not None and not any(same(start, value) for value in domain.values):
            notes.open(f"{name}: the config says {start!r}, which is not among the values of {domain.place}")
    for name in keys.unusable:
        notes.open(f"{name}: no number, word or truth value, so it cannot be a knob and stays as it is")
    return tuple(knobs)
