"""What a program demands of a config: conditions whose failure it answers with an error, found in its AST.

Every condition is rewritten over knob names, negation pushed inward, and split at `and`, so that a line
such as `if cfg["split_k"] == 4 and cfg["accum"] == "scalar": errors.append(...)` becomes the requirement
`split_k != 4 or accum != 'scalar'`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from core.workspace.infer.keys import ConfigKeys
from core.workspace.infer.literals import Literals, definitions, name_of_call, scalars
from core.workspace.infer.sources import Folder, Source

_ERRORS = re.compile(
    r"err|fault|problem|issue|violation|invalid|reason|refus|illegal|broken|complain|bad", re.I
)
_REFUSES = {"exit", "fail", "error", "abort", "die", "refuse", "reject", "invalid"}
_DEMANDS = {"require", "check", "ensure", "expect", "demand", "must"}
# Functions that judge a whole config; `persistent_allowed` or `check_tma` judge one way of using it.
_JUDGES = re.compile(
    r"_*(?:is_)?(?:valid|legal|feasible|allowed|validate|check|verify|problems?|errors?|faults?|constraints?"
    r"|satisf\w+)(?:_?(?:config|plan|params|parameters|candidate|knobs|launch|point|values|settings|kernel))*"
    r"|_*(?:config|plan|params|candidate)_(?:is_)?(?:valid|legal|ok|errors?|problems?|faults?)",
    re.IGNORECASE,
)
_NOT_CONFIG = re.compile(r"case|result|report|row\b|measure")
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_CASTS = {"int", "float", "str", "bool"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition over knobs that must hold; a single comparison or an `or` of several."""

    test: ast.expr
    place: str


class _Foreign(Exception):
    """The condition depends on something that is no knob."""


def requirements(folder: Folder, paths: Iterable[str], keys: ConfigKeys) -> list[Requirement]:
    """The requirements in the Python sources among `paths`, in the order of the text."""
    found: list[Requirement] = []
    for source, tree in folder.trees(paths):
        reader = _Reader(source, folder.literals(source.path), keys)
        for name, body in _scopes(tree):
            reader.enter(name, body)
            found += list(reader.walk(body, ()))
    return found


def _scopes(tree: ast.Module) -> Iterator[tuple[str, list[ast.stmt]]]:
    yield "", tree.body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.body


class _Reader:
    """Walks the statements of one function at a time."""

    def __init__(self, source: Source, literals: Literals, keys: ConfigKeys) -> None:
        self.source = source
        self.literals = literals
        self.keys = keys
        self.judging = False
        self.terms = _Terms(literals, keys, {})

    def enter(self, name: str, body: list[ast.stmt]) -> None:
        inner = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.stmt)]
        self.terms = _Terms(self.literals, self.keys, definitions(inner) if name else definitions(body))
        self.judging = bool(_JUDGES.fullmatch(name))

    def walk(self, body: Iterable[ast.stmt], guards: tuple[ast.expr, ...]) -> Iterator[Requirement]:
        for node in body:
            if isinstance(node, ast.If):
                yield from self._if(node, guards)
            elif isinstance(node, ast.Assert):
                yield from self._demand(node.test, guards, node)
            elif isinstance(node, ast.Expr) and name_of_call(node.value) in _DEMANDS:
                yield from self._called(node.value, guards)
            elif (
                self.judging
                and isinstance(node, ast.Return)
                and isinstance(node.value, ast.BoolOp | ast.Compare)
            ):
                yield from self._demand(node.value, guards, node)
            elif guards and self._refuses(node):
                yield from self._demand(ast.Constant(False), guards, node)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for name in ("body", "orelse", "finalbody"):
                    yield from self.walk(getattr(node, name, []), guards)

    def _if(self, node: ast.If, guards: tuple[ast.expr, ...]) -> Iterator[Requirement]:
        if any(self._refuses(statement) for statement in node.body):
            yield from self._demand(ast.UnaryOp(ast.Not(), node.test), guards, node)
        else:
            yield from self.walk(node.body, (*guards, node.test))
        yield from self.walk(node.orelse, (*guards, ast.UnaryOp(ast.Not(), node.test)))

    def _called(self, call: ast.expr, guards: tuple[ast.expr, ...]) -> Iterator[Requirement]:
        first = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if isinstance(first, ast.Compare | ast.BoolOp | ast.UnaryOp):
            yield from self._demand(first, guards, call)

    def _demand(self, test: ast.expr, guards: tuple[ast.expr, ...], node: ast.AST) -> Iterator[Requirement]:
        """`test` must hold wherever all `guards` do."""
        try:
            exempt = [self.terms.rewritten(guard, negated=True) for guard in guards]
        except _Foreign:
            return
        for part in self._parts(test, negated=False):
            try:
                whole = _joined(ast.Or(), [*exempt, self.terms.rewritten(*part)])
            except _Foreign:
                continue
            if not isinstance(whole, ast.Constant):
                yield Requirement(ast.fix_missing_locations(whole), self.source.place(node))

    def _refuses(self, node: ast.stmt) -> bool:
        """Whether a statement says the config is wrong, as False or a text does in a judging function."""
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.AugAssign):
            listed = isinstance(node.value, ast.List | ast.ListComp | ast.Tuple | ast.JoinedStr)
            return listed and bool(_ERRORS.search(ast.unparse(node.target)))
        if isinstance(node, ast.Return):
            value = node.value
            said = isinstance(value, ast.JoinedStr) or (
                isinstance(value, ast.Constant) and (value.value is False or isinstance(value.value, str))
            )
            return self.judging and said
        if not isinstance(node, ast.Expr):
            return False
        if isinstance(node.value, ast.Yield):
            return self.judging
        called = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
        owner, _, last = called.rpartition(".")
        return last in _REFUSES or (last in ("append", "add", "extend") and bool(_ERRORS.search(owner)))

    def _parts(self, test: ast.expr, negated: bool) -> Iterator[tuple[ast.expr, bool]]:
        """What must hold each by itself: the operands of `and`, and of a negated `or`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from self._parts(test.operand, not negated)
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or if negated else ast.And):
            for operand in test.values:
                yield from self._parts(operand, negated)
        else:
            yield test, negated


class _Terms:
    """Rewrites expressions of one function over knob names; _Foreign for anything else."""

    def __init__(self, literals: Literals, keys: ConfigKeys, local: dict[str, ast.expr]) -> None:
        self.literals = literals
        self.keys = keys
        self.local = local

    def rewritten(self, test: ast.expr, negated: bool) -> ast.expr:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.rewritten(test.operand, not negated)
        if isinstance(test, ast.BoolOp):
            joining = ast.Or() if isinstance(test.op, ast.Or) != negated else ast.And()
            return _joined(joining, [self.rewritten(operand, negated) for operand in test.values])
        if isinstance(test, ast.Compare):
            return self._compared(test, negated)
        if negated and isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd | ast.Mod):
            return ast.Compare(self._term(test), [ast.Eq()], [ast.Constant(0)])
        term = self._term(test)
        return ast.UnaryOp(ast.Not(), term) if negated else term

    def _compared(self, test: ast.Compare, negated: bool) -> ast.expr:
        """A comparison, chains split; `"key" in config` and `is None` are decided, since keys are there."""
        operands = [test.left, *test.comparators]
        if isinstance(test.ops[0], ast.Is | ast.IsNot):
            self._term(test.left)
            return ast.Constant(isinstance(test.ops[0], ast.IsNot) != negated)
        if isinstance(test.left, ast.Constant) and isinstance(test.ops[0], ast.In | ast.NotIn):
            if not self.keys.resolve(str(test.left.value)):
                raise _Foreign
            return ast.Constant(isinstance(test.ops[0], ast.In) != negated)
        terms = [self._term(operand) for operand in operands]
        links = [
            ast.Compare(left, [_FLIPPED[type(op)]() if negated else op], [right])
            for op, left, right in zip(test.ops, terms, terms[1:], strict=False)
        ]
        return _joined(ast.Or() if negated else ast.And(), list(links))

    def _term(self, node: ast.expr) -> ast.expr:
        name = self.knob(node)
        if name:
            return ast.parse(name, mode="eval").body
        value = self.literals.value(node)
        if isinstance(value, bool | int | float | str) or scalars(value):
            written = value if isinstance(value, bool | int | float | str) else list(scalars(value))
            return ast.parse(repr(written), mode="eval").body
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self._term(node.left), node.op, self._term(node.right))
        if isinstance(node, ast.Call) and name_of_call(node) in ("min", "max", "abs") and not node.keywords:
            return ast.Call(node.func, [self._term(argument) for argument in node.args], [])
        if isinstance(node, ast.Name) and node.id in self.local and node.id not in self.literals.underway:
            return self._local(node.id)
        raise _Foreign

    def _local(self, name: str) -> ast.expr:
        self.literals.underway.append(name)
        try:
            return self._term(self.local[name])
        finally:
            self.literals.underway.remove(name)

    def knob(self, node: ast.expr) -> str:
        """The knob that an expression reads, when its name can stand in a constraint; else ""."""
        name = self._read(node, 0)
        return name if all(part.isidentifier() for part in name.split(".")) else ""

    def _read(self, node: ast.expr, depth: int) -> str:
        if isinstance(node, ast.Call) and node.args:
            key = node.args[0]
            if name_of_call(node) in _CASTS and isinstance(node.func, ast.Name):
                return self._read(key, depth)
            if name_of_call(node) == "get" and isinstance(node.func, ast.Attribute):
                return self._key(node.func.value, key)
        if isinstance(node, ast.Subscript):
            return self._key(node.value, node.slice)
        if isinstance(node, ast.Attribute):
            return self._key(node.value, ast.Constant(node.attr))
        if isinstance(node, ast.Name) and depth < 4:
            bound = self.local.get(node.id)
            return self._read(bound, depth + 1) if bound is not None else self.keys.resolve(node.id)
        return ""

    def _key(self, owner: ast.expr, key: ast.expr) -> str:
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            return ""
        text = ast.unparse(owner)
        outer = re.findall(r"\[['\"](\w+)['\"]\]", text)
        whole = ".".join([*outer, key.value])
        return "" if _NOT_CONFIG.search(text) else self.keys.resolve(whole) or self.keys.resolve(key.value)


def _joined(op: ast.boolop, parts: list[ast.expr]) -> ast.expr:
    """`parts` joined, with decided ones folded in and nested joins of the same kind made flat."""
    decisive = isinstance(op, ast.Or)
    flat: list[ast.expr] = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, bool):
            if part.value == decisive:
                return part
        elif isinstance(part, ast.BoolOp) and type(part.op) is type(op):
            flat += part.values
        else:
            flat.append(part)
    if not flat:
        return ast.Constant(not decisive)
    return flat[0] if len(flat) == 1 else ast.BoolOp(op, flat)
