"""Where a key stands in a TOML text: found with the parser itself, so that every legal spelling counts."""

from __future__ import annotations

import tomllib

from core.words import JsonObject


def line_of(text: str, path: tuple[str, ...]) -> int:
    """1-based line on which `path` (or the longest part of it that exists) is written; 0 for none.

    The text is parsed in growing prefixes of whole lines: the first prefix that holds the path ends with
    its value, and the lines it added over the last legal prefix hold the key.
    """
    lines = text.splitlines(keepends=True)
    for length in range(len(path), 0, -1):
        found = _first_line(lines, path[:length])
        if found:
            return found
    return 0


def _first_line(lines: list[str], path: tuple[str, ...]) -> int:
    legal_until = 0
    for count in range(1, len(lines) + 1):
        document = _parsed("".join(lines[:count]))
        if document is None:
            continue
        if _holds(document, path):
            return _line_with(lines, legal_until, count, path[-1])
        legal_until = count
    return 0


def _parsed(text: str) -> JsonObject | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _holds(document: JsonObject, path: tuple[str, ...]) -> bool:
    node: object = document
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return False
        node = node[key]
    return True


def _line_with(lines: list[str], start: int, stop: int, key: str) -> int:
    """The first of the lines start..stop (0-based, half open) that names `key`, as a 1-based number."""
    return next((number for number in range(start, stop) if key in lines[number]), start) + 1
