"""rank_history: the recorded candidates, best first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.candidates import read_config, value_at
from core.errors import ArgumentFault, ConfigFault, StorageFault
from core.operations.declaration import Answer
from core.records import Baseline, Checkpoint
from core.trials import mode_named
from core.words import JsonObject
from sessions.annotations import not_compared
from sessions.reports import baseline_json
from sessions.session import Reading, home_expanded, open_reading
from sessions.standing import scores_of_best
from sessions.trials import RankRow


def rank_history(reading: Reading, arguments: JsonObject) -> Answer:
    """The recorded candidates, best first; only one contract's scores are comparable."""
    if arguments["history_path"]:
        with open_reading(_folder_of(arguments["history_path"])) as other:
            return _rank(other, arguments)
    return _rank(reading, arguments)


def _folder_of(path: str) -> Path:
    """The workspace a history path belongs to: its folder, or a file or state folder in it."""
    place = home_expanded(path).resolve()
    if not place.exists():
        raise ArgumentFault(f"{path} does not exist", "name the folder of a workspace")
    return place if place.is_dir() else place.parent


def _rank(reading: Reading, arguments: JsonObject) -> Answer:
    objective = reading.workspace.config.objective
    mode = mode_named(reading.workspace.config, arguments["mode"] or objective.decide).name
    ranked: list[RankRow] = []
    best = baseline = None
    if reading.store is not None:
        best = reading.store.best(reading.contract_id)
        baseline = reading.store.baseline(reading.contract_id)
        ranked = reading.store.rank(reading.contract_id, mode, arguments["top_n"], objective.direction)
    against = _best_scores(reading, best)
    return Answer(
        {
            "mode": mode,
            "metric": objective.metric,
            "unit": objective.unit,
            "direction": objective.direction,
            "contract": reading.contract_id,
            "baseline": baseline_json(baseline),
            "not_compared": not_compared(baseline, mode),
            "rows": [
                {"rank": place, "is_best": best is not None and best.id == row.candidate_id}
                | _row(reading, row)
                | _changes(row, mode, against, baseline)
                for place, row in enumerate(ranked, 1)
            ],
        }
    )


def _best_scores(reading: Reading, best: Checkpoint | None) -> Mapping[str, float]:
    if reading.store is None or best is None:
        return {}
    return scores_of_best(reading.store, best, reading.workspace.config.objective.decide)


def _changes(row: RankRow, mode: str, best: Mapping[str, float], baseline: Baseline | None) -> JsonObject:
    """The fractions by which a candidate's median differs from the best's and from the baseline's."""
    own = best.get(mode)
    return {
        "change": row.median / own - 1.0 if own else None,
        "against_baseline": baseline.change(mode, row.median) if baseline is not None else None,
        "is_baseline": baseline is not None and baseline.candidate_id == row.candidate_id,
    }


def _row(reading: Reading, row: RankRow) -> JsonObject:
    deterministic = reading.workspace.config.objective.deterministic
    return {
        "trial": row.trial_id,
        "candidate": row.candidate_id,
        "median_score": row.median,
        "best_score": row.score,
        "count": row.count,
        "provisional": row.count == 1 and not deterministic,
        "config": _knobs_of(reading, row.candidate_id) or row.overlay,
        "verifier": row.verifier,
        "started_s": row.started_s,
    }


def _knobs_of(reading: Reading, candidate_id: str) -> JsonObject:
    """What a candidate's config file says of the knobs; empty when it cannot be read any more."""
    config, store = reading.workspace.config, reading.store
    candidate = store.candidate(candidate_id) if store else None
    if store is None or candidate is None or config.config_file not in candidate.files:
        return {}
    try:
        now = read_config(candidate.files, store.blobs, config.config_file)
    except (ConfigFault, StorageFault):
        return {}
    values = {knob.name: value_at(now, knob.name) for knob in config.knobs}
    return {name: value for name, value in values.items() if value is not None}
