"""The JSON objects that programs write, as their source spells them: keys, and the expression of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from core.workspace.infer.literals import definitions, name_of_call
from core.workspace.infer.sources import Folder, Source

_TEXT_KEY = re.compile(r"\\?\"(\w+)\\?\"\s*:")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Scope:
    """A function's or module's own assignments, and the functions of its module."""

    source: Source
    body: ast.AST
    names: Mapping[str, ast.expr]
    functions: Mapping[str, ast.FunctionDef]


@dataclass(frozen=True, slots=True)
class WrittenObject:
    """One dict display with text keys; an expression is None where only the key is known."""

    place: str
    entries: Mapping[str, ast.expr | None]
    scope: Scope | None = None


def written_objects(folder: Folder, paths: Iterable[str]) -> list[WrittenObject]:
    """The objects that the programs at `paths` write; for other languages the keys quoted in the text."""
    found: list[WrittenObject] = []
    for path in paths:
        source = folder.source(path)
        if source.tree is not None:
            found += [item for scope in _scopes(source, source.tree) for item in _objects(scope)]
        elif not source.fault:
            keys = dict.fromkeys(_TEXT_KEY.findall(source.text))
            found.append(WrittenObject(path, dict.fromkeys(keys)))
    return found


def _scopes(source: Source, tree: ast.Module) -> Iterator[Scope]:
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]:
        inner = [child for child in own_nodes(node) if isinstance(child, ast.stmt)]
        yield Scope(source, node, definitions(inner), functions)


def own_nodes(body: ast.AST) -> Iterator[ast.AST]:
    """The nodes under `body` that do not belong to a function inside it."""
    for child in ast.iter_child_nodes(body):
        if not isinstance(child, _Function):
            yield child
            yield from own_nodes(child)


def _objects(scope: Scope) -> Iterator[WrittenObject]:
    later: dict[str, dict[str, ast.expr | None]] = {}
    for node in own_nodes(scope.body):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                later.setdefault(ast.unparse(target.value), {})[str(target.slice.value)] = node.value  # type: ignore[attr-defined]
    named = {id(value): name for name, value in scope.names.items()}
    for node in own_nodes(scope.body):
        entries = _entries(node, scope)
        if entries:
            yield WrittenObject(
                scope.source.place(node), entries | later.get(named.get(id(node), ""), {}), scope
            )


def _entries(node: ast.AST, scope: Scope) -> dict[str, ast.expr | None]:
    """The keys of a dict display, a `dict(...)` call or a class of fields, with their expressions."""
    if isinstance(node, ast.Dict):
        spreads = [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
        inherited = [entry for value in spreads for entry in _spread(value, scope).items()]
        return dict(inherited) | dict(_plain_entries(node))
    if isinstance(node, ast.Call) and name_of_call(node) == "dict":
        return {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    body = node.body if isinstance(node, ast.ClassDef) else []
    fields = [item.target for item in body if isinstance(item, ast.AnnAssign)]
    return {target.id: None for target in fields if isinstance(target, ast.Name)}


def _spread(value: ast.expr, scope: Scope) -> dict[str, ast.expr | None]:
    """The keys of `**name`, and of `**function(...)` without their expressions, which are another scope's."""
    if isinstance(value, ast.Name):
        return dict(_plain_entries(scope.names.get(value.id)))
    function = scope.functions.get(name_of_call(value))
    returns = [node for node in own_nodes(function) if isinstance(node, ast.Return)] if function else []
    return {key: None for node in returns for key, _ in _plain_entries(node.value)}


def _plain_entries(node: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    """The entries of a dict display whose keys are texts; none for anything else."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
