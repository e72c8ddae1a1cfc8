"""What a sweep did, read back from its rows: the same for one that went on in another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.decide import Comparison
from core.guard import Ending, Report
from core.measure.decision import Decision
from core.records import Candidate, SweepRecord, TrialRecord
from core.store import Store
from core.sweep.plan import Confirmed
from core.sweep.standing import SweepState
from core.sweep.telling import counts
from core.targets.job import Outcome
from core.trials import Trial
from core.words import JsonObject


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did. `decision` is the winner's direct comparison with the best.

    `trials` are the last of each candidate, in the order in which they ended.
    """

    record: SweepRecord
    state: SweepState
    outcome: str
    reason: str
    trials: Mapping[str, Trial]
    comparisons: tuple[Comparison, ...]
    baseline: Report | None
    winner: Candidate | None = None
    kept: bool = False
    unwritten: str = ""  # why the winner, although kept, could not be written into the workspace

    @property
    def decision(self) -> Comparison | None:
        """The last comparison of the winner with the best that stood when the sweep began."""
        if self.winner is None:
            return None
        wanted = (self.winner.id, self.state.best_id)
        for comparison in reversed(self.comparisons):
            record = comparison.record
            if record is not None and (record.candidate_id, record.best_id) == wanted:
                return comparison
        return None


def report_of(
    store: Store,
    record: SweepRecord,
    state: SweepState,
    candidates: Mapping[str, Candidate],
    start: Candidate,
    baseline: Report | None = None,
) -> SweepReport:
    """What the rows of an ended sweep say it did; `baseline` where more is known of it than they say."""
    return SweepReport(
        record,
        state,
        record.state,
        str(record.summary.get("reason", "")),
        trials_of(store, state),
        tuple(comparison_of(store, one) for one in state.confirmed),
        baseline or baseline_of(store, state, start, record.contract_id),
        candidates.get(state.winner),
        state.kept,
        state.unwritten,
    )


def summary_of(state: SweepState, outcome: str, reason: str) -> JsonObject:
    """What the sweep's row says of its end."""
    return {
        "outcome": outcome,
        "reason": reason,
        "screened": counts(state),
        "confirmed": len(state.confirmed),
        "winner": state.winner,
        "kept": state.kept,
        "unwritten": state.unwritten,
    }


def trial_of(record: TrialRecord, result: JsonObject | None = None) -> Trial:
    """An ended trial from its row; the outcome without its result, unless that is given."""
    assert record.status is not None
    outcome = Outcome(
        record.status, record.reason, record.stage, record.score, result, record.channel, record.exit_code,
        record.duration_s or 0.0,
    )  # fmt: skip
    return Trial(record, outcome)


def recalled_trial(store: Store, trial_id: int) -> Trial | None:
    """The ended trial of that id; None for 0 and for one that has not ended."""
    record = store.trial(trial_id) if trial_id else None
    return None if record is None or record.status is None else trial_of(record)


def trials_of(store: Store, state: SweepState) -> dict[str, Trial]:
    """The last screening trial of each candidate that had one."""
    told = [(one.trial_id, one.candidate_id) for one in (*state.screened, *state.lost)]
    told += [(one.trial_id, one.candidate_id) for one in state.dropped]
    found = ((candidate_id, recalled_trial(store, trial_id)) for trial_id, candidate_id in sorted(told))
    return {candidate_id: trial for candidate_id, trial in found if trial is not None}


def comparison_of(store: Store, confirmed: Confirmed) -> Comparison:
    """The decision behind the event, or why there is none."""
    record = store.decision(confirmed.decision_id) if confirmed.decision_id else None
    return Comparison(
        confirmed.candidate_id,
        confirmed.against,
        record,
        None if record is None else Decision.from_json(record.outcome),
        recalled_trial(store, confirmed.trial_id),
        confirmed.at_fault,
        confirmed.reason,
    )


def baseline_of(store: Store, state: SweepState, start: Candidate, contract_id: str) -> Report | None:
    """How the first best came to stand, when this sweep saw to that."""
    trial = recalled_trial(store, state.baseline_trial)
    best = store.checkpoint(state.best_id, contract_id) if trial else None
    if best is None or trial is None:
        return None
    trial = trial_of(trial.record, store.result(trial.record.id))
    return Report(Ending.FIRST_BEST, "it is the best now, the first of this contract", start, best, trial)
