"""Errors of disk and database, told as sentences.

Only what a person can do something about is translated; anything else (a constraint broken, a wrong
statement) is a programming error and passes through.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import Busy, KerneldeckError, StorageFault

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_LONGEST_PATH = 500  # bytes; SQLite's limit is 512, its own suffixes included
_DENIED = frozenset({errno.EACCES, errno.EPERM})

_HINT_FULL = "free space there (`kerneldeck gc` removes old samples and blobs), then run the command again"
_HINT_MOVE = "make it writable, or move the state with `state_dir` in kerneldeck.toml or KERNELDECK_STATE_DIR"
_HINT_LONG = "name a folder with a shorter path with `state_dir` in kerneldeck.toml or KERNELDECK_STATE_DIR"
_HINT_DAMAGED = "move that file away to start a new history; a copy from before an upgrade may lie beside it"


def shown(path: Path | str) -> str:
    """`path` as a person can read it on one line: quoted when it holds anything unprintable."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def shown_version(sha256: str) -> str:
    """The first digits of a content's SHA-256, enough to find it by."""
    return sha256[:12]


def os_fault(error: OSError, action: str, where: Path) -> StorageFault:
    """`error` as a StorageFault; `action` completes "cannot …", `where` is the file or folder concerned."""
    place = shown(where)
    if error.errno in _FULL:
        return StorageFault(f"cannot {action}: the disk of {place} is full", _HINT_FULL)
    if error.errno == errno.EROFS:
        return StorageFault(f"cannot {action}: the disk of {place} is read-only", _HINT_MOVE)
    if error.errno in _DENIED:
        return StorageFault(f"cannot {action}: no permission for {place}", _HINT_MOVE)
    return StorageFault(
        f"cannot {action}: {error.strerror or error} ({place})", "check that disk and folder, then run again"
    )


def sqlite_fault(error: sqlite3.Error, action: str, where: Path) -> KerneldeckError | None:
    """`error` as StorageFault or Busy; None when it is a programming error."""
    code = getattr(error, "sqlite_errorname", "")
    place = shown(where)
    if code == "SQLITE_FULL":
        return StorageFault(f"cannot {action}: the disk of {place} is full", _HINT_FULL)
    if code.startswith("SQLITE_READONLY"):
        return StorageFault(f"cannot {action}: {place} is read-only", _HINT_MOVE)
    if code == "SQLITE_CANTOPEN" and len(os.fsencode(where)) > _LONGEST_PATH:
        return StorageFault(f"cannot {action}: {place} is a longer path than SQLite takes", _HINT_LONG)
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StorageFault(f"cannot {action}: {place} cannot be opened for it", _HINT_MOVE)
    if code == "SQLITE_NOTADB":
        return StorageFault(f"cannot {action}: {place} is not a SQLite database", _HINT_DAMAGED)
    if code.startswith("SQLITE_CORRUPT"):
        return StorageFault(f"cannot {action}: {place} is damaged", _HINT_DAMAGED)
    if code.startswith("SQLITE_IOERR"):
        return StorageFault(f"cannot {action}: reading or writing {place} failed ({code})", _HINT_FULL)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Busy(f"cannot {action}: {place} is locked by another process", "run the command again")
    return None


@contextmanager
def storing(action: str, where: Path) -> Iterator[None]:
    """Errors of disk and database inside become StorageFault (or Busy): "cannot {action}: …"."""
    try:
        yield
    except OSError as error:
        raise os_fault(error, action, where) from error
    except sqlite3.Error as error:
        fault = sqlite_fault(error, action, where)
        if fault is None:
            raise
        raise fault from error
