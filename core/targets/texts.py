"""Words of a trial as a person may be shown them."""

from __future__ import annotations

LONGEST = 600


def plain(value: object, longest: int = LONGEST) -> str:
    """`value` on one line, without control characters, of at most `longest` characters."""
    text = value if isinstance(value, str) else repr(value)
    text = text[: 4 * longest]
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
