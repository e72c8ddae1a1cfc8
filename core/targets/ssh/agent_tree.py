"""Run trees: laid out fresh from the blobs for one trial, compared after it.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH108, PTH112, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from core.targets.regular_file import NotRegular, read_regular
    from core.targets.ssh.agent_spare import files_kept, names_inside
    from core.targets.ssh.agent_store import CHUNK_BYTES, Identity, Store, identity, seal, sealed
    from core.targets.ssh.wire import Fault, Json

    Rows = list[list[Any]]
else:
    from agent_spare import files_kept, names_inside
    from agent_store import CHUNK_BYTES, identity, seal, sealed
    from regular_file import NotRegular, read_regular
    from wire import Fault

LINK_FROM_BYTES = 1 << 20
LINK_FROM_FILES = 200
MOST_GROWN_BYTES = 16 << 20  # of a protected file, to be read for the difference


class Tree:
    """One folder with the files of a manifest. Protected files are always copies.

    Others are links to the read-only blobs where they are large or many: those have mode 0444 or 0555.
    """

    def __init__(self, store: Store, spec: Json) -> None:
        self.store = store
        self.files: Rows = spec["files"]
        self.folders: list[str] = spec["folders"]
        self.protected: set[str] = set(spec["protected"])
        self.copied: set[str] = set(spec["copied"]) | self.protected
        self.many = len(self.files) > LINK_FROM_FILES
        self.lent: dict[str, tuple[str, str, Identity]] = {}

    def build(self, folder: str) -> None:
        """OSError when the disk does not take it, Fault when a content is not there any more."""
        os.mkdir(folder)
        made = {folder}
        for name in self.folders:
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        for path, sha256, size, mode in self.files:
            place = f"{folder}/{path}"
            parent = os.path.dirname(place)
            if parent not in made:
                os.makedirs(parent, exist_ok=True)
                made.add(parent)
            self._put(path, sha256, size, mode, place)

    def renew(self, folder: str) -> bool:
        """The same out of what an earlier trial left of its tree; False when that is of no use.

        Afterwards nothing can be told from a tree that was built.
        """
        inside = names_inside([row[0] for row in self.files], self.folders)
        kept = files_kept(folder, inside)
        if kept is None:
            return False
        for path, sha256, size, mode in self.files:
            if path in self.copied or not self._is_lent(path, sha256, size, mode, kept.get(path)):
                place = f"{folder}/{path}"
                if path in kept:
                    os.unlink(place)
                self._put(path, sha256, size, mode, place)
        return True

    def _is_lent(self, path: str, sha256: str, size: int, mode: int, found: tuple[int, int] | None) -> bool:
        """Whether the file that was found is the kept content itself, as if it had just been linked."""
        executable = bool(mode & 0o100)
        shared = self.store.path(sha256) + ("x" if executable else "")
        try:
            status = os.stat(shared)
        except FileNotFoundError:
            return False
        kept = sealed(size, executable)
        if found != (status.st_dev, status.st_ino) or identity(shared) != kept:
            return False
        self.lent[path] = (shared, sha256, kept)
        return True

    def _put(self, path: str, sha256: str, size: int, mode: int, place: str) -> None:
        try:
            if path in self.copied or not (self.many or size >= LINK_FROM_BYTES):
                self._copy(sha256, place, mode & 0o777)
            else:
                self._lend(path, sha256, size, place, mode)
        except FileNotFoundError:
            self._drop_spoilt()
            raise Fault("sync", "a file's content is not kept there any more", "run it again") from None

    def _drop_spoilt(self) -> None:
        """All at once: asked again, the trial has them all."""
        for sha256 in {row[1] for row in self.files}:
            with suppress(OSError):
                if not is_whole(self.store.path(sha256), sha256):
                    self.store.drop(sha256)

    def _copy(self, sha256: str, place: str, mode: int) -> None:
        """A content that is no longer what its hash says is dropped, and counts as gone."""
        if copy(self.store.path(sha256), place, mode) != sha256:
            self._drop(sha256)

    def _drop(self, sha256: str) -> NoReturn:
        self.store.drop(sha256)
        raise FileNotFoundError

    def _lend(self, path: str, sha256: str, size: int, place: str, mode: int) -> None:
        kept = sealed(size, bool(mode & 0o100))
        shared = self._shared(sha256, kept) if mode & 0o100 else self.store.path(sha256)
        if identity(shared) != kept:
            self._drop(sha256)
        try:
            os.link(shared, place)
        except FileNotFoundError:
            raise
        except OSError:  # no (more) links on this file system
            self._copy(sha256, place, mode & 0o777)
        else:
            self.lent[path] = (shared, sha256, kept)

    def _shared(self, sha256: str, kept: Identity) -> str:
        """The blob of executables: mode bits belong to the content, so that they have one of their own."""
        shared = self.store.path(sha256) + "x"
        if identity(shared) != kept:
            beside = f"{shared}-{os.getpid()}"
            self._copy(sha256, beside, 0o555)
            descriptor = os.open(beside, os.O_RDONLY)
            try:
                seal(descriptor, 0o555)
            finally:
                os.close(descriptor)
            os.rename(beside, shared)
        return shared

    def written_into(self) -> list[str]:
        """Names of linked files that the trial wrote into; their blobs are dropped, for no later trial.

        Those of which it changed the mode have it again.
        """
        changed = []
        for name, (shared, sha256, kept) in self.lent.items():
            found = identity(shared)
            if found[:2] != kept[:2]:
                changed.append(name)
                self.store.drop(sha256)
            elif found != kept:
                with suppress(OSError):
                    os.chmod(shared, stat.S_IMODE(kept[2]))
        return sorted(changed)

    def findings(self, folder: str) -> Rows:
        """[name, "sha256", hex] of each protected file now, or [name, why not, words]."""
        sizes = {path: size for path, _, size, _ in self.files}
        return [[name, *_finding(folder, name, sizes.get(name, 0))] for name in sorted(self.protected)]

    def first_changed(self, folder: str, findings: Rows) -> bytes:
        """The content of the first protected file that differs, where it is one."""
        sealed = {path: (sha256, size) for path, sha256, size, _ in self.files}
        for name, kind, word in findings:
            if kind != "sha256" or word != sealed[name][0]:
                return (
                    _content(f"{folder}/{name}", sealed[name][1] + MOST_GROWN_BYTES)
                    if kind == "sha256"
                    else b""
                )
        return b""


def _finding(folder: str, name: str, size: int) -> list[str]:
    if not os.path.isdir(folder):
        return ["no_folder", ""]
    parent = os.path.dirname(f"{folder}/{name}")
    inside = os.path.dirname(name)
    if os.path.realpath(parent) != os.path.normpath(os.path.join(os.path.realpath(folder), inside)):
        return ["folder_link", ""]
    try:
        found = read_up_to(f"{folder}/{name}", size + MOST_GROWN_BYTES)
    except NotRegular as error:
        return ["replaced", str(error)]
    except (FileNotFoundError, NotADirectoryError):
        return ["removed", ""]
    except OSError as error:
        return ["unreadable", error.strerror or ""]
    return ["sha256", hashlib.sha256(found).hexdigest()]


def _content(path: str, most_bytes: int) -> bytes:
    try:
        return read_up_to(path, most_bytes)
    except OSError:
        return b""


def read_up_to(path: str, most_bytes: int) -> bytes:
    """See `regular_file`: never waits, never follows a link in the last place."""
    return read_regular(Path(path), most_bytes)


def copy(source: str, place: str, mode: int) -> str:
    """The SHA-256 of what was copied."""
    hashed = hashlib.sha256()
    with open(source, "rb", buffering=0) as old:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb", buffering=0) as new:
            for piece in iter(lambda: old.read(CHUNK_BYTES), b""):
                hashed.update(piece)
                left = memoryview(piece)
                while left:
                    left = left[new.write(left) or 0 :]
            os.fchmod(descriptor, mode)
    return hashed.hexdigest()


def is_whole(path: str, sha256: str) -> bool:
    hashed = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        for piece in iter(lambda: file.read(CHUNK_BYTES), b""):
            hashed.update(piece)
    return hashed.hexdigest() == sha256
