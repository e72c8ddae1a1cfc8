"""Two to four trials side by side, and the difference of two."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence

from sessions.evidence import Case, TrialEvidence
from sessions.history import HistoryRow, Scope
from tui.details.layout import Sheet, heading
from tui.details.plots import strip
from tui.history import words
from tui.line import Line, Span, line_of
from tui.numbers import score_text, span_text
from tui.plain import padded, plain

_NAMES, _MOST_COLUMN = 18, 36
_DIFF_ROLES = {"+": "ok", "-": "bad", "@": "key"}
_SHORT_ID = 12

Cell = tuple[str, str]


def compare_lines(
    rows: Sequence[HistoryRow], evidence: Sequence[TrialEvidence], scope: Scope, sheet: Sheet
) -> Iterator[Line]:
    """Facts, knobs and cases, a column a trial; what is not alike is marked with `*`."""
    columns = _Columns(len(rows), sheet)
    yield columns.line("", [(f"#{row.id}", "title") for row in rows])
    for name, cell in _FACTS:
        cells = [cell(row, scope) for row in rows]
        if name not in _IF_ANY or any(text != "-" for text, _ in cells):
            yield columns.line(name, cells)
    if not all(row.comparable for row in rows) or len({row.mode for row in rows}) > 1:
        yield line_of(("  not of one contract and mode: their scores do not compare", "warn"))
    yield ()
    yield heading("Configuration", "* where they differ")
    for name in dict.fromkeys(name for row in rows for name in row.overlay):
        values = [words.setting(row.overlay[name]) if name in row.overlay else "-" for row in rows]
        yield columns.line(name, [(value, "") for value in values], differ=len({*values}) > 1)
    yield from _cases([one.cases for one in evidence], columns)


class _Columns:
    """Names at the left, then a column of equal width for each trial."""

    def __init__(self, count: int, sheet: Sheet) -> None:
        self.sheet = sheet
        self.names = min(_NAMES, sheet.inner // 4)
        self.width = max(6, min(_MOST_COLUMN, (sheet.inner - self.names - 2) // count - 1))

    def line(self, name: str, cells: Sequence[Cell], differ: bool = False) -> Line:
        ascii_glyphs = self.sheet.glyphs.ascii
        lead = f" {'*' if differ else ' '}{padded(plain(name), self.names, ascii_glyphs=ascii_glyphs)}"
        spans = [Span(lead, "mark" if differ else "dim")]
        for text, role in cells:
            spans.append(Span(padded(plain(text, 200), self.width, ascii_glyphs=ascii_glyphs) + " ", role))
        return tuple(spans)

    def strips(self, name: str, cells: Sequence[Line]) -> Line:
        lead = f"  {padded(plain(name), self.names, ascii_glyphs=self.sheet.glyphs.ascii)}"
        spans = [Span(lead, "dim")]
        for cell in cells:
            used = sum(len(span.text) for span in cell)
            spans += [*cell, Span(" " * (self.width + 1 - used))]
        return tuple(spans)


def _change(row: HistoryRow, scope: Scope) -> Cell:
    if row.change is None:
        return "-", "dim"
    word = "best" if row.standing else words.change_word(row.change, scope.lower_is_better)
    return f"{words.signed_percent(row.change, 2)} {word}", "ok" if word in ("best", "better") else ""


def _baseline(row: HistoryRow, scope: Scope) -> Cell:
    if row.is_baseline:
        return "baseline", "mark"
    if row.against_baseline is None:
        return "-", "dim"
    word = words.change_word(row.against_baseline, scope.lower_is_better)
    return f"{words.signed_percent(row.against_baseline, 2)} {word}", "ok" if word == "better" else ""


def _gain(row: HistoryRow, scope: Scope) -> Cell:
    if row.gain is None or row.low is None or row.high is None:
        return "-", "dim"
    return f"{100 * row.gain:+.1f}% ({100 * row.low:+.1f}..{100 * row.high:+.1f})", ""


_FACTS: tuple[tuple[str, Callable[[HistoryRow, Scope], Cell]], ...] = (
    ("state", lambda row, _: (words.state_word(row.status), words.state_role(row.status))),
    ("score", lambda row, _: (score_text(row.score), "strong")),
    ("against best", _change),
    ("against baseline", _baseline),
    ("verdict", lambda row, _: (row.verdict or "-", words.verdict_role(row.verdict))),
    ("gain (95 %)", _gain),
    ("mode", lambda row, _: (row.mode, "")),
    ("where", lambda row, _: (row.target, "")),
    ("took", lambda row, _: (span_text(row.duration_s or 0.0), "")),
    ("when", lambda row, _: (words.date_text(row.started_s)[5:16], "")),
    ("candidate", lambda row, _: (row.candidate_id[:_SHORT_ID], "")),
    ("why", lambda row, _: (row.reason or "-", "")),
    ("tags", lambda row, _: (" ".join(row.tags) or "-", "")),
    ("note", lambda row, _: (row.note or "-", "")),
)
_IF_ANY = ("against baseline", "tags", "note")


def _cases(each: Sequence[Sequence[Case]], columns: _Columns) -> Iterator[Line]:
    """Of each case the times, and the strips of all trials on one scale."""
    named = [{case.name: case for case in cases} for cases in each]
    names = list(dict.fromkeys(case.name for cases in each for case in cases))
    if not names:
        return
    yield ()
    yield heading("Cases", "strips of one case have one scale")
    for name in names:
        there = [cases.get(name) for cases in named]
        key = next(
            (
                key
                for case in there
                if case
                for key in ("median_us", "best_us", "score")
                if key in case.figures
            ),
            "",
        )
        figures = [case.figures.get(key) if case and key else None for case in there]
        yield columns.line(name, [(score_text(value), "") for value in figures])
        yield from _strips(there, columns)


def _strips(there: Sequence[Case | None], columns: _Columns) -> Iterator[Line]:
    kept = [case.samples[0].kept if case and case.samples else [] for case in there]
    everything = [value for values in kept for value in values]
    if not everything:
        return
    span = min(everything), max(everything)
    glyphs = columns.sheet.glyphs
    yield columns.strips(
        f" {score_text(span[0])}..{score_text(span[1])}",
        [strip(values, columns.width, glyphs, span) if values else () for values in kept],
    )


def diff_lines(
    names: tuple[str, str],
    overlays: tuple[Mapping[str, object], Mapping[str, object]],
    texts: tuple[Mapping[str, str | None], Mapping[str, str | None]],
    sheet: Sheet,
) -> Iterator[Line]:
    """The knobs in which two candidates differ, then their files' differences."""
    yield line_of((f" {names[0]} ", "title"), ("against", "dim"), (f" {names[1]}", "title"))
    yield from _knobs(overlays, sheet)
    same = []
    for path in sorted({*texts[0], *texts[1]}):
        one, other = texts[0].get(path), texts[1].get(path)
        if one == other and one is not None:
            same.append(plain(path))
            continue
        yield ()
        yield from _file(path, one, other, path in texts[0], path in texts[1])
    if same:
        yield ()
        yield line_of((f"  the same in both: {', '.join(same)}", "dim"))


def _knobs(overlays: tuple[Mapping[str, object], Mapping[str, object]], sheet: Sheet) -> Iterator[Line]:
    one, other = overlays
    differing = [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]
    if not differing:
        return
    yield ()
    yield heading("Knobs")
    widest = min(24, max(len(name) for name in differing))
    for name in differing:
        before, after = (words.setting(each[name]) if name in each else "-" for each in overlays)
        named = padded(plain(name), widest, ascii_glyphs=sheet.glyphs.ascii)
        yield line_of((f"  {named} ", "dim"), (plain(before, 200), "bad"), " -> ", (plain(after, 200), "ok"))


def _file(path: str, one: str | None, other: str | None, in_one: bool, in_other: bool) -> Iterator[Line]:
    yield heading(plain(path))
    if not in_one or not in_other:
        yield line_of((f"  only in the {'second' if in_other else 'first'}", "warn"))
        return
    if one is None or other is None:
        yield line_of(("  no text, or not kept any more", "dim"))
        return
    # The lines before the first hunk repeat the names.
    for text in list(difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm=""))[2:]:
        yield line_of("  ", Span(plain(text.expandtabs(4)), _DIFF_ROLES.get(text[:1], "")))
