"""The engine of one operation: the workspace as it was found, its contract, a target, and the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from core.events import Event
from core.measure.objective import Objective as MeasuredObjective
from core.records import FileSet, fileset_id
from core.store import Files, Store
from core.targets.job import Target, TargetFacts
from core.words import JsonObject
from core.workspace.config import Workspace, WorkspaceConfig


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything a trial, a decision or a sweep needs. `outputs` holds a folder a trial."""

    workspace: Workspace
    store: Store
    files: Files
    target: Target
    contract_id: str
    actor: str
    outputs: Path
    tell: Callable[[Event], None]

    @property
    def config(self) -> WorkspaceConfig:
        return self.workspace.config

    @property
    def lower_is_better(self) -> bool:
        return self.config.objective.direction == "lower"

    @property
    def arms_in_one_process(self) -> bool:
        return bool(self.config.extras.timing)

    def measured_objective(self) -> MeasuredObjective:
        objective = self.config.objective
        return MeasuredObjective(objective.aggregate, objective.statistic, objective.direction)  # type: ignore[arg-type]


def contract_of(config: WorkspaceConfig, protected: FileSet, facts: TargetFacts) -> JsonObject:
    """What makes scores comparable, spelled out: the contract's id is its hash.

    Cases live in the protected files; the commands, the objective, what may change and the target's facts
    complete it. How a score is shown (its unit, its target) makes no other score of it.
    """
    return {
        "protected": fileset_id(protected),
        "objective": {k: v for k, v in asdict(config.objective).items() if k not in ("target", "unit")},
        "mutable": sorted(config.files.mutable),
        "modes": {name: [list(mode.benchmark), list(mode.verifier)] for name, mode in config.modes.items()},
        "target": asdict(facts),
    }


def contract_id(description: JsonObject) -> str:
    """SHA-256 (hex) of a contract's description."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()
