"""Text on a terminal or in a pipe: lines, tables, numbers. Foreign text is content, never markup."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from core.words import JsonObject

SHORT_ID = 12
WIDE = 160  # columns when nothing says how wide the reader is


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table, as wide as the terminal allows; nothing is cut where there is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = all(isinstance(row[columns.index(name)], int | float) for row in rows) and bool(rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(shown(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(made)


def number(value: object, unit: str = "") -> str:
    """A score in its unit: whole numbers with separators, others to six figures."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return f"{text} {unit}".strip()


def shown(cell: object) -> str:
    if cell is None or cell == "":
        return "-"
    if isinstance(cell, float):
        return number(cell)
    if isinstance(cell, dict):
        return config_text(cell)
    return "".join(c if c.isprintable() else " " for c in str(cell))


def config_text(overlay: JsonObject) -> str:
    return " ".join(f"{name}={value}" for name, value in overlay.items()) or "-"


def line(text: str) -> None:
    print("".join(c if c.isprintable() else " " for c in text))


def fields(head: str, content: JsonObject) -> None:
    """A heading and one line a field."""
    line(head)
    for name, value in content.items():
        line(f"  {name.replace('_', ' ')}: {config_text(value) if isinstance(value, dict) else value}")


def split_common(configs: Sequence[JsonObject]) -> tuple[JsonObject, list[JsonObject]]:
    """What all configurations set alike, and of each the rest; nothing is common to fewer than two."""
    if len(configs) < 2:
        return {}, [dict(config) for config in configs]
    first = configs[0]
    common = {
        name: value for name, value in first.items() if all(other.get(name) == value for other in configs[1:])
    }
    return common, [{n: v for n, v in config.items() if n not in common} for config in configs]
