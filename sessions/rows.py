"""Between the records and the columns of their tables."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Mapping
from typing import TypeAlias

from core.records import FileSet, FileVersion
from core.words import JsonObject
from sessions.database import Database, SqlValue

JsonValue: TypeAlias = JsonObject | list[JsonObject]
Clock: TypeAlias = Callable[[], float]

# Results are mostly digits of samples: higher levels cost several times as much for a few percent.
_LEVEL = 3


class Rows:
    """What the groups of tables share: the open database, and the clock for rows that carry a time."""

    def __init__(self, database: Database, clock: Clock = time.time) -> None:
        self.database = database
        self.clock = clock


def json_text(value: Mapping[str, object]) -> str:
    """Compact JSON in plain ASCII, so that any file name survives it."""
    return json.dumps(value, separators=(",", ":"))


def json_object(text: str) -> JsonObject:
    value: JsonObject = json.loads(text)
    return value


def pack(value: JsonValue) -> bytes:
    """JSON, zlib-compressed."""
    return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), _LEVEL)


def unpack_object(payload: bytes) -> JsonObject:
    value: JsonObject = json.loads(zlib.decompress(payload))
    return value


def unpack_list(payload: bytes) -> list[JsonObject]:
    value: list[JsonObject] = json.loads(zlib.decompress(payload))
    return value


def files_text(files: FileSet) -> str:
    """A file set as JSON: path to [SHA-256, executable]."""
    return json_text({path: [files[path].sha256, files[path].executable] for path in sorted(files)})


def files_of(text: str) -> dict[str, FileVersion]:
    return {path: FileVersion(sha256, executable) for path, (sha256, executable) in json.loads(text).items()}


def clean(text: str) -> str:
    """`text` with what UTF-8 cannot carry (halves of surrogate pairs, from odd file names) escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def where(conditions: Mapping[str, SqlValue]) -> tuple[str, list[SqlValue]]:
    """A WHERE clause of equalities over the conditions that are not None, and its values."""
    asked = {name: value for name, value in conditions.items() if value is not None}
    clause = " AND ".join(f"{name} = ?" for name in asked)
    return (f" WHERE {clause}" if asked else ""), list(asked.values())
