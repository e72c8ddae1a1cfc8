"""Values that Python source states literally, worked out from its AST without running anything."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from core.words import Scalar


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
_MOST_STEPS = 20_000
_MOST_ITEMS = 4096
_MOST_NAMES = 12
_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COLLECTIONS = {"list", "tuple", "set", "frozenset", "MappingProxyType", "Path", "str", "int", "float"}


class Literals:
    """Evaluates expressions over `names`, the literal definitions that are in sight."""

    def __init__(
        self, names: Mapping[str, ast.expr], underway: list[str] | None = None, steps: int = 0
    ) -> None:
        self.names = names
        self.underway = [] if underway is None else underway
        self.steps = steps

    def value(self, node: ast.expr) -> object:
        """The value as scalars, tuples (for every sequence and set) and dicts; UNKNOWN when not literal.

        A path built with `/`, `with_name` or `join` is its last literal part.
        """
        self.steps = 0
        return self._value(node)

    def _value(self, node: ast.expr) -> object:
        self.steps += 1
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None or self.steps > _MOST_STEPS:
            return UNKNOWN
        result: object = method(node)
        return result

    def _Constant(self, node: ast.Constant) -> object:
        return node.value if isinstance(node.value, bool | int | float | str | None) else UNKNOWN

    def _Name(self, node: ast.Name) -> object:
        return self._named(node.id)

    def _Attribute(self, node: ast.Attribute) -> object:
        return self._named(ast.unparse(node))

    def _named(self, name: str) -> object:
        definition = self.names.get(name)
        if definition is None or name in self.underway or len(self.underway) >= _MOST_NAMES:
            return UNKNOWN
        self.underway.append(name)
        value = self._value(definition)
        self.underway.pop()
        return value

    def _Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> object:
        items: list[object] = []
        for element in node.elts:
            inner = self._value(element.value if isinstance(element, ast.Starred) else element)
            if isinstance(element, ast.Starred):
                items += _items(inner) or [UNKNOWN]
            else:
                items.append(inner)
        return UNKNOWN if UNKNOWN in items else tuple(items)

    _List = _Set = _Tuple

    def _Dict(self, node: ast.Dict) -> object:
        """Entries whose value is unknown stay, as UNKNOWN: the others still count."""
        table: dict[object, object] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self._value(item)
            if key is None:
                table.update(value if isinstance(value, dict) else {})
                continue
            name = self._value(key)
            if isinstance(name, bool | int | float | str):
                table[name] = value
        return table

    def _UnaryOp(self, node: ast.UnaryOp) -> object:
        value = self._value(node.operand)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return -value if number and isinstance(node.op, ast.USub) else UNKNOWN  # type: ignore[operator]

    def _BinOp(self, node: ast.BinOp) -> object:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(node.op, ast.Div) and isinstance(right, str):
            return right
        if isinstance(node.op, ast.BitOr) and isinstance(left, dict) and isinstance(right, dict):
            return left | right
        if isinstance(node.op, ast.Add | ast.BitOr) and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            return UNKNOWN
        return _calculated(node.op, left, right)

    def _Call(self, node: ast.Call) -> object:
        name = _called(node.func)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        values = [self._value(argument) for argument in node.args]
        if name == "range":
            return _range(values)
        if name == "dict":
            return {keyword.arg: self._value(keyword.value) for keyword in node.keywords if keyword.arg}
        if name in ("sorted", "reversed") and values:
            return _ordered(values[0], name == "reversed")
        if name in _COLLECTIONS and len(values) == 1:
            return tuple(values[0]) if isinstance(values[0], dict) else values[0]
        return UNKNOWN

    def _method(self, node: ast.Call, function: ast.Attribute) -> object:
        if function.attr in ("with_name", "joinpath", "join") and node.args:
            return self._value(node.args[-1])
        if function.attr in ("resolve", "absolute", "as_posix", "expanduser", "copy"):
            return self._value(function.value)
        owner = self._value(function.value)
        if function.attr in ("keys", "values") and isinstance(owner, dict):
            return tuple(owner if function.attr == "keys" else owner.values())
        return UNKNOWN

    def _Subscript(self, node: ast.Subscript) -> object:
        owner, key = self._value(node.value), self._value(node.slice)
        if isinstance(owner, dict) and isinstance(key, bool | int | float | str):
            return owner.get(key, UNKNOWN)
        if isinstance(owner, tuple) and isinstance(key, int):
            return owner[key] if -len(owner) <= key < len(owner) else UNKNOWN
        return UNKNOWN

    def _ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> object:
        """One `for` over literal items, without conditions."""
        loop = node.generators[0]
        items = _items(self._value(loop.iter))
        if len(node.generators) > 1 or loop.ifs or not isinstance(loop.target, ast.Name) or items is None:
            return UNKNOWN
        values: list[object] = []
        for item in items:
            bound = {loop.target.id: ast.Constant(item)}  # type: ignore[arg-type]
            inner = Literals({**self.names, **bound}, self.underway, self.steps)
            values.append(inner._value(node.elt))
            self.steps = inner.steps
        return UNKNOWN if UNKNOWN in values else tuple(values)

    _SetComp = _GeneratorExp = _ListComp


def scalars(value: object) -> tuple[Scalar, ...]:
    """The distinct scalars of a sequence or the keys of a table, in order; empty when it is neither."""
    items = _items(value)
    if not items or not all(isinstance(item, bool | int | float | str) for item in items):
        return ()
    distinct = {(isinstance(item, bool), item): item for item in items}
    return tuple(distinct.values())  # type: ignore[arg-type]


def _items(value: object) -> list[object] | None:
    if isinstance(value, tuple | list | dict):
        return [item for item in value if item is not None][:_MOST_ITEMS]
    return None


def _range(values: list[object]) -> object:
    limits = [value for value in values if isinstance(value, int)]
    if len(limits) < len(values) or not 1 <= len(limits) <= 3 or limits[2:] == [0]:
        return UNKNOWN
    steps = range(*limits)
    return tuple(steps) if len(steps) <= _MOST_ITEMS else UNKNOWN


def _ordered(value: object, backwards: bool) -> object:
    items = _items(value)
    if items is None:
        return UNKNOWN
    try:
        return tuple(reversed(items)) if backwards else tuple(sorted(items))  # type: ignore[type-var]
    except TypeError:
        return UNKNOWN


def _calculated(op: ast.operator, left: float, right: float) -> object:
    try:
        if isinstance(op, ast.LShift | ast.Pow) and abs(right) <= 64 and abs(left) <= 1 << 20:
            return left**right if isinstance(op, ast.Pow) else int(left) << int(right)
        function = _ARITHMETIC.get(type(op))
        return function(left, right) if function else UNKNOWN
    except (ArithmeticError, ValueError):
        return UNKNOWN


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def parsed_expression(text: str) -> ast.expr | None:
    """The expression that `text` is, quietly; None when it is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def name_of_call(node: ast.AST) -> str:
    """The last part of what a call calls (`fsum` of `math.fsum(...)`); empty for anything else."""
    return _called(node.func) if isinstance(node, ast.Call) else ""


def definitions(statements: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Plain assignments among `statements`: name to expression, the last one of a name."""
    found: dict[str, ast.expr] = {}
    for statement in statements:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        elif isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value  # type: ignore[assignment]
        else:
            continue
        for target in targets:
            found.update(_bound(target, value))
    return found


def _bound(target: ast.expr, value: ast.expr) -> dict[str, ast.expr]:
    if isinstance(target, ast.Name):
        return {target.id: value}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return {name.id: item for name, item in pairs if isinstance(name, ast.Name)}
    return {}
