"""All that is kept of one trial or checkpoint, for those who look closely. Nothing here writes.

What a benchmark wrote is foreign: figures and samples are taken from it where they are what they should be.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import KerneldeckError
from core.measure.anchor import Anchor
from core.measure.decision import Decision
from core.measure.errors import EvidenceFault
from core.measure.texts import score_text
from core.records import Checkpoint, DecisionRecord, TrialRecord
from core.words import JsonObject
from sessions.checkpoints import BestRow
from sessions.standing import standing_score
from sessions.store import SessionStore

TAIL_BYTES = 8192
MOST_CASES, MOST_FIGURES, MOST_TEXT_BYTES = 200, 24, 1 << 20


@dataclass(frozen=True, slots=True)
class Samples:
    """A case's launches: a block a round, in `unit`; discarded rounds are numbered from 0."""

    kind: str
    unit: str
    blocks: tuple[tuple[float, ...], ...]
    discarded: frozenset[int] = frozenset()

    @property
    def kept(self) -> list[float]:
        return [
            value
            for number, block in enumerate(self.blocks)
            if number not in self.discarded
            for value in block
        ]


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a result: its numbers by their name, its samples by their kind."""

    name: str
    status: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    samples: tuple[Samples, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """A trial with what it left. `verdict` is the decision it is evidence of, `standing` that in words.

    `has_result` is False when none was written, or its samples were collected. The tails are the ends of
    what it printed, None where that is gone.
    """

    record: TrialRecord
    has_result: bool
    cases: tuple[Case, ...]
    decision: DecisionRecord | None
    verdict: Decision | None
    standing: str
    stdout: str | None
    stderr: str | None
    output: Path


@dataclass(frozen=True, slots=True)
class CheckpointEvidence:
    """A checkpoint, its files as text (None: not text, or not kept), and when it stood for its contract."""

    checkpoint: Checkpoint
    texts: dict[str, str | None]
    score: float | None
    stood: tuple[BestRow, ...]
    decisions: tuple[DecisionRecord, ...]
    trial: TrialRecord | None


def trial_evidence(store: SessionStore, trial_id: int, unit: str = "") -> TrialEvidence | None:
    """None when there is no such trial."""
    record = store.trial(trial_id)
    if record is None:
        return None
    result = store.result(trial_id)
    decision = store.decision(record.decision_id) if record.decision_id else None
    verdict = _verdict(decision)
    output = store.place.output_of(trial_id)
    return TrialEvidence(
        record, result is not None, cases_of(result or {}), decision, verdict,
        _standing(store, decision, verdict, unit), tail(output / "stdout"), tail(output / "stderr"), output,
    )  # fmt: skip


def checkpoint_evidence(
    store: SessionStore, checkpoint: Checkpoint, once: BestRow | None = None
) -> CheckpointEvidence:
    """With each time that it stood for its contract, or with one of them."""
    every = store.best_history(checkpoint.contract_id) if once is None else [once]
    stood = tuple(row for row in every if row.checkpoint_id == checkpoint.id)
    decisions = tuple(
        found for row in stood if row.decision_id and (found := store.decision(row.decision_id)) is not None
    )
    trial = store.trial(checkpoint.trial_id) if checkpoint.trial_id else None
    score = standing_score(store, checkpoint)
    score = trial.score if score is None and trial is not None else score
    return CheckpointEvidence(checkpoint, texts_of(store, checkpoint), score, stood, decisions, trial)


def texts_of(store: SessionStore, kept: Checkpoint | str) -> dict[str, str | None]:
    """The files of a checkpoint, or of the candidate of that id, as text; None: no text, or gone."""
    if isinstance(kept, str):
        candidate = store.candidate(kept)
        files = {} if candidate is None else candidate.files
    else:
        files = kept.files
    return {path: _text(store, version.sha256) for path, version in sorted(files.items())}


def _text(store: SessionStore, sha256: str) -> str | None:
    try:
        content = store.blobs.get(sha256)
    except KerneldeckError:
        return None
    if len(content) > MOST_TEXT_BYTES or b"\0" in content:
        return None
    return content.decode("utf-8", "replace")


def _verdict(decision: DecisionRecord | None) -> Decision | None:
    try:
        return None if decision is None else Decision.from_json(decision.outcome)
    except (EvidenceFault, KeyError, TypeError, ValueError):
        return None  # of another version; its row still says the verdict


def _standing(
    store: SessionStore, decision: DecisionRecord | None, verdict: Decision | None, unit: str
) -> str:
    if decision is None or verdict is None or verdict.exact:
        return ""
    anchor = Anchor(tuple(store.anchor_values(decision.contract_id, decision.best_id)))
    return score_text(anchor, verdict, unit) if anchor.values else ""


def tail(path: Path, most: int = TAIL_BYTES) -> str | None:
    """The end of a file as text, from a line's beginning where something was left out; None without one."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            content = file.read(most)
    except OSError:
        return None
    text = content.decode("utf-8", "replace")
    return text.partition("\n")[2] if size > most and "\n" in text else text


def cases_of(result: JsonObject) -> tuple[Case, ...]:
    """The cases of a benchmark's result: those of its first arm, as the result itself has them."""
    timing = result.get("timing")
    discarded = _whole_numbers(timing.get("discarded_rounds")) if isinstance(timing, dict) else frozenset()
    listed = result.get("cases")
    found = listed if isinstance(listed, list) else []
    return tuple(_case(one, discarded) for one in found[:MOST_CASES] if isinstance(one, dict))


def _case(case: JsonObject, discarded: frozenset[int]) -> Case:
    figures = {str(name): float(value) for name, value in case.items() if _is_number(value)}
    samples = case.get("samples")
    kinds = samples.items() if isinstance(samples, dict) else ()
    made = (_samples(str(kind), one, discarded) for kind, one in kinds if isinstance(one, dict))
    return Case(
        str(case.get("name", "?")), str(case.get("status", "")),
        dict(list(figures.items())[:MOST_FIGURES]), tuple(one for one in made if one.kept),
    )  # fmt: skip


def _samples(kind: str, samples: JsonObject, discarded: frozenset[int]) -> Samples:
    blocks = samples.get("blocks")
    rows = blocks if isinstance(blocks, list) else []
    kept = tuple(
        tuple(float(value) for value in row if _is_number(value)) for row in rows if isinstance(row, list)
    )
    return Samples(kind, str(samples.get("unit", "")), kept, discarded)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole_numbers(value: object) -> frozenset[int]:
    listed = value if isinstance(value, list) else []
    return frozenset(one for one in listed if isinstance(one, int))
