"""`targets.toml` as places: every fault with its line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn

from core.errors import ConfigFault
from core.targets.regular_file import read_regular
from core.targets.ssh.address import SCHEME, split_destination
from core.targets.ssh.home import expanded
from core.targets.ssh.places import MIN_FREE_MB, MOST_MB, SCRATCH_LIMIT_MB, Place, Places, checked
from core.words import JsonObject
from core.workspace.toml_positions import line_of
from core.workspace.toml_table import shown

SCHEMA: Final = 1
_MOST_BYTES: Final = 1 << 20
_MOST_GPUS: Final = 10_000
_KEYS: Final = (
    "host", "gpu", "scratch", "python", "wrapper", "environment", "key_file", "description",
    "min_free_mb", "scratch_limit_mb",
)  # fmt: skip


def read_places(path: Path | None) -> Places:
    """What `path` describes, nothing when there is no such file; ConfigFault with `path:line`."""
    if path is None:
        return Places()
    try:
        # A link to the file is the user's own; what it leads to is read like any other file.
        text = read_regular(Path(os.path.realpath(path)), _MOST_BYTES).decode("utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        return Places()
    except UnicodeDecodeError as error:
        raise ConfigFault(f"{path}: not UTF-8 at byte {error.start}", "write it in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigFault(f"{path}: {error}", "the file is not valid TOML at that place") from None
    except (ValueError, RecursionError) as error:  # more digits, or deeper, than Python reads
        raise ConfigFault(f"{path} cannot be read: {error}", "correct the file") from None
    except OSError as error:
        raise ConfigFault(f"{path} cannot be read: {error.strerror or error}") from None
    return _Reader(document, text, path).places()


class _Reader:
    """Walks the document; every refusal knows its key."""

    def __init__(self, document: JsonObject, text: str, path: Path) -> None:
        self.document = document
        self.text = text
        self.path = path

    def refuse(self, path: tuple[str, ...], why: str, hint: str = "") -> NoReturn:
        line = line_of(self.text, path)
        where = f"{self.path}:{line}" if line else str(self.path)
        raise ConfigFault(f"{where}: {'.'.join(path)}: {why}", hint)

    def places(self) -> Places:
        self._only((), self.document, ("schema", "use", "targets"))
        schema = self.document.get("schema", SCHEMA)
        if schema != SCHEMA:
            self.refuse(
                ("schema",), f"{shown(schema)} is not a schema this version reads", "update kerneldeck"
            )
        tables = self._table((), self.document, "targets")
        by_name = {name: self._place(name, tables) for name in tables}
        used = self._text((), self.document, "use")
        if used and used not in by_name:
            self.refuse(("use",), f"no target is called {used!r}", f"targets: {', '.join(by_name) or 'none'}")
        return Places(MappingProxyType(by_name), used)

    def _place(self, name: str, tables: JsonObject) -> Place:
        at = ("targets", name)
        table = self._table(("targets",), tables, name)
        self._only(at, table, _KEYS)
        host = self._text(at, table, "host")
        if not host:
            self.refuse((*at, "host"), "is missing", 'write: host = "HOST", a name of ~/.ssh/config')
        try:
            address = split_destination(host.removeprefix(SCHEME))
        except ValueError as error:
            self.refuse((*at, "host"), str(error), "write it as HOST or USER@HOST:PORT")
        place = Place(
            name,
            address,
            gpu=self._gpu(at, table),
            scratch=self._text(at, table, "scratch"),
            python=self._text(at, table, "python"),
            wrapper=self._wrapper(at, table),
            environment=self._environment(at, table),
            description=self._text(at, table, "description"),
            key_file=self._key_file(at, table),
            source=str(self.path),
            min_free_mb=self._amount(at, table, "min_free_mb", MIN_FREE_MB),
            scratch_limit_mb=self._amount(at, table, "scratch_limit_mb", SCRATCH_LIMIT_MB),
        )
        try:
            return checked(place)
        except ValueError as error:
            key, why = error.args
            self.refuse((*at, key) if key else at, why)

    def _only(self, at: tuple[str, ...], table: JsonObject, known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                self.refuse((*at, key), "is not a key of this table", f"known keys: {', '.join(known)}")

    def _typed(
        self, at: tuple[str, ...], table: JsonObject, key: str, fits: Callable[[Any], bool], wanted: str
    ) -> Any:
        value = table.get(key)
        if value is not None and not fits(value):
            self.refuse((*at, key), f"{shown(value)} is not {wanted}")
        return value

    def _text(self, at: tuple[str, ...], table: JsonObject, key: str) -> str:
        return self._typed(at, table, key, lambda v: isinstance(v, str), "a text in quotes") or ""

    def _table(self, at: tuple[str, ...], table: JsonObject, key: str) -> JsonObject:
        return self._typed(at, table, key, lambda v: isinstance(v, dict), "a table") or {}

    def _key_file(self, at: tuple[str, ...], table: JsonObject) -> Path | None:
        text = self._text(at, table, "key_file")
        try:
            return expanded(text) if text else None
        except ValueError as error:
            self.refuse((*at, "key_file"), str(error), "write the path out")

    def _gpu(self, at: tuple[str, ...], table: JsonObject) -> str:
        def fits(value: Any) -> bool:
            return isinstance(value, str) or (type(value) is int and 0 <= value < _MOST_GPUS)

        value = self._typed(at, table, "gpu", fits, "an index or a UUID in quotes")
        return "" if value is None else str(value)

    def _amount(self, at: tuple[str, ...], table: JsonObject, key: str, usual: float) -> float:
        def fits(value: Any) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST_MB

        value = self._typed(at, table, key, fits, "a number of megabytes from 0")
        return usual if value is None else float(value)

    def _wrapper(self, at: tuple[str, ...], table: JsonObject) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(word, str) for word in value)

        wanted = 'a list of words, like ["docker", "exec", "-i", "NAME"]'
        return tuple(self._typed(at, table, "wrapper", fits, wanted) or ())

    def _environment(self, at: tuple[str, ...], table: JsonObject) -> Mapping[str, str]:
        values = self._table(at, table, "environment")
        for name in values:
            self._text((*at, "environment"), values, name)
        return MappingProxyType(dict(values))
