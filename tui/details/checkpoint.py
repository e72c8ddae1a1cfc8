"""A checkpoint: what it stands for, where it comes from, and what its files hold."""

from __future__ import annotations

from collections.abc import Iterator

from core.measure.decision import Decision
from core.measure.errors import EvidenceFault
from core.measure.texts import verdict_text
from core.records import DecisionRecord
from sessions.evidence import CheckpointEvidence
from sessions.history import HistoryReader
from tui.details.layout import Sheet, foreign, heading, pairs
from tui.details.trial import config_lines
from tui.history import words
from tui.line import Line, line_of
from tui.numbers import score_text
from tui.plain import plain

_SHORT_ID = 12
FILE_LINES = 400


def checkpoint_lines(evidence: CheckpointEvidence, reader: HistoryReader, sheet: Sheet) -> Iterator[Line]:
    checkpoint = evidence.checkpoint
    stands = checkpoint.id == reader.standing.candidate_id
    state = ("the best", "best") if stands else ("kept", "")
    yield line_of((f" Checkpoint {checkpoint.id[:_SHORT_ID]} ", "title"), state)
    score = f"{score_text(evidence.score)} {plain(reader.scope.unit)}" if evidence.score is not None else ""
    trial = evidence.trial
    asked = f"#{trial.id}, {trial.purpose} on {trial.target}, by {trial.actor}" if trial else ""
    facts = [
        ("score", score.strip(), "strong"),
        ("since", words.date_text(checkpoint.created_s), ""),
        ("measured by trial", asked, ""),
        ("contract", checkpoint.contract_id[:_SHORT_ID], ""),
        ("note", checkpoint.note, ""),
        ("restore with", f"kerneldeck restore --checkpoint {checkpoint.id[:_SHORT_ID]}", "key"),
    ]
    yield from pairs(facts, sheet)
    yield from _provenance(evidence, sheet)
    yield from config_lines(checkpoint.overlay, reader.standing.overlay, sheet)
    yield from _files(evidence)


def _provenance(evidence: CheckpointEvidence, sheet: Sheet) -> Iterator[Line]:
    if not evidence.stood:
        return
    yield ()
    yield heading("How it came to stand")
    by_id = {decision.id: decision for decision in evidence.decisions}
    rows = []
    for stood in evidence.stood:
        decision = by_id.get(stood.decision_id or 0)
        told = _told(decision) if decision else "kept without a decision: it was the first, or put back"
        rows.append(
            (words.date_text(stood.since_s), told, words.verdict_role(decision.verdict) if decision else "")
        )
    yield from pairs(rows, sheet)


def _told(decision: DecisionRecord) -> str:
    against = f"against {decision.best_id[:_SHORT_ID]}, decision #{decision.id}"
    try:
        return f"{verdict_text(Decision.from_json(decision.outcome))}; {against}"
    except (EvidenceFault, KeyError, TypeError, ValueError):
        return f"{decision.verdict}; {against}"


def _files(evidence: CheckpointEvidence) -> Iterator[Line]:
    for path, text in evidence.texts.items():
        version = evidence.checkpoint.files[path]
        run = ", executable" if version.executable else ""
        yield ()
        yield heading(plain(path), f"{version.sha256[:_SHORT_ID]}{run}")
        if text is None:
            yield line_of(("  no text, or not kept any more", "dim"))
        else:
            yield from foreign(text, FILE_LINES, numbered=True)
