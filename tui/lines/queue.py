"""The Queue pane: counts and eta, column heads, and one line a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.words import Overlay, Scalar, Status
from core.workspace.config import Knob
from sessions.host.snapshot import PAUSED, RUN, Snapshot, SweepView
from tui.line import Line, Part, Span, line_of, row, width_of
from tui.numbers import count_text, score_text, span_text
from tui.plain import fit, padded, plain
from tui.queue_rows import ENDED, RUNNING, WAITING, QueueRow
from tui.showing import Showing

EMPTY = "empty: a adds a sweep, n runs what the workspace holds"
NOTHING_YET = (
    "Nothing ran, runs or waits.",
    "a  add a sweep: which values of which knobs, and what that will cost",
    "n  run the objective once on what the workspace holds",
    "v  verify what the workspace holds: the first one that passes becomes the best",
)
_STATE_WIDTH, _ID_WIDTH, _SCORE_WIDTH, _NOTE_WIDTH = 9, 8, 11, 10
_KNOB_LEAST, _KNOB_MOST = 3, 11
_FEWEST_TIMED = 3
_STATUS_WORDS = {Status.COMPILE_ERROR: "COMPILE"}
STATUS_ROLES = {
    Status.OK: "ok", Status.INFRA: "warn", Status.UNSTABLE: "warn", Status.CANCELLED: "dim",
}  # fmt: skip


def status_word(status: Status | None) -> str:
    """The status as the screen shows it, in at most nine letters."""
    return "RUN" if status is None else _STATUS_WORDS.get(status, status.upper())


def queue_head(showing: Showing, width: int) -> Line:
    """One line: counts, what is going on, eta with its spread, follow."""
    sweep, snapshot = showing.sweep, showing.snapshot
    if sweep is None or (sweep.ended and snapshot.work is not None):
        return row(_without_sweep(snapshot), width, "  ", showing.glyphs.ascii)
    parts = [Part(_counts(sweep), 0), Part(_doing(snapshot, sweep), 1, cuts=True)]
    if not sweep.ended:
        parts.append(Part(line_of(eta_text(sweep, showing.glyphs.plus_minus)), 2))
        parts.append(Part(line_of((f"follow {'on' if showing.follow else 'off'}", "dim")), 3))
    if showing.hide_bad:
        parts.append(Part(line_of(("bad hidden", "dim")), 4))
    return row(parts, width, "  ", showing.glyphs.ascii)


def _without_sweep(snapshot: Snapshot) -> list[Part]:
    work = snapshot.work
    if work is None:
        return [Part(line_of((EMPTY, "dim")))]
    waits = f"{len(snapshot.queue)} wait" if snapshot.queue else ""
    return [
        Part(line_of((plain(work.command or work.operation), "run"), f" by {plain(work.actor)}"), 0),
        Part(_gate(snapshot), 1),
        Part(line_of((waits, "wait")), 2),
    ]


def _counts(sweep: SweepView) -> Line:
    good = sweep.counts.get(Status.OK.value, 0)
    cancelled = sweep.counts.get(Status.CANCELLED.value, 0)
    bad = sum(sweep.counts.values()) - good - cancelled
    told = [
        (f"{count_text(good)} ok", "ok"), (f"{count_text(bad)} bad" if bad else "", "bad"),
        (f"{cancelled} cancelled" if cancelled else "", "dim"), ("1 run" if _runs(sweep) else "", "run"),
        (f"{count_text(len(sweep.waiting))} wait" if sweep.waiting else "", "wait"),
    ]  # fmt: skip
    spans = [Span(text, role) for text, role in told if text]
    return tuple(one for span in spans for one in (Span("  "), span))[1:]


def _runs(sweep: SweepView) -> bool:
    """A sweep that is not paused has always one out; the moment between two is not worth a repaint."""
    return bool(sweep.running) or sweep.state == RUN


def _doing(snapshot: Snapshot, sweep: SweepView) -> Line:
    if sweep.ended:
        role = {"DONE": "ok", "FAILED": "bad"}.get(sweep.state, "warn")
        return line_of((sweep.state, role), f" {plain(sweep.reason)}" if sweep.reason else "")
    if sweep.state == PAUSED:
        runs = "; what runs goes on" if snapshot.trial else ""
        return line_of((f"PAUSED by {plain(sweep.paused_by)}{runs}", "warn"))
    return _gate(snapshot) if sweep.phase not in ("", "screen") else ()


def _gate(snapshot: Snapshot) -> Line:
    gate = snapshot.gate
    if gate is None:
        return ()
    verdict = f", {gate.verdict}" if gate.verdict else ""
    return line_of((f"gate {gate.processes}/{gate.most} on {gate.candidate_id[:_ID_WIDTH]}{verdict}", "run"))


def eta_text(sweep: SweepView, plus_minus: str) -> str:
    """How long the waiting ones will take, with the spread that the times so far allow."""
    left = len(sweep.waiting) + bool(sweep.running)
    if not left or sweep.state == PAUSED:
        return ""
    if sweep.timed < _FEWEST_TIMED:
        return "eta after 3 trials"
    mean_s = sweep.timed_s / sweep.timed
    variance = max(0.0, sweep.timed_s2 / sweep.timed - mean_s**2) * sweep.timed / (sweep.timed - 1)
    spread_s = 2.0 * math.sqrt(left * variance + left**2 * variance / sweep.timed)
    return f"eta {span_text(left * mean_s)} {plus_minus}{span_text(spread_s)}"


@dataclass(frozen=True, slots=True)
class Columns:
    """Which knobs have a column, each as wide as its name and values need."""

    knobs: tuple[tuple[str, int], ...] = ()
    hidden: int = 0


def columns_of(knobs: Sequence[Knob], overlays: Iterable[Overlay], width: int, first: int = 0) -> Columns:
    """The knobs that differ between `overlays` first, from number `first` on, as many as `width` takes."""
    seen: dict[str, set[Scalar]] = {}
    for overlay in overlays:
        for name, value in overlay.items():
            seen.setdefault(name, set()).add(value)
    named = [knob for knob in knobs if knob.name in seen] or list(knobs)
    ordered = sorted(named, key=lambda knob: len(seen.get(knob.name, ())) < 2)[first:]
    room = width - _STATE_WIDTH - _ID_WIDTH - _SCORE_WIDTH - _NOTE_WIDTH - 6
    kept: list[tuple[str, int]] = []
    for knob in ordered:
        needs = max([len(knob.name), *(len(str(value)) for value in knob.values)])
        needs = min(max(needs, _KNOB_LEAST), _KNOB_MOST)
        if needs + 1 > room:
            break
        room -= needs + 1
        kept.append((knob.name, needs))
    return Columns(tuple(kept), len(ordered) - len(kept))


def queue_columns(columns: Columns, unit: str, width: int) -> Line:
    """The head of the columns."""
    more = f"+{columns.hidden} knobs" if columns.hidden else ""
    names = "".join(f" {padded(plain(name), size, right=True)}" for name, size in columns.knobs)
    score = plain(unit) or "score"
    text = (
        f"  {padded('state', _STATE_WIDTH)} {padded('id', _ID_WIDTH)}{names}"
        f" {padded(score, _SCORE_WIDTH, right=True)}  {more}"
    )
    return line_of((padded(text, width), "dim"))


def queue_line(
    shown: QueueRow, held: Mapping[str, Scalar], columns: Columns, showing: Showing, width: int
) -> Line:
    """One row: state, id, knobs (`held` by its candidate), score, note."""
    word, role = _state(shown, showing)
    score = shown.trial.score if shown.trial is not None and shown.kind == ENDED else None
    told = padded("" if score is None else score_text(score), _SCORE_WIDTH, right=True)
    is_best = _is_best(shown, showing)
    left = line_of(
        "  ", (padded(word, _STATE_WIDTH), role), (f" {padded(_id(shown), _ID_WIDTH)}", "dim"),
        _knob_values(held if shown.candidate_id else {}, columns, showing),
        (f" {told}", "best" if is_best else ""),
    )  # fmt: skip
    note = fit(_note(shown, showing, is_best), max(0, width - width_of(left) - 2), showing.glyphs.ascii)
    return (*left, Span(f"  {note}", "best" if is_best else "dim"))


def _knob_values(held: Mapping[str, Scalar], columns: Columns, showing: Showing) -> str:
    """Never what the files say now: they may have changed since."""
    ascii_glyphs = showing.glyphs.ascii
    texts = [(plain(held.get(name, "")), size) for name, size in columns.knobs]
    return "".join(f" {padded(text, size, right=True, ascii_glyphs=ascii_glyphs)}" for text, size in texts)


def _is_best(shown: QueueRow, showing: Showing) -> bool:
    sweep, trial = showing.sweep, shown.trial
    if sweep is None or trial is None or shown.kind != ENDED or trial.purpose != "screen":
        return False
    return shown.candidate_id == sweep.best_candidate and trial.sweep_id == sweep.id


def _state(shown: QueueRow, showing: Showing) -> tuple[str, str]:
    if shown.kind == RUNNING:
        return "RUN", "run"
    if shown.kind == ENDED and shown.trial is not None and shown.trial.status is not None:
        return status_word(shown.trial.status), STATUS_ROLES.get(shown.trial.status, "bad")
    paused = showing.sweep is not None and showing.sweep.state == PAUSED
    return ("HELD", "warn") if shown.kind == WAITING and paused else ("WAIT", "wait")


def _id(shown: QueueRow) -> str:
    if shown.trial is not None:
        return f"#{shown.trial.id}"
    return shown.candidate_id[:_ID_WIDTH] if shown.candidate_id else "-"


def _note(shown: QueueRow, showing: Showing, is_best: bool) -> str:
    trial, work = shown.trial, shown.work
    if is_best:
        return "best so far"
    if shown.kind == ENDED and trial is not None:
        return plain(trial.reason) or ("" if trial.purpose == "screen" else trial.purpose)
    if shown.kind == RUNNING and trial is not None:
        return trial.purpose if trial.purpose != "screen" else ""
    if shown.kind == RUNNING and showing.sweep is not None and not showing.sweep.ended:
        return showing.sweep.phase or "begins"
    if work is not None:
        return f"{plain(work.command or work.operation)} by {plain(work.actor)}"
    return ""
