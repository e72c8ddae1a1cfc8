"""Checks the arguments of a call against its declaration; every face calls through here."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import NoReturn

from core.errors import ArgumentFault
from core.operations.declaration import Argument, Kind, Operation
from core.words import JsonObject


def bind(operation: Operation, given: Mapping[str, object]) -> JsonObject:
    """All arguments of `operation`, the given ones checked, the others at their defaults.

    ArgumentFault names an unknown argument, a wrong type, a bound or a choice.
    """
    known = [argument.name for argument in operation.arguments]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"arguments: {', '.join(known) or 'none'}"
            raise ArgumentFault(f"{operation.id} has no argument {name!r}", hint)
    return {argument.name: _bound(operation, argument, given) for argument in operation.arguments}


def _bound(operation: Operation, argument: Argument, given: Mapping[str, object]) -> object:
    value = given.get(argument.name)
    if value is None:
        return list(argument.default) if isinstance(argument.default, tuple) else argument.default
    fits, wanted = _KINDS[argument.kind]
    if not fits(value):
        _refuse(operation, argument, value, wanted)
    if argument.choices and value not in argument.choices:
        _refuse(operation, argument, value, f"one of {', '.join(argument.choices)}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(operation, argument, value)
    return value


def _check_bounds(operation: Operation, argument: Argument, value: float) -> None:
    low, high = argument.minimum, argument.maximum
    if low is not None and value < low:
        _refuse(operation, argument, value, f"at least {low:g}")
    if high is not None and value > high:
        _refuse(operation, argument, value, f"at most {high:g}")


def _refuse(operation: Operation, argument: Argument, value: object, wanted: str) -> NoReturn:
    raise ArgumentFault(f"{operation.id}: {argument.name}: {value!r} is not {wanted}", argument.doc)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: object) -> bool:
    """A text that can name a file: no NUL, nothing that no encoding has."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _is_object(value: object) -> bool:
    """A JSON object whose numbers are finite (1e400 reads as an infinite one)."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value) and _is_finite(value)


def _is_finite(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _is_list_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list | tuple) and all(fits(item) for item in value)


def _is_knobs(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and bool(values) and _is_list_of(_is_scalar)(values)
        for name, values in value.items()
    )


_KINDS: dict[Kind, tuple[Callable[[object], bool], str]] = {
    Kind.TEXT: (_is_text, "a text"),
    Kind.INTEGER: (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    Kind.NUMBER: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
        "a finite number",
    ),
    Kind.FLAG: (lambda value: isinstance(value, bool), "true or false"),
    Kind.TEXTS: (_is_list_of(_is_text), "a list of texts"),
    Kind.SCALARS: (_is_list_of(_is_scalar), "a list of numbers, words or truth values"),
    Kind.OBJECT: (_is_object, "a JSON object"),
    Kind.OBJECTS: (_is_list_of(_is_object), "a list of JSON objects"),
    Kind.KNOBS: (_is_knobs, "an object of lists, one a knob"),
}
