"""The scratch folder on the remote machine: whose it is, whether it can be written, how much it holds.

Part of the agent's bundle: standard library only, Python 3.8's syntax. All paths of ours are relative to
the scratch folder, which is the agent's working folder.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH100, PTH102, PTH103, PTH104, PTH108, PTH109, PTH112, PTH114, PTH120

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.targets.ssh.wire import Fault, Json
else:
    from wire import Fault

FULL = (errno.ENOSPC, errno.EDQUOT)
FOLDERS = ("blobs", "manifests", "trials")
PROBE_BYTES = 4096
_OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG,
     errno.ENOTDIR, errno.EMFILE, errno.ENFILE, errno.ESTALE}
)  # fmt: skip
_CLEAN = "run `kerneldeck target clean`, or name another scratch folder for this target"
_OTHER = "name another scratch folder for this target"


def open_scratch(root: str, make_room: Callable[[int], int]) -> None:
    """Make `root` usable and the working folder; Fault in stage scratch says why it cannot be.

    A full disk is tried once more after `make_room`, which says how many bytes it could free.
    """
    root = os.path.abspath(root)
    try:
        _make(root)
        _check_owner(root, os.lstat(root))
        os.chdir(root)
        for folder in FOLDERS:
            if not os.path.isdir(folder) or os.path.islink(folder):
                os.mkdir(folder, 0o700)
        _probe_twice(make_room)
    except FileExistsError as error:
        raise Fault("scratch", f"{root} cannot be used: {error.filename} is no folder", _OTHER) from None
    except OSError as error:
        raise Fault("scratch", f"{root} cannot be used: {error.strerror}{_numbers(root)}", _CLEAN) from None
    if os.statvfs(".").f_flag & getattr(os, "ST_NOEXEC", 8):
        raise Fault("scratch", f"{root} lies on a file system that runs no programs (noexec)", _OTHER)


def _make(root: str) -> None:
    if not os.path.lexists(root):
        os.makedirs(os.path.dirname(root), exist_ok=True)
        os.mkdir(root, 0o700)


def _check_owner(root: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise Fault("scratch", f"{root} is a link; a scratch folder has to be one itself", _OTHER)
    if not stat.S_ISDIR(status.st_mode):
        raise Fault("scratch", f"{root} is no folder", _OTHER)
    if status.st_uid != os.getuid():
        raise Fault("scratch", f"{root} belongs to user {status.st_uid}, we are {os.getuid()}", _OTHER)
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        hint = f"run `chmod 700 {root}` there when nobody else needs it, or {_OTHER}"
        raise Fault("scratch", f"others may enter {root} (mode {mode:04o})", hint)


def _probe_twice(make_room: Callable[[int], int]) -> None:
    try:
        _probe()
    except OSError as error:
        if error.errno not in FULL or not make_room(PROBE_BYTES):
            raise
        _probe()


def _probe() -> None:
    """Write, flush, rename and remove a small file."""
    name = f".probe-{os.getpid()}"
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        if os.write(descriptor, b"\0" * PROBE_BYTES) != PROBE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
        os.rename(name, name + "-2")
        os.unlink(name + "-2")
    except OSError:
        os.unlink(name)
        raise
    finally:
        os.close(descriptor)


def room() -> Json:
    """Bytes and inodes that are free here; None for inodes where the file system does not count them."""
    status = os.statvfs(".")
    return {
        "path": os.getcwd(),
        "free_bytes": status.f_bavail * status.f_frsize,
        "free_inodes": status.f_favail if status.f_files else None,
    }


def need_room(needed_bytes: int, needed_files: int) -> None:
    """Fault when this many bytes in this many new files do not fit."""
    free = room()
    inodes = free["free_inodes"]
    if needed_bytes + (needed_files << 12) > free["free_bytes"]:
        what = f"needs {megabytes(needed_bytes)}, {megabytes(free['free_bytes'])} free"
    elif inodes is not None and needed_files > inodes:
        what = f"needs {needed_files} files, {inodes} inodes free"
    else:
        return
    raise Fault("scratch", f"the workspace {what} on {free['path']}", _CLEAN)


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _numbers(root: str) -> str:
    """What is free, when that can explain a refusal."""
    try:
        status = os.statvfs(root)
    except OSError:
        return ""
    if status.f_flag & getattr(os, "ST_RDONLY", 1):
        return ": it is mounted read-only"
    inodes = f" and {status.f_favail:,} inodes" if status.f_files else ""
    return f" ({megabytes(status.f_bavail * status.f_frsize)}{inodes} free)"


def fault_of(error: OSError, doing: str, stage: str = "sync") -> Fault:
    """Why the disk did not take something, in stage scratch when the disk is to blame."""
    where = f" ({_shown(error.filename)})" if error.filename else ""
    if error.errno in _OF_THE_DISK:
        return Fault("scratch", f"{doing}: {error.strerror}{where}{_numbers('.')}", _CLEAN)
    return Fault(stage, f"{doing}: {error.strerror}{where}")


def _shown(name: object) -> str:
    return os.fsdecode(name).encode("utf-8", "replace").decode() if isinstance(name, (str, bytes)) else ""
