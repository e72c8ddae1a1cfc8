"""Values on their way between host and clients: frozen dataclasses to JSON objects and back."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from core.words import JsonObject

T = TypeVar("T")
Reader = Callable[[Any], Any]


def to_json(value: object) -> Any:
    """A dataclass as an object, a tuple as a list, an enum as its value; anything else as it is."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): to_json(one) for name, one in value.items()}
    return value


def from_json(kind: type[T], written: object) -> T:
    """The value of type `kind` that was written; unknown fields are passed over, missing ones default.

    ValueError when it is none.
    """
    try:
        made: T = _reader(cast(Hashable, kind))(written)
        return made
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from None


@cache
def _reader(kind: Hashable) -> Reader:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _optional(get_args(kind))
    if origin is tuple:
        each = _reader(get_args(kind)[0])
        return lambda written: tuple(each(one) for one in written)
    if origin is not None and issubclass(origin, Mapping):
        of_value = _reader(get_args(kind)[1])
        return lambda written: {name: of_value(one) for name, one in written.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass_reader(kind)
    if _is_enum(kind):
        return _as_enum(kind)
    return _as_it_is(kind)


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _as_enum(kind: Any) -> Reader:
    return lambda written: kind(written)


def _optional(kinds: tuple[Any, ...]) -> Reader:
    """`X | None` for a dataclass or enum X; unions of plain values are read as they are."""
    built = [kind for kind in kinds if is_dataclass(kind) or _is_enum(kind)]
    if not built:
        return lambda written: written
    reader = _reader(cast(Hashable, built[0]))
    return lambda written: None if written is None else reader(written)


def _dataclass_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}

    def read(written: Any) -> Any:
        return kind(**{name: readers[name](one) for name, one in written.items() if name in readers})

    return read


def _as_it_is(kind: Any) -> Reader:
    if kind is float:
        return lambda written: float(written)
    if kind not in (int, str, bool):
        return lambda written: written

    def read(written: Any) -> Any:
        if not isinstance(written, kind):
            raise TypeError(f"{written!r} is not {kind.__name__}")
        return written

    return read


def named_kinds(kinds: tuple[type, ...]) -> Mapping[str, type]:
    """Types by their names, which stand in the JSON."""
    return {kind.__name__: kind for kind in kinds}


def tagged(value: object) -> JsonObject:
    """The value with its type's name."""
    return {"type": type(value).__name__, **to_json(value)}
