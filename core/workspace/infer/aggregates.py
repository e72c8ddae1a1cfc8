"""How cases make the score, and launches a case: from the source's expressions and a run's numbers."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence

from core.words import JsonObject
from core.workspace.infer.literals import name_of_call
from core.workspace.infer.written import Scope, own_nodes

_CASES = re.compile(r"case|result|row|report|entr|per_|record|shape|score|total", re.IGNORECASE)
_CALLS = {"sum": "sum", "fsum": "sum", "max": "max", "min": "min", "mean": "mean", "fmean": "mean",
          "average": "mean", "geometric_mean": "geomean", "gmean": "geomean"}  # fmt: skip
_WRAPPERS = {"round", "int", "float", "trunc", "floor", "ceil"}
_NUMERIC: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "max": max,
    "mean": lambda values: math.fsum(values) / len(values),
    "geomean": lambda values: math.exp(math.fsum(map(math.log, values)) / len(values)),
    "min": min,
}
_MOST_DEPTH = 6
_AGREE = 2e-3


def aggregate_of(node: ast.expr | None, scope: Scope | None, depth: int = 0) -> str:
    """The aggregate that an expression computes over cases: sum, max, mean, geomean or min; "" for none."""
    if node is None or scope is None or depth > _MOST_DEPTH:
        return ""
    if isinstance(node, ast.Name):
        return _of_name(node.id, scope, depth)
    if isinstance(node, ast.IfExp):
        return aggregate_of(node.body, scope, depth + 1) or aggregate_of(node.orelse, scope, depth + 1)
    if isinstance(node, ast.Subscript):
        return aggregate_of(node.value, scope, depth + 1) if isinstance(node.value, ast.Call) else ""
    if isinstance(node, ast.BinOp):
        left = aggregate_of(node.left, scope, depth + 1)
        return ("mean" if left == "sum" else left) if isinstance(node.op, ast.Div | ast.Mult) else ""
    return _of_call(node, scope, depth) if isinstance(node, ast.Call) else ""


def _of_name(name: str, scope: Scope, depth: int) -> str:
    """A local name: added up in a loop, or computed by what was assigned to it."""
    for node in own_nodes(scope.body):
        added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        if added and ast.unparse(node.target) == name:  # type: ignore[attr-defined]
            return "sum"
    return aggregate_of(scope.names.get(name), scope, depth + 1)


def _of_call(node: ast.Call, scope: Scope, depth: int) -> str:
    name = name_of_call(node)
    first = node.args[0] if node.args else None
    if name in _WRAPPERS:
        return aggregate_of(first, scope, depth + 1)
    if name == "exp" and re.search(r"\blog\w*\(", ast.unparse(node)):
        return "geomean"
    if name in _CALLS and first is not None:
        return _CALLS[name] if _over_cases(first, scope) else ""
    function = scope.functions.get(name)
    returned = [inner for inner in own_nodes(function) if isinstance(inner, ast.Return)] if function else []
    return next((found for item in returned if (found := aggregate_of(item.value, scope, depth + 1))), "")


def _over_cases(node: ast.expr, scope: Scope) -> bool:
    """Whether it ranges over cases and not over one's launches: it takes a field of each, or is named so."""
    value = scope.names.get(node.id, node) if isinstance(node, ast.Name) else node
    each = value.elt if isinstance(value, ast.GeneratorExp | ast.ListComp) else None
    takes_field = isinstance(each, ast.Subscript | ast.Attribute | ast.Call)
    return takes_field or bool(_CASES.search(f"{ast.unparse(node)} {ast.unparse(value)}"))


def statistic_of(node: ast.expr | None, scope: Scope | None) -> str:
    """`minimum` or `median`, as the expression of a case's number says; "" when it does not."""
    for _ in range(_MOST_DEPTH):
        if not isinstance(node, ast.Name) or scope is None:
            break
        node = scope.names.get(node.id)
    text = ast.unparse(node) if node is not None else ""
    if re.search(r"\bmin\(", text):
        return "minimum"
    return "median" if "median" in text else ""


def observed_aggregates(metric: str, result: JsonObject) -> dict[str, str]:
    """Aggregates that make a run's score of its cases' numbers, each with the key; the metric's own first."""
    score = result.get(metric)
    cases = result.get("cases")
    rows = [row for row in cases if isinstance(row, dict)] if isinstance(cases, list) else []
    if not _number(score) or len(rows) < 2:
        return {}
    keys = sorted(rows[0], key=lambda key: key != metric)
    for key in keys:
        values = [row.get(key) for row in rows]
        if all(_number(value) and value > 0 for value in values):  # type: ignore[operator]
            fits = [name for name, function in _NUMERIC.items() if _close(function(values), score)]  # type: ignore[arg-type]
            if fits:
                return dict.fromkeys(fits, key)
    return {}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _close(computed: float, score: float) -> bool:
    return math.isclose(computed, score, rel_tol=_AGREE)
