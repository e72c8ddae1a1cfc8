"""Finding a result in what a benchmark printed."""

from __future__ import annotations

import json
import re

from core.words import JsonObject

# Where an object may begin: the first brace of a line, at its start or after words that are not JSON.
# An indented brace alone is the inside of some larger object, never a result.
_BEGINNING = re.compile(r"^(?:[^\s{}\[\]\"][^{}\[\]\"\n]*)?\{", re.MULTILINE)
_DECODER = json.JSONDecoder()
_MOST_ATTEMPTS = 20_000


def last_object(text: str) -> JsonObject | None:
    """The last complete JSON object that stands on lines of its own in `text`, or None.

    Inner objects of one that was cut off never count: their values would be mistaken for the result's.
    """
    found: JsonObject | None = None
    position = 0
    for _ in range(_MOST_ATTEMPTS):
        beginning = _BEGINNING.search(text, position)
        if beginning is None:
            break
        value, position = _object_at(text, beginning.end() - 1)
        found = value if value is not None else found
    return found


def _object_at(text: str, start: int) -> tuple[JsonObject | None, int]:
    """The object that begins at `start` and ends its line, and where to look on."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError):
        return None, start + 1
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if rest.strip() or not isinstance(value, dict):
        return None, end
    return value, end
