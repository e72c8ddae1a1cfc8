"""A folder of this machine as a remote tree: its files' names, contents by their hash, and mode bits."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
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


class FileHashes:
    """SHA-256 of files; a large one's is reused while its size, time and inode stay, once they had settled.

    A small file is always hashed: two edits within the clock's step leave size and time as they were.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], float, str]] = {}

    def of(self, path: str | Path) -> tuple[str, os.stat_result]:
        descriptor = os.open(path, _TO_READ)
        try:
            return self.of_open(descriptor, str(path))
        finally:
            os.close(descriptor)

    def of_open(self, descriptor: int, path: str) -> tuple[str, os.stat_result]:
        """The same of the file that was opened as `path`; the status is from before it was read."""
        status = os.fstat(descriptor)
        if status.st_size >= ALWAYS_HASHED_BELOW_BYTES:
            return self._of_large(descriptor, path, status), status
        content = os.read(descriptor, status.st_size + 1)
        return hashlib.sha256(content).hexdigest(), status

    def _of_large(self, descriptor: int, path: str, status: os.stat_result) -> str:
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        known = self._known.get(path)
        if known is not None and known[0] == state and known[1] - status.st_mtime_ns / 1e9 >= SETTLED_AFTER_S:
            return known[2]
        began_s = time.time()
        with open(descriptor, "rb", closefd=False) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[path] = (state, began_s, sha256)
        return sha256


def tree_of(
    root: Path, hashes: FileHashes, names: Iterable[str] | None = None
) -> tuple[RemoteTree, FileContents]:
    """Everything below `root`, or the files `names`: contents of links that stay inside, empty folders too.

    TargetFault of stage `sync` for a link that leads out of `root`, or what is no file.
    """
    files: list[RemoteFile] = []
    folders: list[str] = []
    paths: dict[str, str] = {}
    for name in sorted(names) if names is not None else _names(str(root), folders):
        path = f"{root}/{name}"
        descriptor = _opened(root, path, name)
        try:
            sha256, status = hashes.of_open(descriptor, path)
        finally:
            os.close(descriptor)
        files.append(RemoteFile(_text(name), sha256, status.st_size, stat.S_IMODE(status.st_mode) & 0o777))
        paths[sha256] = path
    return RemoteTree(tuple(files), tuple(folders)), FileContents(paths)


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
