"""Reading the tables of a TOML document with types, every refusal with its line."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from core.errors import ConfigFault
from core.words import JsonObject
from core.workspace.toml_positions import line_of

_PLAIN_KEY = re.compile(r"[\w-]+")
_MOST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a document and where it comes from."""

    text: str
    place: str

    def refuse(self, path: tuple[str, ...], why: str, hint: str = "", item: str = "") -> NoReturn:
        """`item` is the one of a list that is at fault."""
        line = line_of(self.text, path, item)
        where = f"{self.place}:{line}" if line else self.place
        raise ConfigFault(f"{where}: {'.'.join(map(key_text, path))}: {why}", hint)


def key_text(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits, or deeper, than Python writes
        return "what stands there"
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


class Table:
    """One table of the document, read with types; `path` is where it stands."""

    def __init__(self, source: Source, path: tuple[str, ...], raw: JsonObject) -> None:
        self.source = source
        self.path = path
        self.raw = raw

    def refuse(self, key: str, why: str, hint: str = "", item: str = "") -> NoReturn:
        self.source.refuse((*self.path, key), why, hint, item)

    @property
    def keys(self) -> list[str]:
        return list(self.raw)

    def only(self, *known: str, hint: str = "") -> None:
        """Refuse other keys, saying which was meant, else `hint`, else which there are."""
        for key in self.raw:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                meant = f"did you mean {near[0]}?" if near else hint or f"known keys: {', '.join(known)}"
                self.refuse(key, "is not a key of this table", meant)

    def _typed(self, key: str, default: Any, required: bool, fits: Callable[[Any], bool], wanted: str) -> Any:
        if key not in self.raw:
            if required:
                self.refuse(key, "is missing", f"write {key} as {wanted}")
            return default
        value = self.raw[key]
        if not fits(value):
            self.refuse(key, f"{shown(value)} is not {wanted}")
        return value

    def text(self, key: str, default: str = "", required: bool = False) -> str:
        value: str = self._typed(key, default, required, lambda v: isinstance(v, str), "a text in quotes")
        if required and not value:
            self.refuse(key, "is empty")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str = "") -> str:
        wanted = "one of " + ", ".join(known)
        value: str = self._typed(key, default or known[0], False, lambda v: v in known, wanted)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)

        return tuple(self._typed(key, [], False, fits, "a list of texts"))

    def number(self, key: str, default: float | None) -> float | None:
        value: float | None = self._typed(key, default, False, is_finite, "a finite number")
        return value

    def flag(self, key: str) -> bool:
        value: bool = self._typed(key, False, False, lambda v: isinstance(v, bool), "true or false")
        return value

    def table(self, key: str, required: bool = False) -> Table:
        raw = self._typed(key, {}, required, lambda v: isinstance(v, dict), "a table")
        return Table(self.source, (*self.path, key), raw)
