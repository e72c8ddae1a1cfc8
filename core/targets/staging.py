"""Staging folders: a candidate laid out beside copies of everything else, never in the user's folder."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.records import FileSet
from core.store import Blobs
from core.targets.job import Layout

LINK_FROM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Materials:
    """What every staging folder holds beside the candidate: sealed protected files, other needed files."""

    root: Path  # the workspace
    protected: FileSet
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """The laid-out folders of one job, one a slot (equal layouts share one), and its result's path."""

    folders: tuple[Path, ...]
    result_file: Path
    lent: Mapping[Path, tuple[int, int]] = field(default_factory=dict)

    def remove(self) -> None:
        for folder in set(self.folders):
            shutil.rmtree(folder, ignore_errors=True)
        self.result_file.unlink(missing_ok=True)


class Staging:
    """Lays jobs out under `folder` and checks afterwards what they changed.

    Small files are copied. A large one is copied once to a store of ours, read-only, and linked from
    there, so that a trial that writes into it cannot reach the user's file.
    """

    def __init__(self, folder: Path, linked: Path, materials: Materials, blobs: Blobs) -> None:
        self.folder = folder
        self.linked = linked
        self.materials = materials
        self.blobs = blobs

    def lay_out(self, slots: tuple[Layout, ...]) -> Stage:
        """OSError when the disk does not take it; nothing of it is left then."""
        self.folder.mkdir(parents=True, exist_ok=True)
        folders = {id(slot): self.folder / secrets.token_hex(8) for slot in slots}
        stage = Stage(
            tuple(folders[id(slot)] for slot in slots), self.folder / f"{secrets.token_hex(8)}.json", {}
        )
        try:
            lent: dict[Path, tuple[int, int]] = {}
            for slot in slots:
                if not folders[id(slot)].exists():
                    self._fill(folders[id(slot)], slot.mutable, lent)
            return Stage(stage.folders, stage.result_file, lent)
        except OSError:
            stage.remove()
            raise

    def _fill(self, folder: Path, mutable: FileSet, lent: dict[Path, tuple[int, int]]) -> None:
        folder.mkdir()
        for name in self.materials.others:
            source = self.materials.root / name
            status = source.stat()
            place = _place(folder, name)
            if status.st_size < LINK_FROM_BYTES:
                shutil.copy2(source, place)
            else:
                shared = self._shared_copy(source, status)
                os.link(shared, place)
                lent[shared] = _identity(shared)
        for files in (self.materials.protected, mutable):
            for name, version in files.items():
                place = _place(folder, name)
                place.write_bytes(self.blobs.get(version.sha256))
                if version.executable:
                    place.chmod(0o755)

    def _shared_copy(self, source: Path, status: os.stat_result) -> Path:
        """Our read-only copy of a large file as it is now; made once for each state of the file."""
        key = json.dumps([str(source), status.st_size, status.st_mtime_ns, status.st_ino])
        shared = self.linked / hashlib.sha256(key.encode()).hexdigest()
        if not shared.exists():
            self.linked.mkdir(parents=True, exist_ok=True)
            fresh = self.linked / f"{secrets.token_hex(8)}.tmp"
            shutil.copy2(source, fresh)
            fresh.chmod(0o555 if status.st_mode & 0o100 else 0o444)
            fresh.rename(shared)
        return shared

    def tampering(self, stage: Stage) -> str:
        """What a trial changed among the protected files, as a sentence with the first difference."""
        for folder in dict.fromkeys(stage.folders):
            for name, version in self.materials.protected.items():
                sentence = self._difference(folder, name, version.sha256)
                if sentence:
                    return sentence
        return ""

    def _difference(self, folder: Path, name: str, sha256: str) -> str:
        path = folder / name
        try:
            if path.is_symlink():
                return f"{name} was replaced by a link"
            found = path.read_bytes()
        except OSError:
            return f"{name} was removed"
        if hashlib.sha256(found).hexdigest() == sha256:
            return ""
        return f"{name} was changed: {_first_change(self.blobs.get(sha256), found)}"

    def drop_changed_copies(self, stage: Stage) -> list[str]:
        """Shared copies that a trial wrote into are dropped, so that no later trial sees them."""
        changed = [path for path, before in stage.lent.items() if _identity(path) != before]
        for path in changed:
            path.unlink(missing_ok=True)
        return [path.name for path in changed]


def _place(folder: Path, name: str) -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns


def _first_change(before: bytes, after: bytes) -> str:
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    changes = [
        line for line in difflib.unified_diff(old, new, n=0, lineterm="") if line[:2] not in ("--", "++")
    ]
    return " | ".join(line[:120] for line in changes[:3]) or "its bytes differ"
