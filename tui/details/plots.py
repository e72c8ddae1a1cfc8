"""Plots of text cells: strips, bars, scatters and steps; each has an ASCII form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tui.glyphs import Glyphs
from tui.line import Line, Lines, Span
from tui.numbers import score_text
from tui.plain import padded

_AXIS_WIDTH = 10


def strip(
    values: Sequence[float], width: int, glyphs: Glyphs, span: tuple[float, float] | None = None
) -> Line:
    """How the values spread from the least to the largest, or over `span`: the more, the higher a cell.

    The cell of the median is of another role.
    """
    low, high = span or (min(values), max(values))
    counts = [0] * max(1, width)
    for value in values:
        counts[_cell(value, low, high, width)] += 1
    most = max(counts)
    top = len(glyphs.levels) - 1
    cells = [glyphs.levels[math.ceil(count / most * top)] for count in counts]
    middle = _cell(median(values), low, high, width)
    before, after = "".join(cells[:middle]), "".join(cells[middle + 1 :])
    return Span(before, "dim"), Span(cells[middle], "best"), Span(after, "dim")


def _cell(value: float, low: float, high: float, width: int) -> int:
    if high <= low:
        return width // 2
    return max(0, min(width - 1, int((value - low) / (high - low) * width)))


def bar(value: float, most: float, width: int, glyphs: Glyphs) -> str:
    """A bar as long as `value` is of `most`; at least one cell for what is not nothing."""
    if most <= 0 or value <= 0:
        return ""
    return glyphs.full * max(1, round(min(1.0, value / most) * width))


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a plot; of those in one cell the one with the highest `rank` is seen."""

    x: float
    y: float
    mark: str = "."
    role: str = "dim"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Axes:
    """What the plot's sides are called."""

    x: str
    y: str
    x_ends: tuple[str, str] | None = None  # instead of the numbers


def scatter(points: Sequence[Point], width: int, height: int, axes: Axes, glyphs: Glyphs) -> Lines:
    """Points in a frame of `width` by `height` cells, its scales at the sides; y grows upwards."""
    inner = max(4, width - _AXIS_WIDTH - 2)
    rows = max(2, height - 3)
    low_x, high_x = _ends([point.x for point in points])
    low_y, high_y = _ends([point.y for point in points])
    grid: dict[tuple[int, int], Point] = {}
    for point in sorted(points, key=lambda one: one.rank):
        row = rows - 1 - _cell(point.y, low_y, high_y, rows)
        grid[row, _cell(point.x, low_x, high_x, inner)] = point
    lines: list[Line] = [(Span(f" {axes.y}", "dim"),)]
    for row in range(rows):
        label = score_text(high_y) if row == 0 else score_text(low_y) if row == rows - 1 else ""
        lines.append((Span(f"{padded(label, _AXIS_WIDTH, right=True)} {glyphs.divider}", "dim"),
                      *_row(grid, row, inner)))  # fmt: skip
    ends = axes.x_ends or (score_text(low_x), score_text(high_x))
    foot = f"{ends[0]}{ends[1].rjust(max(1, inner - len(ends[0])))}"
    lines.append((Span(" " * (_AXIS_WIDTH + 2) + foot, "dim"),))
    lines.append((Span(" " * (_AXIS_WIDTH + 2) + axes.x, "dim"),))
    return tuple(lines)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 0.0)


def _row(grid: dict[tuple[int, int], Point], row: int, width: int) -> list[Span]:
    spans: list[Span] = []
    for column in range(width):
        point = grid.get((row, column))
        mark, role = (point.mark, point.role) if point else (" ", "")
        if spans and spans[-1].role == role:
            spans[-1] = Span(spans[-1].text + mark, role)
        else:
            spans.append(Span(mark, role))
    return spans


def steps(
    values: Sequence[tuple[float, float]], width: int, height: int, axes: Axes, glyphs: Glyphs
) -> Lines:
    """A value over time that holds until the next one: (time, value), oldest first."""
    inner = max(4, width - _AXIS_WIDTH - 2)
    first, last = values[0][0], values[-1][0]
    points = [Point(when, value, "o", "best", 2) for when, value in values]
    for (when, value), (then, _) in pairwise(values):
        cells = _cell(then, first, last, inner) - _cell(when, first, last, inner)
        points += [
            Point(when + (then - when) * step / cells, value, glyphs.rule, "dim", 1)
            for step in range(1, cells)
        ]
    return scatter(points, width, height, axes, glyphs)
