"""Looking at the workspace for those who watch: its contract, its best, what differs from that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core.engine import contract_id, contract_of
from core.errors import KerneldeckError
from core.records import Checkpoint
from core.workspace.config import CONFIG_NAME, Workspace
from core.workspace.toml_reader import read_workspace
from sessions.host.events import Best, WorkspaceSeen
from sessions.session import Held, read_protected
from sessions.standing import standing_score
from sessions.store import SessionStore
from sessions.where import place_of, remembered
from sessions.workspace_files import WorkspaceFiles

_Stamp = tuple[int, int, int]  # number, size and time of writing


class Looker:
    """Looks again only where a file has changed since: most looks are a few calls of `stat`."""

    def __init__(self, held: Held) -> None:
        self._held = held
        self._names: tuple[str, ...] = (CONFIG_NAME,)
        self._stamps: tuple[_Stamp, ...] = ()
        self._known = (0, 0)

    def is_new(self) -> bool:
        """Whether a file was written, or more is known of a best, since the last look."""
        return self._stamps != self._stamped() or self._known != self._held.store.best_mark()

    def look(self, before: WorkspaceSeen | None) -> WorkspaceSeen:
        """The workspace as its trials see it, where nothing else is said.

        `before` with a fault when it cannot be read.
        """
        held = self._held
        self._stamps, self._known = self._stamped(), held.store.best_mark()
        try:
            workspace = read_workspace(held.root)
            self._names = (CONFIG_NAME, *workspace.config.files.mutable, *workspace.config.files.protected)
            self._stamps = self._stamped()
            return _looked(workspace, held.store)
        except KerneldeckError as error:
            blank = WorkspaceSeen(held.root.name, str(held.root), "", "", "", True)
            return replace(before or blank, fault=error.sentence)

    def _stamped(self) -> tuple[_Stamp, ...]:
        return tuple(_stamp(self._held.root / name) for name in self._names)


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _looked(workspace: Workspace, store: SessionStore) -> WorkspaceSeen:
    protected = read_protected(workspace)
    seal = store.seal()
    facts = remembered(place_of("")).facts(store)
    contract = contract_id(contract_of(workspace.config, seal.files if seal else protected, facts))
    fault = ""
    if seal is not None:
        names = {*protected, *seal.files}
        changed = sorted(name for name in names if protected.get(name) != seal.files.get(name))
        fault = f"protected files differ from the seal: {', '.join(changed)}" if changed else ""
    return _seen(workspace, store, contract, fault)


def _seen(workspace: Workspace, store: SessionStore, contract: str, fault: str) -> WorkspaceSeen:
    config = workspace.config
    objective = config.objective
    best = store.best(contract)
    return WorkspaceSeen(
        config.name, str(workspace.root), contract, objective.metric, objective.unit,
        objective.direction == "lower", _changed(workspace, best), _best(store, contract, best), fault,
        store.baseline_trial(contract),
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
    score = standing_score(store, best)
    trial = store.trial(best.trial_id) if best.trial_id and score is None else None
    score = trial.score if trial is not None else score
    since = store.best_history(contract)[:1]
    return Best(best.id, score, since[0].since_s if since else best.created_s, best.overlay, best.trial_id)
