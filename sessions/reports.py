"""Records as the JSON objects that every face shows."""

from __future__ import annotations

from core.decide import Comparison
from core.measure.anchor import Anchor
from core.measure.texts import noise_warning, process_text, score_text, verdict_text
from core.records import Baseline, Checkpoint, DecisionRecord, TrialRecord
from core.trials import Trial
from core.words import JsonObject
from sessions.session import Session
from sessions.standing import standing_score
from sessions.store import SessionStore


def trial_json(session: Session, trial: Trial) -> JsonObject:
    """A trial with the whole result of its command, and the objective mirrored under `score`."""
    content = record_json(trial.record)
    objective = session.engine.config.objective
    content |= {
        "metric": objective.metric,
        "unit": objective.unit,
        "provisional": not objective.deterministic,
        "output": str(session.place.output_of(trial.record.id)),
        "result": trial.outcome.result,
    }
    return content


def record_json(record: TrialRecord) -> JsonObject:
    """A trial's row; ids whole, times in seconds."""
    return {
        "trial": record.id,
        "candidate": record.candidate_id,
        "status": record.status,
        "reason": record.reason,
        "stage": record.stage,
        "score": record.score,
        "mode": record.mode,
        "verifier": record.verifier,
        "purpose": record.purpose,
        "target": record.target,
        "config": record.overlay,
        "duration_s": record.duration_s,
        "exit_code": record.exit_code,
        "channel": record.channel,
    }


def checkpoint_json(store: SessionStore, best: Checkpoint | None) -> JsonObject | None:
    """The best with its long-run score, and how many processes that rests on."""
    if best is None:
        return None
    return {
        "checkpoint": best.id,
        "score": standing_score(store, best),
        "processes": max(1, len(store.anchor_values(best.contract_id, best.id))),
        "config": best.overlay,
        "files": sorted(best.files),
        "since_s": best.created_s,
        "trial": best.trial_id,
    }


def comparison_json(session: Session, comparison: Comparison | None) -> JsonObject | None:
    """A decision with its sentence, its figures and its evidence in short; None when none was asked for."""
    if comparison is None:
        return None
    decision, record = comparison.decision, comparison.record
    if decision is None or record is None:
        return {
            "candidate": comparison.candidate_id, "best": comparison.best_id,
            "verdict": None, "reason": comparison.reason, "at_fault": comparison.at_fault,
        }  # fmt: skip
    anchor = Anchor(tuple(session.store.anchor_values(record.contract_id, record.best_id)))
    unit = session.engine.config.objective.unit
    return {
        "decision": record.id,
        "candidate": record.candidate_id,
        "best": record.best_id,
        "verdict": decision.verdict,
        "accepted": decision.accepted,
        "reason": decision.reason,
        "text": verdict_text(decision),
        "evidence": process_text(decision),
        "score": _exact_scores(record, unit) if decision.exact else score_text(anchor, decision, unit),
        "gain": decision.gain,
        "interval": list(decision.interval),
        "at_least": decision.at_least,
        "processes": decision.processes,
        "noise": decision.noise,
        "blocked_by": list(decision.blocked),
        "exact": decision.exact,
        "seed": record.seed,
        "warning": noise_warning(decision),
    }


def _exact_scores(record: DecisionRecord, unit: str) -> str:
    """A deterministic candidate's score beside the best's, to the last digit."""
    process = record.evidence[-1]
    candidate, best = (
        f"{score:,.12g} {unit}".strip() for score in (process["candidate"], process["best"][0])
    )
    return f"{candidate} (best {best})"


def baseline_json(baseline: Baseline | None) -> JsonObject | None:
    """The baseline with its candidate's median by mode."""
    if baseline is None:
        return None
    return {
        "trial": baseline.trial_id,
        "candidate": baseline.candidate_id,
        "contract": baseline.contract_id,
        "mode": baseline.mode,
        "scores": dict(baseline.scores),
        "since_s": baseline.since_s,
    }
