"""Constraints of a space: a small expression language over knobs, read with `ast` and never executed.

Allowed: numbers, strings, true/false, knob names, `+ - * / // %` of numbers, comparisons (chained too),
`in` with a list, `and or not`, and min, max, abs. They mean what they mean in Python. Everything else is
refused with its place, and so is what could take unbounded time or memory.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigFault
from core.words import Scalar

Value = bool | int | float | str | tuple["Value", ...]
Evaluator = Callable[[Mapping[str, Scalar]], Value]

MOST_CHARACTERS = 20_000
MOST_LEVELS = 100


_NO_NUMBERS = (str, tuple)
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[..., bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
_FUNCTIONS: dict[str, Callable[..., Value]] = {"min": min, "max": max, "abs": abs}


@dataclass(frozen=True, slots=True)
class Constraint:
    """One parsed constraint: its text, the knobs it names, and its test."""

    text: str
    names: frozenset[str]
    evaluate: Evaluator

    def holds(self, values: Mapping[str, Scalar]) -> bool:
        """Whether `values`, which has all of `names`, satisfies it.

        ConfigFault when it cannot be computed: a word below a number, a division by zero.
        """
        try:
            return bool(self.evaluate(values))
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ConfigFault(f"constraint {self.text!r} cannot be computed: {error}") from None


def parse(text: str, knob_names: frozenset[str]) -> Constraint:
    """The constraint that `text` says; ConfigFault names the column of what is not allowed."""
    if len(text) > MOST_CHARACTERS:
        raise ConfigFault(
            f"constraint {text[:60]!r}… is longer than {MOST_CHARACTERS} characters", "split it in several"
        )
    compiler = _Compiler(text.strip(), knob_names)
    try:
        evaluate = compiler.compile(ast.parse(compiler.text, mode="eval").body)
    except SyntaxError as error:
        where = f"constraint {_shortened(text)!r}, column {error.offset or 1}"
        raise ConfigFault(f"{where}: {error.msg}") from None
    except (RecursionError, ValueError, MemoryError) as error:
        raise ConfigFault(f"constraint {text[:60]!r} cannot be read: {error}") from None
    return Constraint(compiler.text, frozenset(compiler.names), evaluate)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


class _Compiler:
    """Turns an expression's tree into nested closures, and notes the knobs it names."""

    def __init__(self, text: str, knob_names: frozenset[str]) -> None:
        self.text = text
        self.knob_names = knob_names
        self.names: set[str] = set()
        self.level = 0

    def compile(self, node: ast.expr) -> Evaluator:
        visit: Callable[[ast.expr], Evaluator] | None = getattr(self, f"_{type(node).__name__}", None)
        if visit is None:
            raise self._refusal(node, f"{type(node).__name__} is not allowed in a constraint")
        if self.level == MOST_LEVELS:
            raise self._refusal(node, f"nested deeper than {MOST_LEVELS} levels")
        self.level += 1
        evaluate = visit(node)
        self.level -= 1
        return evaluate

    def _refusal(self, node: ast.expr, why: str) -> ConfigFault:
        return ConfigFault(
            f"constraint {_shortened(self.text)!r}, column {node.col_offset + 1}: {why}",
            "write comparisons of knobs with + - * / // %, and, or, not, in [..], min, max, abs",
        )

    def _Constant(self, node: ast.Constant) -> Evaluator:
        value = node.value
        if not isinstance(value, bool | int | float | str):
            raise self._refusal(node, f"{value!r} is not a number, a word or a truth value")
        return lambda _: value

    def _Name(self, node: ast.Name) -> Evaluator:
        name = node.id
        if name in ("true", "false"):
            return lambda _: name == "true"
        if name not in self.knob_names:
            raise self._refusal(node, f"{name!r} is no knob of this workspace")
        self.names.add(name)
        return lambda values: values[name]

    def _Attribute(self, node: ast.Attribute) -> Evaluator:
        """A dotted knob name, as nested keys of a config file have it."""
        name = ast.unparse(node)
        if name not in self.knob_names:
            raise self._refusal(node, f"{name!r} is no knob of this workspace")
        self.names.add(name)
        return lambda values: values[name]

    def _List(self, node: ast.List | ast.Tuple) -> Evaluator:
        items = [self.compile(item) for item in node.elts]
        return lambda values: tuple(item(values) for item in items)

    _Tuple = _List

    def _UnaryOp(self, node: ast.UnaryOp) -> Evaluator:
        operand = self.compile(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda values: not operand(values)
        if isinstance(node.op, ast.USub):
            return lambda values: -operand(values)  # type: ignore[operator]
        raise self._refusal(node, "this sign is not allowed")

    def _BinOp(self, node: ast.BinOp) -> Evaluator:
        apply = _BINARY.get(type(node.op))
        if apply is None:
            raise self._refusal(node, "this operator is not allowed")
        left, right = self.compile(node.left), self.compile(node.right)

        def evaluate(values: Mapping[str, Scalar]) -> Value:
            one, other = left(values), right(values)
            # Repeated or formatted, a short word could fill the memory.
            if isinstance(one, _NO_NUMBERS) or isinstance(other, _NO_NUMBERS):
                raise TypeError(f"{one!r} and {other!r} are not both numbers")
            return apply(one, other)

        return evaluate

    def _BoolOp(self, node: ast.BoolOp) -> Evaluator:
        """The value that decides, as in Python: it may be compared or added to."""
        *firsts, last = [self.compile(part) for part in node.values]
        ends_it = isinstance(node.op, ast.Or)

        def evaluate(values: Mapping[str, Scalar]) -> Value:
            for part in firsts:
                value = part(values)
                if bool(value) is ends_it:
                    return value
            return last(values)

        return evaluate

    def _Compare(self, node: ast.Compare) -> Evaluator:
        operands = [self.compile(item) for item in (node.left, *node.comparators)]
        tests = [_COMPARE.get(type(op)) for op in node.ops]
        if None in tests:
            raise self._refusal(node, "this comparison is not allowed")
        links = list(zip(tests, operands, operands[1:], strict=False))
        return lambda values: all(test(a(values), b(values)) for test, a, b in links)  # type: ignore[misc]

    def _Call(self, node: ast.Call) -> Evaluator:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = _FUNCTIONS.get(name)
        if function is None or node.keywords:
            raise self._refusal(node, "only min, max and abs may be called")
        arguments = [self.compile(argument) for argument in node.args]
        return lambda values: function(*(argument(values) for argument in arguments))
