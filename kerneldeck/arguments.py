"""From words of a command line to the values that an operation's declaration wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from core.errors import ArgumentFault
from core.operations.declaration import Kind, Operation
from core.words import JsonObject

_EXAMPLE = "write it as one word for the shell: '{\"num_warps\": 4}'"


def given_values(operation: Operation, given: Mapping[str, Any]) -> dict[str, object]:
    """What was said on the command line, each value in its declared form; the rest is for `bind`."""
    values: dict[str, object] = {}
    for name, value in given.items():
        argument = operation.argument(name)
        if argument is None or value is None or value == ():
            continue
        reader = _READERS.get(argument.kind)
        values[name] = reader(value) if reader else value
    return values


def json_object(text: str) -> JsonObject:
    """The JSON object that `text` is; ArgumentFault says why it is none."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ArgumentFault(f"{_shortened(text)} is no JSON: {error}", _EXAMPLE) from None
    except RecursionError:
        raise ArgumentFault("the JSON is nested too deeply", _EXAMPLE) from None
    except ValueError as error:  # a number of thousands of digits
        raise ArgumentFault(f"{_shortened(text)} cannot be read: {error}", _EXAMPLE) from None
    if not isinstance(value, dict):
        raise ArgumentFault(f"{_shortened(text)} is no JSON object", _EXAMPLE)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ArgumentFault(f"{name} is no number that JSON knows", "write a finite one")


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _scalars(text: str) -> list[object]:
    return [_scalar(part.strip()) for part in text.split(",") if part.strip()]


def _scalar(text: str) -> object:
    """A number or truth value where the text is one in JSON, else the word itself."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _knobs(texts: Sequence[str]) -> dict[str, list[object]]:
    knobs: dict[str, list[object]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not _scalars(values):
            raise ArgumentFault(f"{text!r} names no values", "write NAME=V1,V2")
        knobs.setdefault(name.strip(), []).extend(_scalars(values))
    return knobs


_READERS: dict[Kind, Callable[[Any], object]] = {
    Kind.OBJECT: json_object,
    Kind.OBJECTS: lambda texts: [json_object(text) for text in texts],
    Kind.SCALARS: _scalars,
    Kind.KNOBS: _knobs,
    Kind.TEXTS: list,
}
