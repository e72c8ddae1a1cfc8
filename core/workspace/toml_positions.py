"""Where a key stands in a TOML text: found with the parser itself, so that every legal spelling counts."""

from __future__ import annotations

import tomllib

from core.words import JsonObject


def line_of(text: str, path: tuple[str, ...], item: str = "") -> int:
    """1-based line on which `path` (or the longest part of it that exists) is written; 0 for none.

    With `item`, the line of the same statement that holds it, where one does: a list may have many.
    """
    lines = [f"{line}\n" for line in text.split("\n")]
    for length in range(len(path), 0, -1):
        statement = _statement(lines, path[:length])
        if statement is not None:
            start, stop = statement
            key_line = _line_with(lines, path[length - 1], start, stop)
            return 1 + (_line_with(lines, item, key_line, stop) if item else key_line)
    return 0


def _statement(lines: list[str], path: tuple[str, ...]) -> tuple[int, int] | None:
    """The lines (0-based, half open) of the statement that first writes `path`; None when none does.

    A prefix of whole lines is legal TOML where a statement ends, and holds whatever a shorter one holds.
    So the statement is found by halving: no prefix between its two ends is legal.
    """
    low, high = 0, len(lines)
    if not _holds(_parsed(lines, high), path):
        return None
    while (middle := _legal_between(lines, low, high)) is not None:
        if _holds(_parsed(lines, middle), path):
            high = middle
        else:
            low = middle
    return low, high


def _legal_between(lines: list[str], low: int, high: int) -> int | None:
    """A length between the two, not either, at which the text is legal: one near the middle."""
    middle = (low + high) // 2
    counts = (*range(max(middle, low + 1), high), *range(middle - 1, low, -1))
    return next((count for count in counts if _parsed(lines, count) is not None), None)


def _parsed(lines: list[str], count: int) -> JsonObject | None:
    try:
        return tomllib.loads("".join(lines[:count]))
    except tomllib.TOMLDecodeError:
        return None


def _holds(document: JsonObject | None, path: tuple[str, ...]) -> bool:
    node: object = document
    for key in path:
        if not isinstance(node, dict) or key not in node:
            return False
        node = node[key]
    return True


def _line_with(lines: list[str], words: str, start: int, stop: int) -> int:
    """The first line from `start` (0-based) up to `stop` with `words` in it, else the first of them."""
    return next((number for number in range(start, stop) if words in lines[number]), start)
