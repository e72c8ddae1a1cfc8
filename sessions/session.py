"""A workspace opened: for reading beside anybody, for writing as its only holder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.engine import Engine, contract_id, contract_of
from core.errors import ConfigFault, SealFault
from core.events import Event, Note
from core.records import FileSet, FileVersion
from core.targets.job import TargetFacts
from core.targets.staging import Materials
from core.words import JsonObject
from core.workspace.config import CONFIG_NAME, Workspace
from core.workspace.finding import find_workspace
from core.workspace.needed import needed_files
from core.workspace.toml_reader import read_workspace
from sessions.journal import JournaledFiles
from sessions.lock import hold
from sessions.recovery import recover
from sessions.state_dir import StatePlace, locate
from sessions.store import SessionStore, open_read, open_write
from sessions.where import Here, Parts, Where
from sessions.workspace_files import WorkspaceFiles

if TYPE_CHECKING:
    from core.sweep.mailbox import Mailbox
    from core.targets.ssh.host_keys import AskHostKey

    OnSweep = Callable[[int, Mailbox], None]  # the sweep's id, and the way to it

Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls an operation: the face (cli, tui, mcp), the command line for messages, how long to wait."""

    actor: str = "cli"
    command: str = "kerneldeck"
    wait_s: float = 0.0
    ask_host_key: AskHostKey | None = None  # on a terminal: whether to trust a host that is not known
    detached: bool = False  # the work goes on without whoever asked for it
    on_sweep: OnSweep | None = None  # gets each sweep's mailbox as it begins


@dataclass(frozen=True, slots=True)
class Held:
    """A workspace that this process holds for writing, for one call after the other."""

    root: Path
    place: StatePlace
    store: SessionStore


@dataclass(frozen=True, slots=True)
class Session:
    """A workspace held for writing, recovered and sealed, for one call."""

    workspace: Workspace
    place: StatePlace
    store: SessionStore
    files: JournaledFiles
    engine: Engine
    sealed: FileSet
    where: Where
    facts: TargetFacts
    caller: Caller


@dataclass(frozen=True, slots=True)
class Reading:
    """A workspace looked at; `store` is None while it has no state yet. Changes nothing."""

    workspace: Workspace
    place: StatePlace
    store: SessionStore | None
    contract_id: str
    contract: JsonObject
    protected: FileSet
    sealed: FileSet | None


def home_expanded(text: str) -> Path:
    """`text` as a path, a leading `~` being somebody's home; ConfigFault where there is none."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigFault(f"{text}: that home folder is not known here", "write the path out") from None


@contextmanager
def open_session(
    start: Path, caller: Caller, tell: Tell, reseal: bool = False, where: Where | None = None
) -> Iterator[Session]:
    """Hold the workspace for one call; see `hold_workspace` and `begin_call`."""
    with hold_workspace(start, caller.command) as held:
        yield begin_call(held, caller, tell, reseal, where)


@contextmanager
def hold_workspace(start: Path, command: str, socket: str = "", wait_s: float = 0.0) -> Iterator[Held]:
    """Hold the workspace at or above `start` for writing, its state opened and brought to the newest schema.

    Busy when another process holds it for longer than `wait_s`.
    """
    workspace = read_workspace(find_workspace(start))
    place = locate(workspace.root, workspace.config.state_dir)
    with hold(place, command, wait_s, socket), open_write(place) as store:
        yield Held(workspace.root, place, store)


def begin_call(
    held: Held, caller: Caller, tell: Tell, reseal: bool = False, where: Where | None = None
) -> Session:
    """The workspace as it is now: what a crash left put right, the seal checked (unless about to be renewed).

    Trials run `where` says, here by default.
    """
    workspace = read_workspace(held.root)
    files = JournaledFiles(workspace.root, workspace.config.files.mutable, held.store)
    for sentence in recover(held.store, files):
        tell(Note(f"recovered: {sentence}"))
    sealed = _sealed(workspace, held.store, keep=not reseal)
    return _session(workspace, held, files, sealed, caller, tell, where or Here())


def _session(
    workspace: Workspace,
    held: Held,
    files: JournaledFiles,
    sealed: FileSet,
    caller: Caller,
    tell: Tell,
    where: Where,
) -> Session:
    place, store = held.place, held.store
    facts = where.facts(store)
    description = contract_of(workspace.config, sealed, facts)
    contract = contract_id(description)
    store.put_contract(contract, description)
    target = where.target(Parts(place, materials(workspace, sealed), store.blobs, workspace.config.objective))
    engine = Engine(workspace, store, files, target, contract, caller.actor, place.outputs, tell)
    return Session(workspace, place, store, files, engine, sealed, where, facts, caller)


def materials(workspace: Workspace, sealed: FileSet) -> Materials:
    """What staging folders hold beside the candidate: the rest of what the workspace needs."""
    named = {*workspace.config.files.mutable, *sealed}
    others = [
        name for name in needed_files(workspace.root, workspace.config.files.needed) if name not in named
    ]
    return Materials(workspace.root, sealed, tuple(others))


def _sealed(workspace: Workspace, store: SessionStore, keep: bool) -> FileSet:
    """The seal that stands, made now if there is none; SealFault when the files differ from it."""
    found = read_protected(workspace)
    for name, version in found.items():
        if not store.blobs.has(version.sha256):
            store.blobs.put((workspace.root / name).read_bytes())
    seal = store.seal()
    if seal is None:
        return store.put_seal(found).files
    if not keep:
        return seal.files
    changed = sorted(name for name in {*found, *seal.files} if found.get(name) != seal.files.get(name))
    if changed:
        raise SealFault(
            f"protected files differ from the seal: {', '.join(changed)}",
            "put them back, or accept the change and measure again: kerneldeck reseal",
        )
    return seal.files


def read_protected(workspace: Workspace) -> FileSet:
    """Versions of the protected files as they are now; ConfigFault names one that is missing."""
    files = WorkspaceFiles(workspace.root)
    found: dict[str, FileVersion] = {}
    for name in workspace.config.files.protected:
        version = files.version(name)
        if version is None:
            raise ConfigFault(
                f"the protected file {name} is missing", f"put it back, or correct {CONFIG_NAME}"
            )
        found[name] = version
    return found


@contextmanager
def open_reading(start: Path, where: Where | None = None) -> Iterator[Reading]:
    """Look at a workspace without a lock, as its trials on `where` see it; nothing is made or changed."""
    workspace = read_workspace(find_workspace(start))
    place = locate(workspace.root, workspace.config.state_dir)
    store = open_read(place)
    try:
        yield _reading(workspace, place, store, where or Here())
    finally:
        if store is not None:
            store.close()


def reading_of(place: StatePlace, store: SessionStore, where: Where) -> Reading:
    """The workspace as it is now, over a state that is open already."""
    return _reading(read_workspace(place.workspace), place, store, where)


def _reading(workspace: Workspace, place: StatePlace, store: SessionStore | None, where: Where) -> Reading:
    protected = read_protected(workspace)
    seal = store.seal() if store else None
    sealed = seal.files if seal else None
    description = contract_of(workspace.config, sealed or protected, where.facts(store))
    return Reading(workspace, place, store, contract_id(description), description, protected, sealed)
