"""Contents of files, each once, named by its SHA-256: `blobs/ab/ab12…`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from core.errors import StorageFault
from sessions.atomic_file import remove_quietly, sync_folder, write_beside
from sessions.faults import os_fault, shown, storing

_NAME = re.compile(r"[0-9a-f]{64}\Z")
_TEMP = ".writing-"


class BlobFolder:
    """Content-addressed files under one folder; a content that was put is on disk before `put` returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Keep `content`; its SHA-256 (hex). Putting it again is free, and mends a damaged file."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.path(sha256)
        with storing("keep a file's content", path):
            if not _holds(path, content):
                self._write(path, content)
        return sha256

    def get(self, sha256: str) -> bytes:
        """The content, checked against its hash. StorageFault when it is absent or damaged."""
        path = self.path(sha256)
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            raise StorageFault(
                f"the content {sha256} is not kept (any more): {shown(path)} is absent",
                "`kerneldeck gc` may have removed it, or the state folder was copied without it",
            ) from error
        except OSError as error:
            raise os_fault(error, "read a kept content", path) from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StorageFault(
                f"the kept content {shown(path)} is damaged: it no longer has the hash it is named by",
                "put a copy back from a backup, or move it away and run again on the intact file",
            )
        return content

    def has(self, sha256: str) -> bool:
        return self.path(sha256).is_file()

    def size(self, sha256: str) -> int:
        """Bytes on disk; 0 when absent."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def all(self) -> Iterator[str]:
        """The SHA-256 of everything kept, in no particular order."""
        return (path.name for path in self.folder.glob("??/*") if _NAME.match(path.name))

    def remove(self, sha256: str) -> None:
        """Remove one content; fine when it is gone already."""
        path = self.path(sha256)
        with storing("remove a kept content", path):
            path.unlink(missing_ok=True)

    def remove_unfinished(self) -> int:
        """Remove what a killed writer left half written; how many."""
        left = list(self.folder.glob(f"??/{_TEMP}*"))
        for path in left:
            remove_quietly(path)
        return len(left)

    def path(self, sha256: str) -> Path:
        if not _NAME.match(sha256):
            raise ValueError(f"{sha256!r} is not a SHA-256")
        return self.folder / sha256[:2] / sha256

    def _write(self, path: Path, content: bytes) -> None:
        if not path.parent.is_dir():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self.folder)
        temp = write_beside(path.parent, _TEMP, "", content)
        try:
            temp.chmod(0o400)
            temp.replace(path)
        except OSError:
            remove_quietly(temp)
            raise
        sync_folder(path.parent)


def _holds(path: Path, content: bytes) -> bool:
    with suppress(OSError):
        return path.stat().st_size == len(content) and path.read_bytes() == content
    return False
