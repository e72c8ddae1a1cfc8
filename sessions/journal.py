"""The one path by which the workspace's files change: journalled, atomic per file, finished after a crash.

A write first keeps what is there as blobs, then puts every new file on disk beside its place (so a full
disk shows before anything changed), then commits an intent row, renames file by file, and closes the
row. A process killed anywhere leaves each file old or new; `finish` completes the row later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ChangedMeanwhile, ConfigFault, KerneldeckError, StorageFault
from core.records import FileSet, FileVersion
from sessions.atomic_file import remove_quietly
from sessions.faults import shown, shown_version, storing
from sessions.progress import JournalRow
from sessions.store import SessionStore
from sessions.workspace_files import ReadFile, WorkspaceFiles


@dataclass(frozen=True, slots=True)
class _Change:
    """One file on its way from `old` to `new` (None: absent); `temp` is the new one, staged."""

    name: str
    old: FileVersion | None
    new: FileVersion | None
    temp: Path | None = None


class JournaledFiles:
    """The workspace's mutable files; a `core.store.Files`. Writing needs the workspace held."""

    def __init__(self, root: Path, mutable: Sequence[str], store: SessionStore) -> None:
        self.files = WorkspaceFiles(root)
        self.mutable = tuple(mutable)
        self._store = store

    def versions(self) -> FileSet:
        """Versions of the mutable files as they are now; keeps nothing, for readers."""
        return self.files.versions(self.mutable)

    def current(self) -> FileSet:
        """Versions of the mutable files as they are now, contents kept as blobs; absent ones left out."""
        found: dict[str, FileVersion] = {}
        for name in self.mutable:
            read = self.files.read(name)
            if read is not None:
                found[name] = FileVersion(self._store.blobs.put(read.content), read.executable)
        return found

    def write(self, files: FileSet, expected: Mapping[str, str], reason: str) -> int:
        """Journal and write `files`, all mutable files as they are to be; the journal's row.

        A mutable file that `files` lacks is removed. `expected` gives SHA-256 of files as the caller saw
        them ("" for absent). ChangedMeanwhile: a file differs, nothing was written. StorageFault: the
        disk refused, and what was written was put back. ConfigFault: not a mutable file.
        """
        self._refuse_others(files)
        old = self.current()
        _refuse_changed(old, expected)
        changes = self._stage(_changes(old, files))
        try:
            row_id = self._store.begin_write(old, files, reason)
        except KerneldeckError:
            _drop(changes)
            raise
        self._carry_out(row_id, changes)
        self._close(row_id)
        return row_id

    def finish(self, row: JournalRow) -> list[str]:
        """Complete an interrupted write; a sentence for every file that it changed or had to leave.

        A file that still is as before the write becomes new; one that is neither was edited since and
        stays as it is, its content kept as a blob. StorageFault: the disk refused, the row stays open.
        """
        said: list[str] = []
        left = False
        for change in _changes(row.old, row.new):
            sentence, stays = self._finish_file(change)
            left |= stays
            if sentence:
                said.append(f"{sentence} (interrupted write: {row.reason})")
        self._store.end_write(row.id, "left" if left else "done", "; ".join(said))
        return said

    def _finish_file(self, change: _Change) -> tuple[str, bool]:
        """What was done, "" for nothing; and whether the file stays neither old nor new."""
        try:
            now = self.files.read(change.name)
            version = None if now is None else now.version
            if version == change.new:
                return "", False
            # The same content with another mode is still ours to finish.
            ours = _sha256(version) in (_sha256(change.old), _sha256(change.new))
            content = self._new_content(change) if ours else None
        except (ConfigFault, StorageFault) as fault:
            return f"left {shown(change.name)} as it is: {fault.sentence}", True
        if not ours:
            return self._keep_edited(change.name, now), True
        self._replace(change, content)
        return f"finished writing {shown(change.name)}", False

    def _new_content(self, change: _Change) -> bytes | None:
        return None if change.new is None else self._store.blobs.get(change.new.sha256)

    def _keep_edited(self, name: str, now: ReadFile | None) -> str:
        if now is None:
            return f"left {shown(name)} removed, as it was after the interruption"
        kept = shown_version(self._store.blobs.put(now.content))
        return f"left {shown(name)} as it was edited by hand, its content kept as {kept}"

    def _replace(self, change: _Change, content: bytes | None) -> None:
        with storing(f"write {shown(change.name)}", self.files.root):
            temp = None
            if content is not None and change.new is not None:
                temp = self.files.stage(change.name, content, change.new.executable)
            self.files.place(change.name, temp)

    def _refuse_others(self, files: FileSet) -> None:
        for name in files:
            if name not in self.mutable:
                raise ConfigFault(
                    f"{shown(name)} is not a mutable file of this workspace",
                    "only files under `mutable` in kerneldeck.toml are ever written",
                )

    def _stage(self, changes: Sequence[_Change]) -> list[_Change]:
        """The changes with their new files on disk beside their places."""
        self._refuse_one_place_twice(changes)
        staged: list[_Change] = []
        try:
            for change in changes:
                staged.append(self._staged(change))
        except KerneldeckError:
            _drop(staged)
            raise
        return staged

    def _staged(self, change: _Change) -> _Change:
        if change.new is None:
            return change
        content = self._store.blobs.get(change.new.sha256)
        with storing(f"write {shown(change.name)}", self.files.root):
            temp = self.files.stage(change.name, content, change.new.executable)
        return replace(change, temp=temp)

    def _refuse_one_place_twice(self, changes: Sequence[_Change]) -> None:
        places: dict[Path, _Change] = {}
        for change in changes:
            other = places.setdefault(self.files.real_path(change.name), change)
            if other.new != change.new:
                raise ConfigFault(
                    f"{shown(other.name)} and {shown(change.name)} are one file, with two contents to write",
                    "name one of them under `mutable` in kerneldeck.toml",
                )

    def _carry_out(self, row_id: int, changes: Sequence[_Change]) -> None:
        begun: list[_Change] = []
        try:
            for change in changes:
                if _sha256(self.files.version(change.name)) not in (_sha256(change.old), _sha256(change.new)):
                    raise _changed(change.name)
                begun.append(change)
                with storing(f"write {shown(change.name)}", self.files.root):
                    self.files.place(change.name, change.temp)
        except KerneldeckError as fault:
            _drop(changes)
            self._undo(row_id, begun, fault)
            raise

    def _close(self, row_id: int) -> None:
        try:
            self._store.end_write(row_id, "done")
        except StorageFault as fault:
            raise StorageFault(
                f"the files are written and whole, but {fault.sentence}",
                f"{fault.hint}; the next command that writes then closes the journal",
            ) from fault

    def _undo(self, row_id: int, begun: Sequence[_Change], cause: KerneldeckError) -> None:
        try:
            for change in reversed(begun):
                if _sha256(self.files.version(change.name)) == _sha256(change.new):
                    content = None if change.old is None else self._store.blobs.get(change.old.sha256)
                    self._replace(replace(change, old=change.new, new=change.old), content)
            self._store.end_write(row_id, "undone", cause.sentence)
        except KerneldeckError as fault:
            raise StorageFault(
                f"{cause.sentence}; putting back what was there failed too ({fault.sentence})",
                "every file is whole, old or new; the next command that writes finishes the change",
            ) from fault


if TYPE_CHECKING:
    from core.store import Files

    def _is_files(files: JournaledFiles) -> Files:
        return files


def _changes(old: FileSet, new: FileSet) -> list[_Change]:
    names = sorted({*old, *new})
    return [_Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _drop(changes: Sequence[_Change]) -> None:
    for change in changes:
        if change.temp is not None:
            remove_quietly(change.temp)


def _refuse_changed(now: FileSet, expected: Mapping[str, str]) -> None:
    for name, sha256 in expected.items():
        if _sha256(now.get(name)) != sha256:
            raise _changed(name)


def _changed(name: str) -> ChangedMeanwhile:
    return ChangedMeanwhile(
        f"{shown(name)} changed meanwhile; nothing was written",
        "look at the change, then run the command again on the file as it is now",
    )


def _sha256(version: FileVersion | None) -> str:
    return "" if version is None else version.sha256
