"""inspect_context: looking without touching."""

from __future__ import annotations

from core.candidates import read_config, value_at
from core.errors import ConfigFault
from core.operations.declaration import Answer
from core.records import TrialRecord
from core.space import Space
from core.words import JsonObject, Status
from core.workspace.needed import needed_files, total_bytes
from sessions.annotations import not_compared
from sessions.earlier import other_bests
from sessions.reports import baseline_json, checkpoint_json, record_json
from sessions.session import Reading
from sessions.store import SessionStore
from sessions.story import story
from sessions.where import place_of, remembered
from sessions.workspace_files import WorkspaceFiles

LATEST = 5
LOOKED_BACK = 50  # trials


def inspect_context(reading: Reading, arguments: JsonObject) -> Answer:
    """Everything a person or an agent needs to know before touching the workspace."""
    config = reading.workspace.config
    objective = config.objective
    content: JsonObject = {
        "workspace": config.name,
        "folder": str(reading.workspace.root),
        "objective": {
            "metric": objective.metric,
            "direction": objective.direction,
            "decides": objective.decide,
            "unit": objective.unit,
            "aggregate": objective.aggregate,
            "deterministic": objective.deterministic,
            "target": objective.target,
        },
        "modes": {name: {"benchmark": list(mode.benchmark), "verifier": list(mode.verifier),
                         "timeout_s": mode.timeout_s, "cpu_s": mode.cpu_s}
                  for name, mode in config.modes.items()},
        "contract": reading.contract_id,
        "target": reading.contract["target"],
        "runs_on": remembered(place_of("")).name,
        "files": _files(reading),
        "space": _space(reading),
        "state": str(reading.place.folder),
        "cases": {},
        "best": None,
        "baseline": None,
        "pending": None,
        "latest": [],
        "history": {},
        "story": [],
    }  # fmt: skip
    if reading.store is not None:
        store = reading.store
        content["cases"] = {mode: names for mode in config.modes if (names := _cases(reading, store, mode))}
        content["best"] = checkpoint_json(store, store.best(reading.contract_id))
        content["baseline"] = _baseline(reading, store, content["best"])
        content["pending"] = _pending(store, reading.contract_id)
        content["latest"] = [_noted(store, trial) for trial in store.trials(limit=LATEST)]
        counts = store.counts_by_status(reading.contract_id)
        content["history"] = {str(status or "running"): count for status, count in counts.items()}
        content["other_contracts"] = other_bests(reading.store, reading.contract_id, reading.contract)
        content["story"] = story(store)
    content["next"] = _next(content)
    return Answer(content)


def _baseline(reading: Reading, store: SessionStore, best: JsonObject | None) -> JsonObject | None:
    """The baseline, and by what fraction the best differs from it in the deciding mode."""
    baseline, decide = store.baseline(reading.contract_id), reading.workspace.config.objective.decide
    made = baseline_json(baseline)
    if baseline is None or made is None:
        return None
    made["best_change"] = baseline.change(decide, best["score"] if best is not None else None)
    made["not_compared"] = not_compared(baseline, decide)
    return made


def _noted(store: SessionStore, trial: TrialRecord) -> JsonObject:
    note = store.note(trial.id)
    return record_json(trial) | {"note": note.text, "tags": list(note.tags)}


def _pending(store: SessionStore, contract_id: str) -> str | None:
    """The candidate whose final verification a fault of the machine ended, when none has come since."""
    trials = [
        trial
        for trial in store.trials(LOOKED_BACK, contract_id=contract_id)
        if trial.purpose in ("verify", "gate") and trial.sweep_id is None
    ]
    if not trials or trials[0].status is not Status.INFRA:
        return None
    return next((trial.candidate_id for trial in trials if trial.purpose == "verify"), None)


def _cases(reading: Reading, store: SessionStore, mode: str) -> list[str]:
    """Names of the mode's cases, by its newest result."""
    newest = store.trials(1, mode=mode, status=Status.OK, contract_id=reading.contract_id)
    result = store.result(newest[0].id) if newest else None
    cases = (result or {}).get("cases")
    return (
        [str(case.get("name", "?")) for case in cases if isinstance(case, dict)]
        if isinstance(cases, list)
        else []
    )


def _files(reading: Reading) -> JsonObject:
    workspace = reading.workspace
    files = WorkspaceFiles(workspace.root)
    mutable = {name: files.version(name) for name in workspace.config.files.mutable}
    best = reading.store.best(reading.contract_id) if reading.store else None
    sealed = reading.sealed
    needed = needed_files(workspace.root, workspace.config.files.needed)
    return {
        "mutable": [
            {"name": name, "sha256": version.sha256 if version else None,
             "as_best": bool(best and best.files.get(name) == version)}
            for name, version in mutable.items()
        ],
        "protected": [
            {"name": name, "sha256": version.sha256, "sealed": sealed is None or sealed.get(name) == version}
            for name, version in reading.protected.items()
        ],
        "needed": len(needed),
        "needed_bytes": total_bytes(workspace.root, needed),
    }  # fmt: skip


def _space(reading: Reading) -> JsonObject:
    """Knobs with their legal values and what the config file holds now."""
    config = reading.workspace.config
    space = Space.of(config)
    current = _current_config(reading)
    held = {knob.name: value_at(current, knob.name) for knob in space.knobs}
    now = {name: value for name, value in held.items() if value is not None}
    knobs = [{"name": knob.name, "values": list(knob.values), "now": held[knob.name]} for knob in space.knobs]
    return {
        "knobs": knobs,
        "constraints": list(config.constraints),
        "combinations": space.raw_count() if knobs else 0,
        "faults": space.faults(now),
    }


def _current_config(reading: Reading) -> JsonObject:
    """The config file's object; empty when it is missing or broken (which a run will say)."""
    config_file = reading.workspace.config.config_file
    if not config_file:
        return {}
    read = WorkspaceFiles(reading.workspace.root).read(config_file)
    if read is None:
        return {}
    try:
        return read_config({config_file: read.version}, _OneContent(read.content), config_file)
    except ConfigFault:
        return {}


class _OneContent:
    """A single file's content as blobs, for reading without storing."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def put(self, content: bytes) -> str:
        raise AssertionError("reading stores nothing")

    def get(self, sha256: str) -> bytes:
        return self._content


def _next(content: JsonObject) -> list[str]:
    if any(not file["sealed"] for file in content["files"]["protected"]):
        return ["kerneldeck reseal"]
    if content["best"] is None:
        return ["kerneldeck run", "kerneldeck verify"]
    if all(file["as_best"] for file in content["files"]["mutable"]):
        return ["kerneldeck sweep config --keep-best"] if content["space"]["knobs"] else ["kerneldeck run"]
    return ["kerneldeck verify", "kerneldeck restore"]
