"""The words of a history's filter, as a condition on its rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.errors import ArgumentFault
from core.words import Status
from sessions.database import SqlValue

PURPOSES = ("run", "repeat", "screen", "gate", "verify", "restore", "anchor")
VERDICTS = ("faster", "slower", "same", "unclear")
_PLACES = {"mode": "mode", "status": "status", "purpose": "purpose", "target": "target", "actor": "actor"}
_BEGINNINGS = {"contract": "contract_id", "candidate": "candidate_id"}
_NUMBERS = {"sweep": "sweep_id", "decision": "decision_id"}
TAG = "tag"
FIELDS = (*_PLACES, "verdict", *_BEGINNINGS, *_NUMBERS, TAG)


@dataclass(frozen=True, slots=True)
class Condition:
    """A piece of a WHERE clause over `trials`, and its values."""

    sql: str
    values: tuple[SqlValue, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterWords:
    """What words may mean besides the fixed ones: the workspace's knobs, and its modes."""

    knobs: tuple[str, ...] = ()
    modes: tuple[str, ...] = field(default=())


def condition_of(words: str, known: FilterWords) -> list[Condition]:
    """A condition a word, all of which must hold; ArgumentFault says which word means nothing, and why."""
    return [_turned(word, known) for word in words.split()]


def _turned(word: str, known: FilterWords) -> Condition:
    if not word.startswith("!"):
        return _meant(word, known)
    if word == "!":
        raise ArgumentFault("! stands before a word that must not hold", "for example !crash")
    found = _meant(word[1:], known)
    return Condition(f"NOT COALESCE({found.sql}, 0)", found.values)


def _meant(word: str, known: FilterWords) -> Condition:
    name, equals, value = word.partition("=")
    if word.startswith(f"{TAG}:"):
        name, equals, value = word.partition(":")
    if equals:
        return _named(name, value, known)
    if word.startswith("#"):
        return Condition("id = ?", (_number(word, word[1:]),))
    lower = word.lower()
    if lower == "noted":
        return _noted("text <> '' OR tags <> ''")
    if lower == "bad":
        return Condition("status <> 'ok'")
    if lower in tuple(Status):
        return Condition("status = ?", (lower,))
    if lower in VERDICTS:
        return _verdict((lower,))
    if lower in PURPOSES:
        return Condition("purpose = ?", (lower,))
    if word in known.modes:
        return Condition("mode = ?", (word,))
    return _anywhere(word)


def _anywhere(word: str) -> Condition:
    columns = ("reason", "target", "actor", "overlay", "candidate_id")
    pattern = f"%{_escaped(word)}%"
    clause = " OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column in columns)
    noted = _noted("text LIKE ? ESCAPE '\\' OR tags LIKE ? ESCAPE '\\'", pattern, pattern)
    return Condition(f"({clause} OR {noted.sql})", (pattern,) * len(columns) + noted.values)


def _noted(sql: str, *values: SqlValue) -> Condition:
    """Asked of the few trials that somebody noted, once for the whole history."""
    return Condition(f"id IN (SELECT trial_id FROM notes WHERE {sql})", values)


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _named(name: str, value: str, known: FilterWords) -> Condition:
    choices = tuple(part for part in value.split(",") if part)
    if not choices:
        raise ArgumentFault(f"{name}= names no value", f"for example {name}=1, or {name}=1,2")
    # A knob goes before a field of the same name: it is the one that the workspace's words speak of.
    if name in known.knobs:
        return _any_of([_knob(name, choice) for choice in choices])
    if name == "verdict":
        return _verdict(choices)
    if name == TAG:
        return _any_of([_noted("instr(tags, ?) > 0", f" {choice} ") for choice in choices])
    for fields, make in _MAKERS:
        if name in fields:
            return _any_of([make(fields[name], choice) for choice in choices])
    there = ", ".join((*known.knobs, *FIELDS))
    raise ArgumentFault(f"{name} is no knob and no field of the history", f"there are: {there}")


def _any_of(conditions: list[Condition]) -> Condition:
    clause = " OR ".join(condition.sql for condition in conditions)
    return Condition(f"({clause})", tuple(value for one in conditions for value in one.values))


def _equal(column: str, value: str) -> Condition:
    return Condition(f"{column} = ?", (value,))


def _beginning(column: str, value: str) -> Condition:
    return Condition(f"{column} LIKE ? ESCAPE '\\'", (f"{_escaped(value)}%",))


def _same_number(column: str, value: str) -> Condition:
    return Condition(f"{column} = ?", (_number(value, value),))


_MAKERS: tuple[tuple[Mapping[str, str], Callable[[str, str], Condition]], ...] = (
    (_PLACES, _equal), (_BEGINNINGS, _beginning), (_NUMBERS, _same_number),
)  # fmt: skip


def _verdict(choices: tuple[str, ...]) -> Condition:
    marks = ", ".join("?" * len(choices))
    return Condition(f"decision_id IN (SELECT id FROM decisions WHERE verdict IN ({marks}))", choices)


def _knob(name: str, value: str) -> Condition:
    """Sought in the compact JSON that is stored: to parse it in each row would cost several times as much."""
    wanted = [f"{json.dumps(name)}:{literal}{end}" for literal in _literals(value) for end in ",}"]
    return Condition(" OR ".join("instr(overlay, ?) > 0" for _ in wanted), tuple(wanted))


def _literals(value: str) -> set[str]:
    """How a value that a person typed may stand in JSON: a word, and a number or truth value it reads as."""
    found = {json.dumps(value)}
    if value.lower() in ("true", "false"):
        found.add(value.lower())
    try:
        number = float(value)
    except ValueError:
        return found
    found.add(json.dumps(number))
    if number.is_integer() and abs(number) < 2**63:
        found.add(str(int(number)))
    return found


def _number(word: str, digits: str) -> int:
    if not digits.isdecimal() or len(digits) > 18:
        raise ArgumentFault(f"{word} is no number", "write digits, for example #9917")
    return int(digits)
