"""A folder of this machine as a remote tree: its files' names, contents by their hash, and mode bits.

Every small file is read for every trial, because a status can lie. Whoever cannot wait for that takes files
for what their status says, and reads them while the trial runs, before its result counts.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.errors import TargetFault
from core.targets.ssh.remote_sync import RemoteFile, RemoteTree
from core.targets.ssh.wire import safe_name
from core.targets.texts import plain

ALWAYS_HASHED_BELOW_BYTES = 64 << 10
SETTLED_AFTER_S = 2.0
_TO_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe is no reason to wait


class FileContents:
    """Contents that lie in files; what is asked for is read at that moment."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self.paths = dict(paths)

    def pieces(self, sha256: str, piece_bytes: int) -> Iterator[bytes]:
        with Path(self.paths[sha256]).open("rb") as file:
            while piece := file.read(piece_bytes):
                yield piece


@dataclass(frozen=True, slots=True)
class _Read:
    """A file as it was when it was last read: what its status said, when that was, and the SHA-256."""

    status: os.stat_result
    began_s: float
    sha256: str

    def agrees(self, status: os.stat_result) -> bool:
        """Whether `status` is that of the same file, unchanged, which had settled when it was read."""
        before, now = self.status, status
        same = (before.st_size, before.st_mtime_ns, before.st_ino, before.st_dev) == (
            now.st_size, now.st_mtime_ns, now.st_ino, now.st_dev,
        )  # fmt: skip
        return same and self.began_s - now.st_mtime >= SETTLED_AFTER_S

    def agrees_in_all(self, status: os.stat_result) -> bool:
        """The same for the time of its last change of any kind, which nobody can set."""
        same = self.status.st_ctime_ns == status.st_ctime_ns and self.status.st_mode == status.st_mode
        return same and self.agrees(status) and self.began_s - status.st_ctime >= SETTLED_AFTER_S


class FileHashes:
    """SHA-256 of files; a large one's is reused while its size, time and inode stay, once they had settled.

    A small file is always hashed: two edits within the clock's step leave size and time as they were.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Read] = {}

    def of(self, path: str | Path) -> tuple[str, os.stat_result]:
        descriptor = os.open(path, _TO_READ)
        try:
            return self.of_open(descriptor, str(path))
        finally:
            os.close(descriptor)

    def of_open(self, descriptor: int, path: str) -> tuple[str, os.stat_result]:
        """The same of the file that was opened as `path`; the status is from before it was read."""
        status = os.fstat(descriptor)
        known = self._known.get(path)
        large = status.st_size >= ALWAYS_HASHED_BELOW_BYTES
        if large and known is not None and known.agrees(status):
            return known.sha256, status
        began_s = time.time()
        if large:
            with open(descriptor, "rb", closefd=False) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            sha256 = hashlib.sha256(os.read(descriptor, status.st_size + 1)).hexdigest()
        self._known[path] = _Read(status, began_s, sha256)
        return sha256, status

    def by_status(self, path: str) -> tuple[str, os.stat_result] | None:
        """What a file holds unless its status lies; None when it has to be read to know."""
        known = self._known.get(path)
        if known is None:
            return None
        try:
            status = os.lstat(path)
        except OSError:
            return None
        return (known.sha256, status) if known.agrees_in_all(status) else None

    def differing(self, believed: Mapping[str, str]) -> list[str]:
        """The files that are read as something else than what their status was believed to say."""
        return [path for path, sha256 in believed.items() if self._read_anew(path) != sha256]

    def _read_anew(self, path: str) -> str:
        try:
            return self.of(path)[0]
        except OSError:
            return ""


def tree_of(
    root: Path,
    hashes: FileHashes,
    names: Iterable[str] | None = None,
    believed: dict[str, str] | None = None,
) -> tuple[RemoteTree, FileContents]:
    """Everything below `root`, or the files `names`: contents of links that stay inside, empty folders too.

    With `believed`, files are not read whose status says that they did not change since the last time; they
    are noted there (path and SHA-256), to be read before anything that follows from them counts.
    TargetFault of stage `sync` for a link that leads out of `root`, or what is no file.
    """
    files: list[RemoteFile] = []
    folders: list[str] = []
    paths: dict[str, str] = {}
    for name in sorted(names) if names is not None else _names(str(root), folders):
        path = f"{root}/{name}"
        found = hashes.by_status(path) if believed is not None else None
        if found is None:
            found = _read(root, path, name, hashes)
        elif believed is not None:
            believed[path] = found[0]
        sha256, status = found
        files.append(RemoteFile(_text(name), sha256, status.st_size, status.st_mode & 0o777))
        paths[sha256] = path
    return RemoteTree(tuple(files), tuple(folders)), FileContents(paths)


def _read(root: Path, path: str, name: str, hashes: FileHashes) -> tuple[str, os.stat_result]:
    descriptor = _opened(root, path, name)
    try:
        return hashes.of_open(descriptor, path)
    finally:
        os.close(descriptor)


def _names(root: str, folders: list[str]) -> Iterator[str]:
    for folder, inside, names in os.walk(root):
        inside.sort()
        place = folder[len(root) + 1 :]
        if not inside and not names and place:
            folders.append(_text(place))
        for name in sorted(names):
            yield f"{place}/{name}" if place else name


def _text(name: str) -> str:
    """The same bytes mean the same name on both machines, whatever our own encoding is."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "surrogateescape")


def _opened(root: Path, path: str, name: str) -> int:
    """A descriptor of the regular file `path`; of a link, what it leads to inside `root`."""
    if not safe_name(name):
        raise TargetFault("sync", f"{plain(name)} cannot be sent: it leads out of the workspace")
    try:
        descriptor = os.open(path, _TO_READ | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise _no_file(name) if not Path(path).is_file() else error from None
        descriptor = _opened_link(root, path, name)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _no_file(name)


def _opened_link(root: Path, path: str, name: str) -> int:
    real = Path(path).resolve()
    if not real.is_relative_to(root.resolve()):
        raise TargetFault("sync", f"{plain(name)} is a link out of the workspace and cannot be sent")
    if not real.is_file():
        raise _no_file(name)
    return os.open(real, _TO_READ | os.O_NOFOLLOW)


def _no_file(name: str) -> TargetFault:
    return TargetFault("sync", f"{plain(name)} is no file and cannot be sent")
