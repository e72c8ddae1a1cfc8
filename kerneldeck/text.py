"""Text on a terminal or in a pipe: lines, tables, numbers. Foreign text is content, never markup."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Sequence

from core.figures import figure
from core.words import JsonObject

SHORT_ID = 12
WIDE = 160  # columns when nothing says how wide the reader is


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table, as wide as the terminal allows; nothing is cut where there is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for number_, name in enumerate(columns):
        cells = [row[number_] for row in rows if row[number_] is not None]
        numeric = bool(cells) and all(isinstance(cell, int | float) for cell in cells)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(shown(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(made)


def number(value: object, unit: str = "") -> str:
    """A score in its unit: whole numbers with separators, others to six figures."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    return f"{figure(value)} {unit}".strip()


def change_text(fraction: float | None) -> str:
    """`-6.2%`: by how much a score differs; `-` where it does not compare."""
    if fraction is None:
        return "-"
    text = f"{100 * fraction:+.1f}%"
    return "+0.0%" if text == "-0.0%" else text


def measure(metric: str, unit: str) -> str:
    """A metric with its unit, unless its name says it: `best_us`, `speed (tflops)`."""
    return metric if not unit or unit in metric.split("_") else f"{metric} ({unit})"


def shown(cell: object) -> str:
    """A cell as text; `-` for what is not known."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return setting(cell)
    if isinstance(cell, float):
        return number(cell)
    if isinstance(cell, dict):
        return config_text(cell)
    return printable(str(cell))


def printable(text: str) -> str:
    """`text` on one line, without anything that would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def config_text(overlay: JsonObject) -> str:
    return printable(" ".join(f"{name}={setting(value)}" for name, value in overlay.items()) or "-")


def setting(value: object) -> str:
    """A knob's value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def line(text: str) -> None:
    """A sentence on a line; on a terminal broken between words, what follows indented."""
    text = printable(text)
    if sys.stdout.isatty():
        indent = " " * (len(text) - len(text.lstrip()) + 2)
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False,
                             break_on_hyphens=False)  # fmt: skip
    print(text)


def split_common(configs: Sequence[JsonObject]) -> tuple[JsonObject, list[JsonObject]]:
    """What all configurations set alike, and of each the rest; nothing is common to fewer than two."""
    if len(configs) < 2:
        return {}, [dict(config) for config in configs]
    first = configs[0]
    common = {
        name: value for name, value in first.items() if all(other.get(name) == value for other in configs[1:])
    }
    return common, [{n: v for n, v in config.items() if n not in common} for config in configs]


def strict_json(content: JsonObject) -> str:
    """One line of JSON that every parser takes: numbers that JSON does not know become null."""
    try:
        return json.dumps(content, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(content), allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
