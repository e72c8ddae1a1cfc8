"""A trial's evidence: what was asked, how it ended, the verdict, its cases with their samples, its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

from core.measure.case_gate import CaseLine
from core.measure.decision import Decision
from core.measure.texts import exact_percent, noise_warning, percent, process_text, verdict_text
from core.words import Scalar, Status
from sessions.annotations import not_compared
from sessions.evidence import Case, Samples, TrialEvidence
from sessions.history import HistoryReader, HistoryRow, Scope
from tui.details.layout import Sheet, broken, foreign, heading, pairs
from tui.details.plots import bar, strip
from tui.history import words
from tui.line import Line, Span, line_of
from tui.numbers import score_text, span_text
from tui.plain import padded, plain

OUTPUT_LINES = 60
_SHORT_ID = 12
_LEAST_BAR = 4  # cells; a shorter one tells nothing
_TIMES = (
    ("launch", ("launch_us", "median_us", "best_us")),
    ("kernel", ("kernel_us",)),
    ("floor", ("floor_us",)),
)
_TIME_KEYS = {key for _, keys in _TIMES for key in keys}


def trial_lines(evidence: TrialEvidence, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    """The whole page; what a workspace did not tell is left out, what was collected says so."""
    yield _title(evidence, reader.scope)
    yield from pairs(_facts(evidence, reader), sheet)
    yield from _verdict(evidence, sheet)
    yield from config_lines(evidence.record.overlay, reader.standing.overlay, sheet)
    yield from _cases(evidence, sheet)
    yield from _output(evidence, reader.store.place.workspace)


def _title(evidence: TrialEvidence, scope: Scope) -> Line:
    record = evidence.record
    if record.status is None:
        return line_of((f" #{record.id} ", "title"), ("RUN", "run"))
    score = f"  {score_text(record.score)} {plain(scope.unit)}" if record.score is not None else ""
    state = (words.state_word(record.status), words.state_role(record.status))
    return line_of((f" #{record.id} ", "title"), state, (score.rstrip(), "strong"))


def _facts(evidence: TrialEvidence, reader: HistoryReader) -> list[tuple[str, str, str]]:
    record = evidence.record
    row = next(iter(reader.rows([record.id])), None)
    role = words.state_role(record.status) if record.status else ""
    kind = "verifier" if record.verifier else "benchmark"
    took = span_text(record.duration_s) if record.duration_s is not None else ""
    ended = f"exit code {record.exit_code}" if record.exit_code is not None else ""
    return [
        ("why", record.reason, role),
        ("stage", record.stage, role),
        ("tags", " ".join(row.tags) if row else "", "mark"),
        ("note", row.note if row else "", "strong"),
        ("against best", _against(row, reader), ""),
        ("against baseline", _against_baseline(row, reader), ""),
        ("asked", f"{record.purpose}: {record.mode} {kind} on {record.target}, by {record.actor}", ""),
        ("when", ", ".join(part for part in (words.date_text(record.started_s), took, ended) if part), ""),
        ("candidate", record.candidate_id[:_SHORT_ID], ""),
        ("sweep", f"#{record.sweep_id}" if record.sweep_id else "", ""),
    ]


def _against(row: HistoryRow | None, reader: HistoryReader) -> str:
    if row is None:
        return ""
    if not row.comparable:
        return "not comparable: it was measured under another contract"
    if row.change is None:
        return ""
    word = words.change_word(row.change, reader.scope.lower_is_better)
    told = "it is the best" if row.standing else f"{word}; one process, no verdict"
    return f"{words.signed_percent(row.change, 2)} in {row.mode} ({told})"


def _against_baseline(row: HistoryRow | None, reader: HistoryReader) -> str:
    """The change, or why there is none; nothing where no baseline is set or nothing was measured."""
    baseline = reader.standing.baseline
    if baseline is None or row is None or row.score is None or not row.comparable:
        return ""
    if row.is_baseline:
        return "it is the baseline"
    if row.against_baseline is None:
        return f"not compared: {not_compared(baseline, row.mode)}"
    word = words.change_word(row.against_baseline, reader.scope.lower_is_better)
    percent_text = words.signed_percent(row.against_baseline, 2)
    return f"{percent_text} in {row.mode} ({word}; the baseline is #{baseline.trial_id})"


def _verdict(evidence: TrialEvidence, sheet: Sheet) -> Iterator[Line]:
    decision, verdict = evidence.decision, evidence.verdict
    if decision is None:
        return
    yield ()
    yield heading("Verdict", f"decision #{decision.id} against {decision.best_id[:_SHORT_ID]}")
    role = words.verdict_role(decision.verdict)
    if verdict is None:
        yield line_of("  ", (f"{decision.verdict}, stored by another version", role))
        return
    told = [(verdict_text(verdict), role), (process_text(verdict), "dim"), (evidence.standing, "")]
    told.append((noise_warning(verdict) or "", "warn"))
    for text, style in told:
        for part in broken(plain(text), sheet.inner - 2) if text else ():
            yield line_of("  ", (part, style))
    yield from _case_gates(verdict, sheet)


def _case_gates(verdict: Decision, sheet: Sheet) -> Iterator[Line]:
    """Each case's gain as a bar to the better or the worse side."""
    widest = min(24, max((len(line.name) for line in verdict.cases), default=0))
    most = max((abs(line.gain) for line in verdict.cases), default=0.0) or 1.0
    over = max((len(_gate(line)) for line in verdict.cases), default=0)
    room = min(30, sheet.inner - widest - 19 - over)
    for line in verdict.cases:
        better = line.gain >= 0
        name = padded(plain(line.name), widest, ascii_glyphs=sheet.glyphs.ascii)
        gain = f"{exact_percent(line.gain):>8} {'better' if better else 'worse '}"
        drawn = padded(bar(abs(line.gain), most, room, sheet.glyphs), room) if room >= _LEAST_BAR else ""
        yield line_of(
            f"  {name} ", (gain, "ok" if better else "warn"), (f" {drawn}", "dim"), (_gate(line), "bad")
        )


def _gate(line: CaseLine) -> str:
    return f"  loses more than its gate of {percent(line.gate)}" if line.over else ""


def config_lines(overlay: Mapping[str, Scalar], best: Mapping[str, Scalar], sheet: Sheet) -> Iterator[Line]:
    """The knobs that a candidate sets, beside the best's value where that is another."""
    if not overlay:
        return
    yield ()
    yield heading("Configuration")
    widest = min(24, max(len(name) for name in overlay))
    for name, value in overlay.items():
        other = best.get(name)
        differs = other is not None and other != value
        shown = plain(words.setting(value), 200)
        named = padded(plain(name), widest, ascii_glyphs=sheet.glyphs.ascii)
        told = f"  the best has {plain(words.setting(other), 200)}" if differs else ""
        yield line_of((f"  {named} ", "dim"), (shown, "strong" if differs else ""), (told, "dim"))


def _cases(evidence: TrialEvidence, sheet: Sheet) -> Iterator[Line]:
    if not evidence.has_result:
        if evidence.record.status is Status.OK:
            yield ()
            yield line_of(("  its samples were collected: kerneldeck gc keeps those of decisions", "dim"))
        return
    if not evidence.cases:
        return
    yield ()
    yield heading("Cases", "strips: every launch that counts; marked: the median")
    for case in evidence.cases:
        yield from case_lines(case, sheet)


def case_lines(case: Case, sheet: Sheet) -> Iterator[Line]:
    """A case: its state and figures, its times beside the floor, its launches as a strip."""
    named = plain(case.name, 60)
    good = case.status in ("passed", "ok", "")
    figures = "  ".join(
        f"{plain(name, 40)} {score_text(value)}"
        for name, value in case.figures.items()
        if name not in _TIME_KEYS
    )
    yield line_of((f"  {named}", "strong"), (f"  {plain(case.status, 30)}", "ok" if good else "bad"))
    for part in broken(figures, sheet.inner - 4) if figures else ():
        yield line_of("    ", (part, "dim"))
    yield from _times(case, sheet)
    for samples in case.samples:
        yield strip_line(samples, sheet)


def _times(case: Case, sheet: Sheet) -> Iterator[Line]:
    """Launch, kernel and floor below each other, as far as the benchmark tells them."""
    known = [
        (label, next(case.figures[key] for key in keys if key in case.figures))
        for label, keys in _TIMES
        if any(key in case.figures for key in keys)
    ]
    if not known:
        return
    most, room = max(value for _, value in known), max(4, min(40, sheet.inner - 36))
    floor = dict(known).get("floor")
    for label, value in known:
        over = f"  {value / floor:.2f} x floor" if floor and label != "floor" else ""
        drawn = bar(value, most, room, sheet.glyphs)
        yield line_of((f"    {label:<7}", "dim"), f"{score_text(value):>10} us ", (drawn, "dim"), over)


def strip_line(samples: Samples, sheet: Sheet, span: tuple[float, float] | None = None) -> Line:
    """`launch_us  395.1 ▁▂▅█▃▁ 430.2  median 402.0 us, 300 launches`; over a scale of its own by default."""
    kept = samples.kept
    low, high = span or (min(kept), max(kept))
    middle = f"{score_text(median(kept))} {plain(samples.unit, 12)}".strip()
    told = f" {score_text(high)}  median {middle}, {len(kept)} launches"
    room = max(8, min(48, sheet.inner - len(told) - 24))
    return (
        Span(f"    {padded(plain(samples.kind), 10)} {score_text(low):>8} ", "dim"),
        *strip(kept, room, sheet.glyphs, span),
        Span(told, "dim"),
    )


def _output(evidence: TrialEvidence, workspace: Path) -> Iterator[Line]:
    for name, text in (("stderr", evidence.stderr), ("stdout", evidence.stdout)):
        if text is None or not text.strip():
            continue
        yield ()
        yield heading(f"End of its {name}")
        yield from foreign(text, OUTPUT_LINES)
    yield ()
    folder, ended = evidence.output, evidence.record.status is not None
    gone = " (collected)" if ended and evidence.stdout is None and evidence.stderr is None else ""
    shown = folder.relative_to(workspace) if folder.is_relative_to(workspace) else folder
    yield line_of(("  its output: ", "dim"), plain(shown), (gone, "dim"))
