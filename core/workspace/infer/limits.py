"""Domains that follow from requirements on a single knob: memberships, lower and upper limits."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from core.words import Scalar
from core.workspace.infer.keys import ConfigKeys
from core.workspace.infer.requirements import Requirement

_MOST_IN_RANGE = 64


@dataclass(slots=True)
class Bounds:
    """What single comparisons say about one knob."""

    values: tuple[Scalar, ...] = ()
    least: int | None = None
    most: int | None = None
    power_of_two: bool = False
    place: str = ""

    def domain(self) -> tuple[Scalar, ...]:
        if self.values or self.least is None or self.most is None:
            return self.values
        if self.power_of_two:
            return tuple(1 << n for n in range(self.most.bit_length()) if self.least <= 1 << n <= self.most)
        in_range = range(self.least, self.most + 1)
        return tuple(in_range) if len(in_range) <= _MOST_IN_RANGE else ()


def bounds_of(demanded: Iterable[Requirement], keys: ConfigKeys) -> dict[str, Bounds]:
    """Memberships and limits of single knobs among the requirements."""
    found: dict[str, Bounds] = {}
    for requirement in demanded:
        for test in _conjuncts(requirement.test):
            name = ast.unparse(test.left)
            if name in keys.start:
                bounds = found.setdefault(name, Bounds(place=requirement.place))
                _narrow(bounds, test)
            elif isinstance(test.left, ast.BinOp) and isinstance(test.left.op, ast.BitAnd):
                name = ast.unparse(test.left.left)
                power = ast.unparse(test) == f"{name} & {name} - 1 == 0"
                if power and name in keys.start:
                    found.setdefault(name, Bounds(place=requirement.place)).power_of_two = True
    return {name: bounds for name, bounds in found.items() if keys.accepts(name, bounds.domain())}


def _conjuncts(test: ast.expr) -> list[ast.Compare]:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    parts = [_as_membership(part) for part in parts]
    return [_knob_first(part) for part in parts if isinstance(part, ast.Compare) and len(part.ops) == 1]


def _as_membership(test: ast.expr) -> ast.expr:
    """`x == 1 or x in [2, 3]` as `x in [1, 2, 3]`, which the last `else: raise` of a dispatch demands."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else []
    members: list[ast.expr] = []
    for part in parts:
        if not isinstance(part, ast.Compare) or len(part.ops) > 1:
            return test
        right = part.comparators[0]
        if isinstance(part.ops[0], ast.In) and isinstance(right, ast.List):
            members += right.elts
        elif isinstance(part.ops[0], ast.Eq):
            members.append(right)
        else:
            return test
    lefts = {ast.unparse(part.left): part.left for part in parts if isinstance(part, ast.Compare)}
    if len(lefts) != 1:
        return test
    return ast.Compare(next(iter(lefts.values())), [ast.In()], [ast.List(members)])


def _knob_first(test: ast.Compare) -> ast.Compare:
    """`4 <= x` as `x >= 4`."""
    mirrored = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
    op = mirrored.get(type(test.ops[0]))
    if op and isinstance(test.left, ast.Constant):
        return ast.Compare(test.comparators[0], [op()], [test.left])
    return test


def _narrow(bounds: Bounds, test: ast.Compare) -> None:
    try:
        limit = ast.literal_eval(test.comparators[0])
    except ValueError:
        return
    op = test.ops[0]
    if isinstance(op, ast.In) and isinstance(limit, list) and limit:
        bounds.values = bounds.values or tuple(limit)
    elif isinstance(limit, int) and not isinstance(limit, bool):
        if isinstance(op, ast.Gt | ast.GtE):
            bounds.least = limit + isinstance(op, ast.Gt)
        elif isinstance(op, ast.Lt | ast.LtE):
            bounds.most = limit - isinstance(op, ast.Lt)
