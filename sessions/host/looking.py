"""Looking at the workspace for those who watch: its contract, its best, what differs from that."""

from __future__ import annotations

from dataclasses import replace

from core.engine import contract_id, contract_of
from core.errors import KerneldeckError
from core.records import Checkpoint
from core.workspace.config import Workspace
from core.workspace.toml_reader import read_workspace
from sessions.host.events import Best, WorkspaceSeen
from sessions.session import Held, read_protected
from sessions.store import SessionStore
from sessions.where import Where
from sessions.workspace_files import WorkspaceFiles


def seen_workspace(held: Held, where: Where, before: WorkspaceSeen | None) -> WorkspaceSeen:
    """The workspace now, as trials on `where` see it; `before` with a fault when it cannot be read."""
    try:
        workspace = read_workspace(held.root)
        protected = read_protected(workspace)
        seal = held.store.seal()
        facts = where.facts(held.store)
        contract = contract_id(contract_of(workspace.config, seal.files if seal else protected, facts))
        fault = ""
        if seal is not None:
            names = {*protected, *seal.files}
            changed = sorted(name for name in names if protected.get(name) != seal.files.get(name))
            fault = f"protected files differ from the seal: {', '.join(changed)}" if changed else ""
        return _seen(workspace, held.store, contract, fault)
    except KerneldeckError as error:
        blank = WorkspaceSeen(held.root.name, str(held.root), "", "", "", True)
        return replace(before or blank, fault=error.sentence)


def _seen(workspace: Workspace, store: SessionStore, contract: str, fault: str) -> WorkspaceSeen:
    config = workspace.config
    objective = config.objective
    best = store.best(contract)
    return WorkspaceSeen(
        config.name, str(workspace.root), contract, objective.metric, objective.unit,
        objective.direction == "lower", _changed(workspace, best), _best(store, contract, best), fault,
    )  # fmt: skip


def _changed(workspace: Workspace, best: Checkpoint | None) -> tuple[str, ...]:
    if best is None:
        return ()
    files = WorkspaceFiles(workspace.root)
    names = workspace.config.files.mutable
    return tuple(name for name in names if files.version(name) != best.files.get(name))


def _best(store: SessionStore, contract: str, best: Checkpoint | None) -> Best | None:
    if best is None:
        return None
    trial = store.trial(best.trial_id) if best.trial_id else None
    score = best.anchor if best.anchor is not None or trial is None else trial.score
    since = store.best_history(contract)[:1]
    return Best(best.id, score, since[0].since_s if since else best.created_s, best.overlay, best.trial_id)
