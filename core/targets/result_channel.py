"""Getting at a trial's result: from the file of its own, else from what it printed."""

from __future__ import annotations

import json
from pathlib import Path

from core.targets.json_output import last_object
from core.targets.regular_file import NotRegular, read_regular
from core.words import JsonObject

MOST_RESULT_BYTES = 64 << 20
MOST_LEVELS = 64
SCHEMA = 1


class Unbelievable(ValueError):
    """There is a result, and it cannot be this trial's or cannot be read; the message says why."""


def read_result(
    nonce: str, result_file: Path, stdout: str, file_only: bool = False
) -> tuple[JsonObject | None, str]:
    """The result and its channel (file or stdout), None when there is none; Unbelievable.

    With `file_only`, of a benchmark known to write the file, what it printed does not count.
    """
    content = _content(result_file)
    if content is None:
        result = None if file_only else last_object(stdout)
        said = None if result is None else result.get("nonce")
        if isinstance(said, str) and said != nonce:
            raise Unbelievable("wrong_nonce: the result on stdout carries another trial's nonce")
    else:
        result = _parsed(content)
        if result.get("nonce") != nonce:
            raise Unbelievable("wrong_nonce: the result file does not carry this trial's nonce")
        if result.get("schema", SCHEMA) != SCHEMA:
            raise Unbelievable(f"bad_result: the result file has schema {result['schema']!r}, not {SCHEMA}")
    if result is not None and _deeper_than(result, MOST_LEVELS):
        raise Unbelievable(f"bad_result: the result is nested deeper than {MOST_LEVELS} levels")
    return result, "stdout" if content is None else "file"


def _content(result_file: Path) -> bytes | None:
    try:
        return read_regular(result_file, MOST_RESULT_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular as error:
        raise Unbelievable(f"bad_result: the result file cannot be used: {error}") from None
    except OSError as error:
        raise Unbelievable(f"bad_result: the result file cannot be read: {error.strerror}") from None


def _parsed(content: bytes) -> JsonObject:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Unbelievable(f"bad_result: the result file is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise Unbelievable("bad_result: the result file holds no JSON object")
    return value


def _deeper_than(value: object, levels: int) -> bool:
    level: list[object] = [value]
    for _ in range(levels):
        level = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else _items(holder))
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
