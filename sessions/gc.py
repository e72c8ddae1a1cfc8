"""Keeping the state folder within its quotas: oldest samples, blobs and staging folders go first.

What a best or checkpoint rests on never goes, and no trial's row does: only the samples and output
behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.targets.remove_tree import remove_tree
from sessions.faults import storing
from sessions.state_dir import StatePlace
from sessions.store import SessionStore

KEPT_WRITES = 50  # the newest journal rows whose contents always stay

_PROTECTED_TRIALS = """
    SELECT id FROM trials WHERE status IS NULL
    UNION SELECT id FROM trials WHERE purpose = 'gate' AND candidate_id IN (SELECT id FROM checkpoints)
    UNION SELECT trial_id FROM checkpoints WHERE trial_id IS NOT NULL
    UNION SELECT t.id FROM trials t JOIN decisions d ON d.id = t.decision_id
        WHERE d.candidate_id IN (SELECT id FROM checkpoints) OR d.best_id IN (SELECT id FROM checkpoints)
"""


@dataclass(frozen=True, slots=True)
class Quotas:
    """Bytes each area may take; None leaves it as it is.

    `samples_bytes`: results and captured output together. `blobs_bytes`: contents that nothing
    protects. `staging_bytes`: staging folders and linked copies.
    """

    samples_bytes: int | None = None
    blobs_bytes: int | None = None
    staging_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """One area before and after; `protected_bytes` of it were not to be touched. Sizes in bytes."""

    before_bytes: int
    freed_bytes: int
    removed: int
    protected_bytes: int

    @property
    def after_bytes(self) -> int:
        return self.before_bytes - self.freed_bytes


@dataclass(frozen=True, slots=True)
class GcReport:
    """What was removed, or with `dry_run` would be."""

    samples: Area
    blobs: Area
    staging: Area
    dry_run: bool

    @property
    def freed_bytes(self) -> int:
        return self.samples.freed_bytes + self.blobs.freed_bytes + self.staging.freed_bytes


@dataclass(frozen=True, slots=True)
class _Item:
    """Something that may be removed whole, with its bytes."""

    name: str
    bytes: int
    protected: bool = False


def collect(store: SessionStore, quotas: Quotas, dry_run: bool = False) -> GcReport:
    """Remove the oldest of each area until it is within its quota. Needs the workspace held.

    StorageFault when something cannot be removed; what went before stays removed.
    """
    samples, staging, blobs = _samples(store), _staging(store.place), _blobs(store)
    protected_bytes = sum(blob.bytes for blob in blobs if blob.protected)
    going = (
        _over(samples, quotas.samples_bytes),
        _over(blobs, None if quotas.blobs_bytes is None else quotas.blobs_bytes + protected_bytes),
        _over(staging, quotas.staging_bytes),
    )
    if not dry_run:
        _remove_staging(store.place, going[2])
        _remove_samples(store, going[0])
        for blob in going[1]:
            store.blobs.remove(blob.name)
    return GcReport(_area(samples, going[0]), _area(blobs, going[1]), _area(staging, going[2]), dry_run)


def reachable_blobs(store: SessionStore) -> set[str]:
    """SHA-256 of every content that a checkpoint, seal, running sweep, unfinished or recent write names."""
    sets = [checkpoint.files for checkpoint in store.checkpoints()]
    sets += [seal.files for seal in store.seals()]
    for sweep in store.running_sweeps():
        found = (store.candidate(one) for one in sweep.plan.get("candidates", ()))
        sets += [candidate.files for candidate in found if candidate is not None]
    for row in (*store.unfinished_writes(), *store.journal(KEPT_WRITES)):
        sets += [row.old, row.new]
    return {version.sha256 for files in sets for version in files.values()}


def _samples(store: SessionStore) -> list[_Item]:
    """Results and output folders by trial, oldest first."""
    found = store.database.rows("SELECT trial_id, LENGTH(payload) FROM results")
    sizes = {int(trial): int(size) for trial, size in found}
    with storing("measure kept output", store.place.outputs):
        for folder in _entries(store.place.outputs):
            if folder.name.isdecimal():
                sizes[int(folder.name)] = sizes.get(int(folder.name), 0) + _bytes_in(folder)
    protected = {row[0] for row in store.database.rows(_PROTECTED_TRIALS)}
    return [_Item(str(trial), sizes[trial], trial in protected) for trial in sorted(sizes)]


def _blobs(store: SessionStore) -> list[_Item]:
    reachable = reachable_blobs(store)
    with storing("measure kept contents", store.place.blobs):
        found = [(store.blobs.path(name).stat(), name) for name in store.blobs.all()]
    found.sort(key=lambda pair: (pair[0].st_mtime_ns, pair[1]))
    return [_Item(name, size.st_size, name in reachable) for size, name in found]


def _staging(place: StatePlace) -> list[_Item]:
    with storing("measure staging folders", place.staging):
        found = _entries(place.staging) + _entries(place.linked)
        found.sort(key=lambda entry: (entry.lstat().st_mtime_ns, entry.name))
        return [_Item(str(entry.relative_to(place.folder)), _bytes_in(entry)) for entry in found]


def _over(items: Sequence[_Item], quota_bytes: int | None) -> list[_Item]:
    """The oldest unprotected items whose going brings the whole within the quota."""
    going: list[_Item] = []
    left_bytes = sum(item.bytes for item in items)
    for item in items:
        if quota_bytes is None or left_bytes <= quota_bytes:
            break
        if not item.protected:
            going.append(item)
            left_bytes -= item.bytes
    return going


def _remove_staging(place: StatePlace, going: Collection[_Item]) -> None:
    with storing("remove staging folders", place.staging):
        for item in going:
            remove_tree(place.folder / item.name)


def _remove_samples(store: SessionStore, going: Collection[_Item]) -> None:
    # Folders first: removing rows needs a little room on the disk, which they make.
    with storing("remove kept output", store.place.outputs):
        for item in going:
            remove_tree(store.place.output_of(int(item.name)))
    if not going:
        return
    trials = [(int(item.name),) for item in going]
    with store.database.transaction("remove old samples") as connection:
        connection.executemany("DELETE FROM results WHERE trial_id = ?", trials)
    store.database.shrink()


def _area(items: Sequence[_Item], going: Collection[_Item]) -> Area:
    return Area(
        before_bytes=sum(item.bytes for item in items),
        freed_bytes=sum(item.bytes for item in going),
        removed=len(going),
        protected_bytes=sum(item.bytes for item in items if item.protected),
    )


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _bytes_in(path: Path) -> int:
    """Bytes of a file, or of everything in a folder; what cannot be read counts as nothing."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(entry.lstat().st_size for entry in path.rglob("*") if entry.is_symlink() or entry.is_file())
