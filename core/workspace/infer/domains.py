"""Domains of config keys: tables, constants and lists in Python source, and in JSON or text listings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.words import JsonObject, Scalar
from core.workspace.infer.keys import ConfigKeys
from core.workspace.infer.literals import Literals, definitions, name_of_call, scalars
from core.workspace.infer.sources import Folder, Source

_VALUE_KEYS = ("values", "choices", "domain", "options", "allowed")
_AFFIXES = re.compile(
    r"^(valid|allowed|legal|possible|supported|all)_|_(choices|values|domain|options|set|list)$"
)
_NO_KNOBS = {
    "modes",
    "cases",
    "constraints",
    "rules",
    "profiles",
    "seeds",
    "shapes",
    "sizes",
    "notes",
    "errors",
}
_NO_DOMAIN_CALLS = {"get", "add_argument", "option", "pop", "setdefault", "print"}
_LINE = re.compile(r"^\s*([\w.-]+)\s*[:=|]\s*(\S.*)$")


@dataclass(frozen=True, slots=True)
class Domain:
    """The legal values of one key, and where they are written."""

    values: tuple[Scalar, ...]
    place: str


def tables_in_source(folder: Folder, paths: Iterable[str], keys: ConfigKeys) -> dict[str, Domain]:
    """Domains from `paths`: the table with the most keys first, then pairs and calls, then constants."""
    found: dict[str, Domain] = {}
    tables: list[tuple[int, dict[str, Domain]]] = []
    weaker: dict[str, Domain] = {}
    for source, tree in folder.trees(paths):
        literals = folder.literals(source.path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict) or name_of_call(node) == "dict":
                table = domain_table(literals.value(node), keys)  # type: ignore[arg-type]
                tables.append((len(table), {n: Domain(v, source.place(node)) for n, v in table.items()}))
        for name, domain in [
            *_pairs(source, tree, literals, keys),
            *_constants(source, tree, literals, keys),
        ]:
            weaker.setdefault(name, domain)
    for _, domains in sorted(tables, key=lambda pair: -pair[0]):
        found = domains | found
    return weaker | found


def domain_table(value: object, keys: ConfigKeys) -> dict[str, tuple[Scalar, ...]]:
    """The domains in a table of key to values; where most of its keys are known, its others count too."""
    if not isinstance(value, Mapping):
        return {}
    flat = dict(_entries(value, keys, ""))
    known = {keys.resolve(name): values for name, values in flat.items() if keys.resolve(name)}
    known = {name: values for name, values in known.items() if keys.accepts(name, values)}
    extra = {name: values for name, values in flat.items() if not keys.resolve(name) and len(values) > 1}
    extra = {name: values for name, values in extra.items() if name.lower() not in _NO_KNOBS}
    return known | (extra if len(known) > len(extra) else {})


def _entries(
    table: Mapping[object, object], keys: ConfigKeys, prefix: str
) -> Iterator[tuple[str, tuple[Scalar, ...]]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        inner = _values_of(value)
        if inner and not (isinstance(value, Mapping) and not keys.resolve(name)):
            yield name, inner
        elif isinstance(value, Mapping):
            yield from _entries(value, keys, f"{name}.")


def _values_of(value: object) -> tuple[Scalar, ...]:
    """The list itself, the list under `values`, or the keys of a table of one number a value."""
    if isinstance(value, Mapping):
        listed = next((scalars(value[key]) for key in _VALUE_KEYS if key in value), ())
        plain = all(isinstance(item, int | float) for item in value.values())
        return listed or (scalars(dict(value)) if plain else ())
    return scalars(value)


def _pairs(
    source: Source, tree: ast.Module, literals: Literals, keys: ConfigKeys
) -> Iterator[tuple[str, Domain]]:
    """`("block_m", [16, 32])`, and calls that are given a key and a list: `check(c, "block_m", (1, 2))`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple):
            parts: list[ast.expr] = node.elts
        elif isinstance(node, ast.Call) and name_of_call(node) not in _NO_DOMAIN_CALLS:
            parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        else:
            continue
        named = [
            part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        names = [name for text in named if (name := keys.resolve(text))]
        lists = [values for part in parts if (values := _list(part, literals))]
        if len(names) == len(lists) == 1 and keys.holds(names[0], lists[0]):
            yield names[0], Domain(lists[0], source.place(node))


def _list(node: ast.expr, literals: Literals) -> tuple[Scalar, ...]:
    value = literals.value(node)
    return scalars(value) if isinstance(value, tuple) and len(value) > 1 else ()


def _constants(
    source: Source, tree: ast.Module, literals: Literals, keys: ConfigKeys
) -> Iterator[tuple[str, Domain]]:
    """`VALID_NUM_WARPS = {1, 2, 4}` and the like."""
    for constant, node in definitions(tree.body).items():
        stem = _AFFIXES.sub("", _AFFIXES.sub("", constant.lower().strip("_")))
        name = keys.resolve(stem) or (keys.resolve(stem[:-1]) if stem.endswith("s") else "")
        value = literals.value(node)
        values = scalars(value) if isinstance(value, tuple | dict) else ()
        if name and keys.holds(name, values):
            yield name, Domain(values, source.place(node))


def domains_in_json(document: object, keys: ConfigKeys) -> dict[str, tuple[Scalar, ...]]:
    """The domains of the table that knows the most keys, anywhere in `document`."""
    best: dict[str, tuple[Scalar, ...]] = {}
    for table in _tables(document):
        found = domain_table(table, keys)
        best = found if len(found) > len(best) else best
    return best


def domains_in_lines(text: str, keys: ConfigKeys) -> dict[str, tuple[Scalar, ...]]:
    """Domains in lines such as `block_m: 16, 32, 48`."""
    found: dict[str, tuple[Scalar, ...]] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        name = keys.resolve(match[1]) if match else ""
        if match and name:
            words = re.findall(r"[\w.+-]+", match[2])
            values = scalars(tuple(_scalar(word) for word in words))
            found |= {name: values} if keys.holds(name, values) else {}
    return found


def _tables(document: object) -> Iterator[JsonObject]:
    """Every object of a JSON document; a list of {name, values} counts as a table."""
    if isinstance(document, dict):
        yield document
        for value in document.values():
            yield from _tables(value)
    elif isinstance(document, list):
        rows = [row for row in document if isinstance(row, dict)]
        yield {
            str(row.get("name") or row.get("key")): row for row in rows if row.get("name") or row.get("key")
        }
        for row in rows:
            yield from _tables(row)


def _scalar(word: str) -> Scalar:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
