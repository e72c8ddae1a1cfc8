"""Plots over the history: screening against deciding scores with their front, and the best over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessions.evidence import CheckpointEvidence
from sessions.history import BothScores, HistoryReader
from tui.details.layout import Sheet, broken, heading
from tui.details.plots import Axes, Point, scatter, steps
from tui.history import words
from tui.line import Line, line_of
from tui.numbers import score_text
from tui.plain import padded, plain

_SHORT_ID = 12
LISTED = 20


def pareto_front(scores: Sequence[BothScores], lower_is_better: bool) -> list[BothScores]:
    """Those that no other beats in one mode without losing in the other, by their deciding score."""
    sign = 1.0 if lower_is_better else -1.0
    front: list[BothScores] = []
    for one in sorted(scores, key=lambda each: (sign * each.decided, sign * each.screened)):
        if not front or sign * one.screened < sign * front[-1].screened:
            front.append(one)
    return front


def pareto_lines(scores: Sequence[BothScores], reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    """`o` is on the front, `@` the best that stands, `.` another candidate."""
    scope = reader.scope
    screen, decide, unit = plain(scope.screen), plain(scope.decide), plain(scope.unit)
    if screen == decide:
        yield line_of((" Screening against deciding scores", "title"))
        yield line_of((f"  this workspace has one mode, {decide}: it screens and decides", "dim"))
        return
    if not scores:
        yield line_of((f" {screen} against {decide}", "title"))
        yield line_of(
            ("  no candidate has a score in both modes yet: v verifies one, a sweep's finalists too", "dim")
        )
        return
    front = pareto_front(scores, scope.lower_is_better)
    on_front = {one.candidate_id for one in front}
    yield line_of(
        (f" {screen} against {decide}", "title"),
        (f"  {len(scores):,} candidates have both; o: the front, @: the best", "dim"),
    )
    points = [_point(one, on_front, reader.standing.candidate_id) for one in scores]
    height = max(8, min(28, sheet.height - 8))
    axes = Axes(f"{screen}, {unit}".strip(", "), f"{decide}, {unit}".strip(", "))
    yield from scatter(points, sheet.inner, height, axes, sheet.glyphs)
    yield ()
    yield heading("The front", f"{screen} and {decide}, medians")
    for one in front[:LISTED]:
        yield from _listed(one, reader, sheet)


def _point(one: BothScores, front: set[str], best: str) -> Point:
    if one.candidate_id == best:
        return Point(one.screened, one.decided, "@", "best", 3)
    if one.candidate_id in front:
        return Point(one.screened, one.decided, "o", "mark", 2)
    return Point(one.screened, one.decided)


def _listed(one: BothScores, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    best = one.candidate_id == reader.standing.candidate_id
    lead = f"  {'@' if best else 'o'} {one.candidate_id[:_SHORT_ID]} "
    figures = f"{score_text(one.screened):>10} {score_text(one.decided):>10}  "
    room = sheet.inner - len(lead) - len(figures)
    config = broken(plain(words.config_text(one.overlay)), room)[0] if one.overlay else ""
    yield line_of((lead, "best" if best else ""), (figures, "strong"), (config, "dim"))


def progress_lines(kept: Sequence[CheckpointEvidence], reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    """The best over time; `kept` are the contract's bests, oldest first, one for each time it changed."""
    unit = plain(reader.scope.unit)
    yield line_of((" The best over time", "title"), (f"  {len(kept)} in this contract", "dim"))
    known = [(one.stood[0].since_s, one.score) for one in kept if one.stood and one.score is not None]
    values = [(when, score) for when, score in known if score is not None]
    if not values:
        yield line_of(("  nothing was kept yet: v verifies what the workspace holds", "dim"))
        return
    ends = words.date_text(values[0][0])[:16], words.date_text(values[-1][0])[:16]
    height = max(6, min(20, sheet.height - 8))
    axes = Axes("when it was kept", f"{plain(reader.scope.metric)} {unit}".strip(), ends)
    yield from steps(values, sheet.inner, height, axes, sheet.glyphs)
    yield ()
    before: float | None = None
    for one in kept:
        yield _kept_line(one, before, reader)
        before = one.score if one.score is not None else before


def _kept_line(one: CheckpointEvidence, before: float | None, reader: HistoryReader) -> Line:
    checkpoint = one.checkpoint
    when = words.date_text(one.stood[0].since_s if one.stood else checkpoint.created_s)
    change = ""
    if before and one.score is not None:
        fraction = one.score / before - 1.0
        change = (
            f"{words.signed_percent(fraction)} {words.change_word(fraction, reader.scope.lower_is_better)}"
        )
    stands = checkpoint.id == reader.standing.candidate_id
    verdict = one.decisions[0].verdict if one.decisions else "first"
    return line_of(
        (f"  {when}  ", "dim"), (checkpoint.id[:_SHORT_ID], "best" if stands else ""),
        (f" {score_text(one.score):>10}  ", "strong"), padded(change, 16), (plain(verdict), "dim"),
    )  # fmt: skip
