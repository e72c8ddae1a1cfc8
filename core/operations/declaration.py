"""How an operation is declared. Plain dataclasses: they cost `--help` nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.words import JsonObject

_NOT_GIVEN: tuple[object, ...] = (None, False, (), [])


class Kind(StrEnum):
    """What an argument holds; each face derives its own form from it."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    FLAG = "flag"
    TEXTS = "texts"
    SCALARS = "scalars"  # a list of numbers, words or truth values
    OBJECT = "object"  # a JSON object
    OBJECTS = "objects"  # a list of JSON objects
    KNOBS = "knobs"  # {knob: [values]}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `default` None means "not given". Bounds are inclusive."""

    name: str
    kind: Kind
    doc: str
    default: object = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    flag: str = ""  # the option's name on the command line, when it is not the argument's
    positional: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing a user can do.

    `id` is its name for agents, `verb` on the command line. `people_only` operations are never offered
    to agents. `long` ones run trials and can go on without whoever asked. A `control` is a word to the
    sweep that a host runs, while that runs. One that `annotates` is written at once, beside whatever runs:
    it runs nothing and decides nothing. With `changed_by` a call only looks, unless it gives one of these.
    """

    id: str
    verb: tuple[str, ...]
    doc: str
    arguments: tuple[Argument, ...] = ()
    read_only: bool = False
    people_only: bool = False
    needs_workspace: bool = True
    long: bool = False
    control: str = ""
    annotates: bool = False
    changed_by: tuple[str, ...] = ()

    def changes(self, given: Mapping[str, object]) -> bool:
        """Whether a call with these arguments changes anything."""
        if self.read_only:
            return False
        return not self.changed_by or any(given.get(name) not in _NOT_GIVEN for name in self.changed_by)

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation gives back: a JSON object (printed by --json as it is) and an exit code."""

    content: JsonObject
    exit_code: int = 0
