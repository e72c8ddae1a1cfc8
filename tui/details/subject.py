"""What details are shown of, and the lines that show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import KerneldeckError
from core.words import Overlay
from sessions.evidence import checkpoint_evidence, texts_of, trial_evidence
from sessions.history import HistoryReader
from tui.details.checkpoint import checkpoint_lines
from tui.details.compare import compare_lines, diff_lines
from tui.details.fronts import pareto_lines, progress_lines
from tui.details.layout import Sheet
from tui.details.trial import trial_lines
from tui.line import Line, Lines, line_of
from tui.plain import plain

_SHORT_ID = 12


@dataclass(frozen=True, slots=True)
class TrialSubject:
    trial_id: int


@dataclass(frozen=True, slots=True)
class CheckpointSubject:
    """A checkpoint by its id; the best that stands when that is empty."""

    checkpoint_id: str = ""


@dataclass(frozen=True, slots=True)
class CompareSubject:
    """Two to four trials."""

    trial_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DiffSubject:
    """From one trial's candidate to another's; from the best's to the only one given."""

    trial_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ParetoSubject:
    """Screening against deciding scores."""


@dataclass(frozen=True, slots=True)
class ProgressSubject:
    """The best over time."""


Subject = TrialSubject | CheckpointSubject | CompareSubject | DiffSubject | ParetoSubject | ProgressSubject


def title_of(subject: Subject) -> str:
    match subject:
        case TrialSubject(trial_id):
            return f"Trial #{trial_id}"
        case CheckpointSubject(checkpoint_id):
            return f"Checkpoint {checkpoint_id[:_SHORT_ID]}" if checkpoint_id else "The best"
        case CompareSubject(ids):
            return f"Comparison of {', '.join(f'#{one}' for one in ids)}"
        case DiffSubject(ids):
            return f"Difference {' -> '.join(f'#{one}' for one in ids)}"
        case ParetoSubject():
            return "Screening and deciding scores"
        case ProgressSubject():
            return "The best over time"


def lines_of(subject: Subject, reader: HistoryReader, sheet: Sheet) -> Lines:
    """The lines of the details; what cannot be read is told in a line, and what to do in the next."""
    try:
        return tuple(_lines(subject, reader, sheet))
    except KerneldeckError as error:
        return (line_of(" ", (plain(error.sentence), "bad")), line_of(" ", (plain(error.hint), "dim")))


def _lines(subject: Subject, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    match subject:
        case TrialSubject(trial_id):
            return _trial(trial_id, reader, sheet)
        case CheckpointSubject(checkpoint_id):
            return _checkpoint(checkpoint_id, reader, sheet)
        case CompareSubject(ids):
            return _compare(ids, reader, sheet)
        case DiffSubject(ids):
            return _diff(ids, reader, sheet)
        case ParetoSubject():
            return pareto_lines(reader.both_scores(), reader, sheet)
        case ProgressSubject():
            return _progress(reader, sheet)


def _trial(trial_id: int, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    evidence = trial_evidence(reader.store, trial_id, reader.scope.unit)
    return _gone(f"trial #{trial_id}") if evidence is None else trial_lines(evidence, reader, sheet)


def _gone(what: str) -> Iterator[Line]:
    yield line_of((f" {what} is not in this history", "warn"))


def _checkpoint(checkpoint_id: str, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    meant = checkpoint_id or reader.standing.candidate_id
    if not meant:
        yield line_of((" nothing was kept yet: v verifies what the workspace holds", "dim"))
        return
    store = reader.store
    found = store.checkpoint(meant, reader.scope.contract_id) or store.checkpoint(meant)
    if found is None:
        yield from _gone(f"checkpoint {plain(meant[:_SHORT_ID])}")
    else:
        yield from checkpoint_lines(checkpoint_evidence(store, found), reader, sheet)


def _compare(ids: tuple[int, ...], reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    rows = reader.rows(ids)
    if len(rows) < 2:
        yield line_of((" mark two to four runs with Space, then c compares them", "dim"))
        return
    found = (trial_evidence(reader.store, row.id, reader.scope.unit) for row in rows)
    yield from compare_lines(rows, [one for one in found if one is not None], reader.scope, sheet)


def _diff(ids: tuple[int, ...], reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    rows = reader.rows(ids)
    sides: list[tuple[str, str, Overlay]] = [(f"#{row.id}", row.candidate_id, row.overlay) for row in rows]
    if len(sides) == 1 and reader.standing.candidate_id:
        sides.insert(0, ("the best", reader.standing.candidate_id, reader.standing.overlay))
    if len(sides) != 2:
        yield line_of((" mark two runs with Space, or have a best to compare one with", "dim"))
        return
    (one, first, before), (other, second, after) = sides
    texts = texts_of(reader.store, first), texts_of(reader.store, second)
    yield from diff_lines((one, other), (before, after), texts, sheet)


def _progress(reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    store, contract = reader.store, reader.scope.contract_id
    kept = []
    for stood in reversed(store.best_history(contract)):
        checkpoint = store.checkpoint(stood.checkpoint_id, contract)
        if checkpoint is not None:
            kept.append(checkpoint_evidence(store, checkpoint, stood))
    yield from progress_lines(kept, reader, sheet)
