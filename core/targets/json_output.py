"""Finding a result in what a benchmark printed."""

from __future__ import annotations

import json
import re

from core.words import JsonObject

# Where an object may begin: the first brace of a line, at its start or after words that are not JSON.
# An indented brace alone is the inside of some larger object, never a result.
_BEGINNING = re.compile(r"^(?:[^\s{}\"][^{}\"\n]*)?\{(?=\s*[\"}])", re.MULTILINE)
_LINE_BREAK = re.compile(r"\r\n?")
_NEXT_WORD = re.compile(r"\s*(.?)")
_DECODER = json.JSONDecoder()

# A failed attempt costs time in proportion to the text before it: after many, only the end is looked at.
_MOST_FAILURES = 2000
_END_CHARACTERS = 128 << 10


def last_object(text: str) -> JsonObject | None:
    """The last complete JSON object that stands on lines of its own in `text`, or None.

    Words may stand before its first brace, nothing after its last. Inner objects of one that was cut off
    never count: their values would be mistaken for the result's.
    """
    text = _LINE_BREAK.sub("\n", text)
    found, finished = _search(text, _MOST_FAILURES)
    if not finished:
        cut = max(0, len(text) - _END_CHARACTERS)
        in_end, _ = _search(text[text.find("\n", cut) + 1 :], _END_CHARACTERS)
        found = in_end or found
    return found


def _search(text: str, most_failures: int) -> tuple[JsonObject | None, bool]:
    """The last object that was found, and whether the whole text was looked at."""
    found: JsonObject | None = None
    position, failures = 0, 0
    while (beginning := _BEGINNING.search(text, position)) is not None:
        value, position = _object_at(text, beginning.end() - 1)
        if value is None:
            failures += 1
        elif not _within_something(text, beginning, position):
            found = value
        if failures > most_failures:
            return found, False
    return found, True


def _object_at(text: str, start: int) -> tuple[JsonObject | None, int]:
    """The object that begins at `start`, and where to look on: all that was still JSON is passed over."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return None, max(error.pos, start + 1)
    except (ValueError, RecursionError):  # more digits, or deeper, than Python reads
        return None, start + 1
    return (value if isinstance(value, dict) else None), end


def _within_something(text: str, beginning: re.Match[str], end: int) -> bool:
    """Whether what stands round an object says that it is part of a larger one, or no line of its own."""
    line_end = text.find("\n", end)
    if text[end : line_end if line_end >= 0 else len(text)].strip():
        return True
    after = _NEXT_WORD.match(text, end)
    if after is not None and after[1] and after[1] in ",]}":
        return True
    alone = beginning.end() - beginning.start() == 1
    return alone and _before(text, beginning.start()) in (",", "[")


def _before(text: str, end: int) -> str:
    """The last character before `end` that is no white space; empty when there is none."""
    while end > 0 and text[end - 1].isspace():
        end -= 1
    return text[max(0, end - 1) : end]
