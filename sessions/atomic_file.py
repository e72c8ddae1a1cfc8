"""Putting a whole file in place: written beside, on disk, then renamed."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})


def write_beside(folder: Path, prefix: str, suffix: str, content: bytes) -> Path:
    """Write `content` to a new file `prefix<random>suffix` in `folder` and bring it to disk.

    Its mode is what the umask leaves of 0666. OSError: nothing is left behind.
    """
    temp = folder / f"{prefix}{os.urandom(8).hex()}{suffix}"
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            _write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        remove_quietly(temp)
        raise
    return temp


def sync_folder(folder: Path) -> None:
    """Bring renames and removals in `folder` to disk, where its file system can."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def remove_quietly(path: Path) -> None:
    """Remove a file of ours that may be gone, on a disk that may refuse."""
    with suppress(OSError):
        path.unlink()


def _write_all(handle: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
