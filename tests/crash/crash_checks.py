"""What must hold of a workspace after a command on it was killed, read without the product's help."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from crash_workspace import MUTABLE

STATE = ".kerneldeck"
Files: TypeAlias = dict[str, tuple[str, int]]  # SHA-256 and mode by path
TrialRow: TypeAlias = tuple[str, str, str, str, float | None, int | None]


@dataclass(frozen=True, slots=True)
class History:
    """What the database of a workspace says; empty when there is none yet."""

    ended: dict[int, TrialRow]  # candidate, mode, purpose, status, score, size of the result
    open_trials: list[int]
    decisions: list[str]  # their verdicts
    bests: list[str]  # ids of checkpoints, the standing one last
    running_sweeps: list[int]  # of commands; detached ones wait to go on
    sweeps: dict[int, str]  # where each stands
    screened: dict[int, list[str]]  # by sweep the candidates of the screening trials that count
    open_writes: list[int]
    contents: set[str]  # SHA-256 of everything that a row of files names
    faults: list[str]

    @property
    def best(self) -> str:
        return self.bests[-1] if self.bests else ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A workspace at rest."""

    files: Files
    history: History

    @property
    def mutable(self) -> Files:
        return {name: self.files[name] for name in MUTABLE}


def snapshot(root: Path) -> Snapshot:
    return Snapshot(read_files(root), read_history(root))


def read_files(root: Path) -> Files:
    """Every file of the workspace outside its state folder."""
    found = (path for path in root.rglob("*") if path.is_file())
    names = (path.relative_to(root).as_posix() for path in found)
    return {name: _version(root / name) for name in names if not name.startswith(f"{STATE}/")}


def _version(path: Path) -> tuple[str, int]:
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode & 0o777


def read_history(root: Path) -> History:
    """The history as it is on disk, read from a copy so that nothing is repaired by looking."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("state.sqlite3", "state.sqlite3-wal", "state.sqlite3-journal"):
            if (root / STATE / name).exists():
                shutil.copy(root / STATE / name, folder)
        with closing(sqlite3.connect(Path(folder, "state.sqlite3"))) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'trials'").fetchone():
                return History({}, [], [], [], [], {}, {}, [], set(), [])
            return _history(connection)


def _history(connection: sqlite3.Connection) -> History:
    def column(sql: str) -> list[Any]:
        return [value for (value,) in connection.execute(sql)]

    trials = connection.execute(
        "SELECT id, candidate_id, mode, purpose, status, score, LENGTH(payload)"
        " FROM trials LEFT JOIN results ON trial_id = id WHERE status IS NOT NULL"
    )
    damage = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    damage += [f"dangling row: {tuple(row)}" for row in connection.execute("PRAGMA foreign_key_check")]
    return History(
        ended={row[0]: tuple(row[1:]) for row in trials},
        open_trials=column("SELECT id FROM trials WHERE status IS NULL"),
        decisions=column("SELECT verdict FROM decisions ORDER BY id"),
        bests=column("SELECT checkpoint_id FROM bests ORDER BY id"),
        running_sweeps=column("SELECT id FROM sweeps WHERE state = 'running' AND NOT detached"),
        sweeps=dict(connection.execute("SELECT id, state FROM sweeps ORDER BY id")),
        screened=_screened(connection),
        open_writes=column("SELECT id FROM journal WHERE state = 'intent'"),
        contents=set(_contents(connection)),
        faults=damage,
    )


def _screened(connection: sqlite3.Connection) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    rows = connection.execute(
        "SELECT sweep_id, candidate_id FROM trials WHERE purpose = 'screen' AND status IS NOT NULL"
        " AND status NOT IN ('cancelled', 'infra') ORDER BY id"
    )
    for sweep, candidate in rows:
        found.setdefault(sweep, []).append(candidate)
    return found


def _contents(connection: sqlite3.Connection) -> Iterator[str]:
    sources = (("checkpoints", "files"), ("candidates", "files"), ("seals", "files"),
               ("journal", "old"), ("journal", "new"))  # fmt: skip
    for table, column in sources:
        for (text,) in connection.execute(f"SELECT {column} FROM {table}"):
            yield from (sha256 for sha256, _ in json.loads(text).values())


def whole_faults(now: Files, old: Snapshot, new: Snapshot) -> list[str]:
    """Right after the kill: every file old or new, and beside them only our own temporary files."""
    faults = [f"{name} is missing" for name in old.files.keys() - now.keys()]
    for name, version in now.items():
        if name in old.files and version not in (old.files[name], new.files[name]):
            faults.append(f"{name} is neither old nor new")
        if name not in old.files and version != new.files.get(name) and not _is_temporary(name):
            faults.append(f"{name} was not there before")
    return faults


def _is_temporary(name: str) -> bool:
    base = Path(name).name
    return base.startswith(".kerneldeck-") and base.endswith(".tmp")


def settled_faults(now: Files, old: Snapshot, new: Snapshot) -> list[str]:
    """After recovery: all files old or all new, and nothing beside them."""
    if now in (old.files, new.files):
        return []
    extra = sorted(now.keys() - old.files.keys() - new.files.keys())
    changed = sorted(name for name in now.keys() & old.files.keys() if now[name] != old.files[name])
    return [f"neither all old nor all new: {changed or 'none'} changed, beside them {extra or 'nothing'}"]


def kept_faults(before: History, after: History, told: dict[int, tuple[str, float | None]]) -> list[str]:
    """Every trial that had ended is there as it was, also those that the process said had ended.

    So are the decisions, and what stood as the best before.
    """
    faults = []
    for what in ("decisions", "bests"):
        had, has = getattr(before, what), getattr(after, what)
        if has[: len(had)] != had:
            faults.append(f"{what} were {had} and are {has}")
    for number, row in before.ended.items():
        if after.ended.get(number) != row:
            faults.append(f"trial {number} was {row} and is {after.ended.get(number)}")
    for number, said in told.items():
        kept = after.ended.get(number)
        if kept is None or (kept[3], kept[4]) != said:
            faults.append(f"trial {number} was told to have ended {said} and is {kept}")
    return faults


def resumed_faults(now: Snapshot, end: Snapshot) -> list[str]:
    """A sweep that went on has come to what it comes to undisturbed, each candidate counted once."""
    faults = []
    if now.files != end.files:
        faults.append("the sweep that went on did not lead to the files of an undisturbed one")
    for what in ("bests", "decisions", "sweeps", "screened"):
        is_now, should = getattr(now.history, what), getattr(end.history, what)
        if is_now != should:
            faults.append(f"{what} are {is_now} and should be {should}")
    return faults


def rest_faults(root: Path, history: History) -> list[str]:
    """Nothing is open, damaged or left over, and all contents that rows name are there, intact."""
    state = root / STATE
    faults = [
        *history.faults,
        *(f"trial {number} is still open" for number in history.open_trials),
        *(f"sweep {number} still runs" for number in history.running_sweeps),
        *(f"write {number} is still open" for number in history.open_writes),
    ]
    left = [*state.glob("staging/*"), *state.glob("scratch/*"), *state.glob("linked/*.tmp"),
            *state.glob("blobs/*/.writing-*")]  # fmt: skip
    faults += [f"{path.relative_to(root)} is left over" for path in left]
    kept = _kept(state)
    faults += [f"content {sha256[:12]} is not kept" for sha256 in history.contents - kept.keys()]
    faults += [f"{path.relative_to(root)} is damaged" for sha256, path in kept.items() if path.name != sha256]
    return faults + [f"{STATE}/{name} is empty" for name in ("workspace", ".gitignore") if
                     not (state / name).read_bytes()]  # fmt: skip


def _kept(state: Path) -> dict[str, Path]:
    """Where the contents that are kept lie, by their SHA-256."""
    blobs = (path for path in state.glob("blobs/??/*") if not path.name.startswith(".writing-"))
    return {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in blobs}


def processes_of(root: Path) -> list[int]:
    """Living processes that run in the workspace or for it, by their folder and their environment."""
    text = str(root).encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and _belongs(process, text):
            found.append(int(process.name))
    return found


def hosts_of(root: Path) -> list[int]:
    """Hosts that serve the workspace, or are about to."""
    words = f"host\0serve\0-C\0{root}\0".encode()
    return [pid for pid, line in _command_lines() if words in line]


def _command_lines() -> Iterator[tuple[int, bytes]]:
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with suppress(OSError):
                yield int(process.name), (process / "cmdline").read_bytes()


def _belongs(process: Path, text: bytes) -> bool:
    try:
        environment = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    ours = (b"KERNELDECK_RESULT=", b"PWD=")
    return any(entry.startswith(ours) and text in entry for entry in environment)
