"""Where a workspace's host listens: a short path in a folder of ours, however long the workspace's is."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sessions.faults import os_fault, shown
from sessions.host.wire import HostFault
from sessions.state_dir import StatePlace

_LONGEST_BASE_BYTES = 107 - len("/kerneldeck-4294967295/0123456789abcdef.sock")  # of what Linux takes


@dataclass(frozen=True, slots=True)
class SocketPlace:
    """The socket of one workspace's host, and the log beside it."""

    socket: Path

    @property
    def log(self) -> Path:
        return self.socket.with_suffix(".log")


def socket_place(place: StatePlace, environ: Mapping[str, str] = os.environ) -> SocketPlace:
    """Where the host of that state folder listens; the folder is made, and checked to be ours.

    HostFault when it belongs to somebody else, may be entered by others, or is no folder; StorageFault
    when it cannot be made.
    """
    digest = hashlib.sha256(os.fsencode(os.path.realpath(place.folder))).hexdigest()[:16]
    folder = _runtime_folder(environ) or _temp_folder(environ)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # told below
    except OSError as error:
        raise os_fault(error, "make the folder for the host's socket", folder) from error
    check_folder(folder)
    return SocketPlace(folder / f"{digest}.sock")


def _runtime_folder(environ: Mapping[str, str]) -> Path | None:
    """`$XDG_RUNTIME_DIR/kerneldeck`; None where there is no such folder of ours or its path is too long."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    if not base.startswith("/") or len(os.fsencode(base)) > _LONGEST_BASE_BYTES:
        return None
    try:
        found = Path(base).stat()
    except OSError:
        return None
    return Path(base) / "kerneldeck" if found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode) else None


def _temp_folder(environ: Mapping[str, str]) -> Path:
    """A folder of this user's in the temporary one; nothing is tried out there, as on a full disk."""
    base = environ.get("TMPDIR", "")
    if not base.startswith("/") or len(os.fsencode(base)) > _LONGEST_BASE_BYTES or not Path(base).is_dir():
        base = "/tmp"
    return Path(base) / f"kerneldeck-{os.geteuid()}"


def check_folder(folder: Path) -> None:
    """HostFault unless `folder` is a real folder of this user that nobody else may enter."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise HostFault(
            f"{shown(folder)} is in the way: the folder for the host's socket is to be there",
            "move it away, or set XDG_RUNTIME_DIR to a folder of your own",
        )
    if found.st_uid != os.geteuid():
        raise HostFault(
            f"{shown(folder)} belongs to another user, so no host of yours is asked there",
            "set XDG_RUNTIME_DIR to a folder of your own",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise HostFault(
            f"{shown(folder)} may be entered by others (mode {stat.S_IMODE(found.st_mode):04o})",
            f"close it: chmod 700 {shown(folder)}",
        )


def check_socket(path: Path) -> bool:
    """Whether there is a socket of ours at `path`; HostFault when something else or another user's is."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise HostFault(
            f"{shown(path)} is no socket, although the host's is to be there", "move it away, then try again"
        )
    if found.st_uid != os.geteuid():
        raise HostFault(f"the socket {shown(path)} belongs to another user", "have it removed first")
    return True
