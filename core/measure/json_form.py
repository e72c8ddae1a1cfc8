"""Frozen dataclasses to JSON and back, field by field, by their type hints."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar

from core.measure.errors import EvidenceFault
from core.words import JsonObject

Value = TypeVar("Value")


def to_json(value: Any) -> JsonObject:
    """A JSON object of a dataclass: nested dataclasses as objects, tuples as lists."""
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def from_json(kind: type[Value], stored: JsonObject) -> Value:
    """The dataclass `kind` that `to_json` wrote; EvidenceFault names a missing or unknown field."""
    if not isinstance(stored, dict):
        raise EvidenceFault(f"a stored {kind.__name__} must be a JSON object, not {type(stored).__name__}")
    hints = typing.get_type_hints(kind)
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in sorted(names ^ stored.keys()):
        state = "lacks" if name in names else "has an unknown"
        raise EvidenceFault(f"a stored {kind.__name__} {state} field {name!r}")
    return kind(**{name: _typed(hints[name], stored[name]) for name in names})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_json(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _typed(hint: Any, stored: Any) -> Any:
    """`stored` as the type hint says; knows dataclasses, tuples, optionals, floats and plain values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType or origin is typing.Union:
        (present,) = [argument for argument in arguments if argument is not type(None)]
        return None if stored is None else _typed(present, stored)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_typed(arguments[0], item) for item in stored)
        return tuple(_typed(one, item) for one, item in zip(arguments, stored, strict=True))
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast("type[Any]", hint), stored)
    return float(stored) if hint is float else stored
