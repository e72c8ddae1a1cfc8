"""The keys of a JSON config, by the dotted names that knobs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.words import JsonObject, Scalar


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """Start values by dotted name, and the names whose values no knob can have (lists, null)."""

    start: Mapping[str, Scalar]
    unusable: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: JsonObject) -> ConfigKeys:
        start: dict[str, Scalar] = {}
        unusable: list[str] = []
        for name, value in _flattened(config, ""):
            if isinstance(value, bool | int | float | str) and name:
                start[name] = value
            else:
                unusable.append(name)
        return cls(start, tuple(unusable))

    def resolve(self, text: str) -> str:
        """The name that `text` means: a whole dotted name, or its last part where that is unique; else ""."""
        if text in self.start:
            return text
        ends = [name for name in self.start if name.rpartition(".")[2] == text]
        return ends[0] if len(ends) == 1 else ""

    def accepts(self, name: str, values: tuple[Scalar, ...]) -> bool:
        """Whether `values` are of the kind of the start value: words, numbers or truth values."""
        kind = _kind(self.start[name])
        return bool(values) and all(_kind(value) == kind for value in values)

    def holds(self, name: str, values: tuple[Scalar, ...]) -> bool:
        """Whether the start value is one of `values`."""
        return self.accepts(name, values) and self.start[name] in values


def _kind(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _flattened(table: JsonObject, prefix: str) -> Iterator[tuple[str, object]]:
    """Leaves by dotted name; a key that has a dot in it cannot be told from nesting and is no leaf."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value and "." not in key:
            yield from _flattened(value, f"{name}.")
        else:
            yield name, None if "." in key else value
