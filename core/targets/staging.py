"""Staging folders: a candidate laid out beside copies of everything else, never in the user's folder."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from core.records import FileSet, fileset_id
from core.store import Blobs
from core.targets.job import Layout
from core.targets.regular_file import NotRegular, read_regular
from core.targets.remove_tree import remove_tree
from core.targets.texts import plain

LINK_FROM_BYTES = 1 << 20
_MOST_GROWN_BYTES = 16 << 20  # of a protected file, to be read for the difference
_TIME_STEP_NS = 2_000_000_000  # every file system keeps times at least as finely
_NO_LINKS = frozenset({errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
_Identity = tuple[int, int]  # bytes, and nanoseconds of the last change


@dataclass(frozen=True, slots=True)
class Materials:
    """What every staging folder holds beside the candidate: sealed protected files, other needed files."""

    root: Path  # the workspace
    protected: FileSet
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lent:
    """A file that is linked into a staging folder: its name there, the one linked, and its state before."""

    name: str
    shared: Path
    before: _Identity


@dataclass(frozen=True, slots=True)
class Stage:
    """The laid-out folders of one job, one a slot (equal layouts share one), below a folder of its own."""

    home: Path
    folders: tuple[Path, ...]
    lent: tuple[Lent, ...] = field(default=())

    @property
    def result_file(self) -> Path:
        return self.home / "result.json"

    @property
    def visits_file(self) -> Path:
        return self.home / "visits"

    def remove(self) -> None:
        """What cannot be removed now stays for the next recovery."""
        with suppress(OSError):
            remove_tree(self.home)


class Staging:
    """Lays jobs out under `folder` and checks afterwards what they changed.

    Small files are copied. A large one is copied once to `linked`, read-only, and linked from there, so
    that a trial that writes into it cannot reach the user's file.
    """

    def __init__(self, folder: Path, linked: Path, materials: Materials, blobs: Blobs) -> None:
        self.folder = folder
        self.linked = linked
        self.materials = materials
        self.blobs = blobs
        self._bytes: dict[str, int] = {}  # of each protected file

    def lay_out(self, slots: tuple[Layout, ...]) -> Stage:
        """OSError when the disk does not take it, StorageFault when a content is not kept any more.

        Nothing of it is left then.
        """
        home = self.folder / secrets.token_hex(8)
        ids = [fileset_id(slot.mutable) for slot in slots]
        folders = {id_: home / secrets.token_hex(4) for id_ in ids}
        stage = Stage(home, tuple(folders[id_] for id_ in ids))
        lent: list[Lent] = []
        try:
            home.mkdir(parents=True)
            for id_, slot in dict(zip(ids, slots, strict=True)).items():
                folders[id_].mkdir()
                self._fill(folders[id_], slot.mutable, lent)
        except BaseException:
            stage.remove()
            raise
        return Stage(home, stage.folders, tuple(lent))

    def _fill(self, folder: Path, mutable: FileSet, lent: list[Lent]) -> None:
        for name in self.materials.others:
            source = self.materials.root / name
            status = source.stat()
            place = _place(folder, name)
            if status.st_size < LINK_FROM_BYTES:
                shutil.copy2(source, place)
            else:
                shared = self._shared_copy(source, status)
                if _linked(shared, place):
                    lent.append(Lent(name, shared, _identity(shared)))
        for files in (self.materials.protected, mutable):
            for name, version in files.items():
                place = _place(folder, name)
                self._bytes[name] = place.write_bytes(self.blobs.get(version.sha256))
                if version.executable:
                    place.chmod(0o755)

    def _shared_copy(self, source: Path, status: os.stat_result) -> Path:
        """Our read-only copy of a large file as it is now; made once for each state of the file.

        A copy carries a time that follows from the file's own. One that does not was written into by a
        trial whose end nobody saw; a mode that does not was changed by one.
        """
        key = json.dumps([str(source), *_identity(source), status.st_ino])
        shared = self.linked / hashlib.sha256(key.encode()).hexdigest()
        time_ns = status.st_mtime_ns // _TIME_STEP_NS * _TIME_STEP_NS
        mode = 0o555 if status.st_mode & 0o100 else 0o444
        if _identity(shared) != (status.st_size, time_ns) or stat.S_IMODE(shared.stat().st_mode) != mode:
            self.linked.mkdir(parents=True, exist_ok=True)
            fresh = self.linked / f"{secrets.token_hex(8)}.tmp"
            try:
                shutil.copyfile(source, fresh)
                if _identity(source) != (status.st_size, status.st_mtime_ns):
                    raise OSError(errno.EBUSY, "changed while it was copied", str(source))
                fresh.chmod(mode)
                os.utime(fresh, ns=(time_ns, time_ns))
                fresh.replace(shared)
            except BaseException:
                fresh.unlink(missing_ok=True)
                raise
        return shared

    def tampering(self, stage: Stage) -> str:
        """What a trial changed among the protected files, as a sentence with the first difference."""
        for folder in dict.fromkeys(stage.folders):
            if self.materials.protected and not folder.is_dir():
                return "the whole folder was removed, protected files and all"
            for name, version in self.materials.protected.items():
                sentence = self._difference(folder, name, version.sha256)
                if sentence:
                    return sentence
        return ""

    def _difference(self, folder: Path, name: str, sha256: str) -> str:
        path = folder / name
        if Path(os.path.realpath(path.parent)) != Path(os.path.realpath(folder)) / Path(name).parent:
            return f"{name} was replaced: its folder is a link"
        try:
            found = read_regular(path, self._bytes[name] + _MOST_GROWN_BYTES)
        except NotRegular as error:
            return f"{name} was replaced: {error}"
        except (FileNotFoundError, NotADirectoryError):
            return f"{name} was removed"
        except OSError as error:
            return f"{name} can no longer be read: {error.strerror}"
        if hashlib.sha256(found).hexdigest() == sha256:
            return ""
        return f"{name} was changed: {first_change(self.blobs.get(sha256), found)}"

    def drop_changed_copies(self, stage: Stage) -> list[str]:
        """Names of the linked files that were written into; their copies are dropped, for no later trial."""
        changed = [lent for lent in stage.lent if _identity(lent.shared) != lent.before]
        for lent in changed:
            lent.shared.unlink(missing_ok=True)
        return sorted({lent.name for lent in changed})


def _place(folder: Path, name: str) -> Path:
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _linked(shared: Path, place: Path) -> bool:
    """Link, or copy where the file system has no (more) links; whether it is a link."""
    try:
        os.link(shared, place)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(shared, place)
        return False
    return True


def _identity(path: Path) -> _Identity:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (-1, -1)
    return status.st_size, status.st_mtime_ns


def first_change(before: bytes, after: bytes) -> str:
    """The first line that differs, as it was and as it is."""
    old, new = (content.decode("utf-8", "replace").split("\n") for content in (before, after))
    for number, (was, now) in enumerate(zip_longest(old, new), 1):
        if was != now:
            return f"line {number} was {_quoted(was)}, is {_quoted(now)}"
    return "its bytes differ"


def _quoted(line: str | None) -> str:
    return "absent" if line is None else repr(plain(line, 120))
