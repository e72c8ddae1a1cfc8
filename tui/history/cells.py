"""A row of the history as a line: columns of fixed widths, as many as there is room for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len

from core.words import JsonObject, Status
from sessions.annotations import note_line
from sessions.history import HistoryRow, Order, Scope, Standing, View
from tui.glyphs import Glyphs
from tui.history import words
from tui.line import Line, Span
from tui.numbers import score_text, span_text
from tui.plain import ascii_only, fit, padded, plain


@dataclass(frozen=True, slots=True)
class Column:
    """`width` cells; shown from `least` cells of the whole row on."""

    key: str
    title: str
    width: int
    least: int = 0
    right: bool = False


_COLUMNS = (
    Column("id", "trial", 8, right=True),
    Column("when", "when", 5, 110),
    Column("state", "state", 9),
    Column("mode", "mode", 6, 110),
    Column("score", "score", 10, right=True),
    Column("change", "against best", 14, 60),
    Column("baseline", "baseline", 8, 76),
    Column("verdict", "verdict", 7, 60),
    Column("gain", "gain (95 %)", 19, 110),
    Column("screened", "dev", 9, 150, right=True),
    Column("decided", "final", 9, 150, right=True),
    Column("purpose", "for", 7, 170),
    Column("target", "where", 10, 170),
    Column("took", "took", 6, 130, right=True),
)
_SORTED = {Order.TIME: "id", Order.SCORE: "score", Order.CHANGE: "change", Order.DURATION: "took"}
Cell = tuple[str, str]  # text and role


@dataclass(frozen=True, slots=True)
class Look:
    """What rows are shown with."""

    scope: Scope
    standing: Standing
    glyphs: Glyphs
    now: Callable[[], float] = time.time

    @property
    def compares(self) -> bool:
        """Whether there is a baseline to compare with."""
        return self.standing.baseline is not None


def columns_for(width: int, baseline: bool = False) -> tuple[Column, ...]:
    """The columns of a row of `width` cells, with `baseline` that one's too; the note takes what is left."""
    return tuple(one for one in _COLUMNS if one.least <= width and (baseline or one.key != "baseline"))


def note_width(width: int, baseline: bool = False) -> int:
    return max(0, width - 2 - sum(column.width + 1 for column in columns_for(width, baseline)))


def header_line(width: int, view: View, look: Look) -> Line:
    """The titles; the one that the view is sorted by says so."""
    arrow = "^" if view.reverse else "v"
    titles = {"screened": look.scope.screen, "decided": look.scope.decide}
    spans = [Span("  ", "dim")]
    for column in columns_for(width, look.compares):
        title = plain(titles.get(column.key, column.title))
        chosen = _SORTED[view.order] == column.key
        text = padded(f"{title} {arrow}" if chosen else title, column.width, column.right, look.glyphs.ascii)
        spans += [Span(text, "key" if chosen else "dim"), Span(" ")]
    spans.append(
        Span(padded("what", note_width(width, look.compares), ascii_glyphs=look.glyphs.ascii), "dim")
    )
    return tuple(spans)


def row_line(row: HistoryRow, width: int, look: Look, marked: bool, here: bool) -> Line:
    """The row; `here` is where the cursor stands."""
    lead = f"{look.glyphs.cursor if here else ' '}{'*' if marked else ' '}"
    spans = [Span(lead, "mark" if marked else "key")]
    for column in columns_for(width, look.compares):
        text, role = _CELLS[column.key](row, look)
        spans += [
            Span(padded(_own(text, look), column.width, column.right, look.glyphs.ascii), role),
            Span(" "),
        ]
    room = note_width(width, look.compares)
    kept = f"{note_line(row.tags, row.note)}  " if row.note or row.tags else ""
    spans.append(Span(fit(_own(kept, look), room, look.glyphs.ascii), "mark"))
    note, role = _note(row, look)
    room -= cell_len(spans[-1].text)
    spans.append(Span(padded(_own(note, look), room, ascii_glyphs=look.glyphs.ascii), role))
    return _merged(spans)


def _merged(spans: list[Span]) -> Line:
    """The spans as few as can be: blanks look the same in every role of a row, so they join any."""
    merged = spans[:1]
    for span in spans[1:]:
        last = merged[-1]
        if not span.text:
            continue
        if span.role == last.role or not span.text.strip():
            merged[-1] = Span(last.text + span.text, last.role)
        elif not last.text.strip():
            merged[-1] = Span(last.text + span.text, span.role)
        else:
            merged.append(span)
    return tuple(merged)


def _own(text: str, look: Look) -> str:
    shown = plain(text, 400)
    return ascii_only(shown) if look.glyphs.ascii else shown


def _id(row: HistoryRow, look: Look) -> Cell:
    return f"#{row.id}", "best" if row.standing else ""


def _when(row: HistoryRow, look: Look) -> Cell:
    return words.clock_text(row.started_s, look.now()), "dim"


def _state(row: HistoryRow, look: Look) -> Cell:
    return words.state_word(row.status), words.state_role(row.status)


def _score(row: HistoryRow, look: Look) -> Cell:
    return score_text(row.score), "strong" if row.status is Status.OK else "dim"


def _change(row: HistoryRow, look: Look) -> Cell:
    if not row.comparable:
        return "other contract", "off"
    if row.change is None:
        return "-", "dim"
    if row.standing:
        return f"{words.signed_percent(row.change)} best", "best"
    word = words.change_word(row.change, look.scope.lower_is_better)
    return f"{words.signed_percent(row.change)} {word}", {"better": "ok", "worse": ""}.get(word, "")


def _baseline(row: HistoryRow, look: Look) -> Cell:
    if row.is_baseline:
        return "baseline", "mark"
    if row.against_baseline is None:
        return "-", "dim"
    better = words.change_word(row.against_baseline, look.scope.lower_is_better) == "better"
    return words.signed_percent(row.against_baseline), "ok" if better else ""


def _verdict(row: HistoryRow, look: Look) -> Cell:
    return (row.verdict or "-"), (words.verdict_role(row.verdict) if row.verdict else "dim")


def _gain(row: HistoryRow, look: Look) -> Cell:
    """The gate's gain, positive is better, and its interval."""
    if row.gain is None:
        return "-", "dim"
    if row.low is None or row.high is None or row.low == row.high:
        return f"{words.signed_percent(row.gain)} exact", ""
    return f"{words.signed_percent(row.gain)} ({100 * row.low:+.1f}..{100 * row.high:+.1f})", ""


_CELLS: dict[str, Callable[[HistoryRow, Look], Cell]] = {
    "id": _id,
    "when": _when,
    "state": _state,
    "mode": lambda row, look: (row.mode, "dim"),
    "score": _score,
    "change": _change,
    "baseline": _baseline,
    "verdict": _verdict,
    "gain": _gain,
    "screened": lambda row, look: (score_text(row.screened), "dim"),
    "decided": lambda row, look: (score_text(row.decided), "dim"),
    "purpose": lambda row, look: (row.purpose, "dim"),
    "target": lambda row, look: (row.target, "dim"),
    "took": lambda row, look: (span_text(row.duration_s or 0.0), "dim"),
}


def _note(row: HistoryRow, look: Look) -> Cell:
    """Why it is bad, else in what its configuration differs from the best's."""
    if row.status is not Status.OK and row.reason:
        return row.reason, words.state_role(row.status)
    return words.config_text(_distinct(row, look)) or ("the best" if row.standing else "as it was"), ""


def _distinct(row: HistoryRow, look: Look) -> JsonObject:
    """First what surely differs; of a knob that the best's own sweep left alone nobody knows here."""
    same, knobs = look.standing.overlay, look.scope.knobs
    names = sorted(row.overlay, key=lambda one: (one not in same, knobs.index(one) if one in knobs else -1))
    if not (row.standing or not row.comparable):
        names = [name for name in names if same.get(name) != row.overlay[name]] or names
    return {name: row.overlay[name] for name in names}
