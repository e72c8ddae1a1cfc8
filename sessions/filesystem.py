"""Which file system a folder lies on, and how much room it has.

Locks and shared memory cannot be trusted on network file systems, so the state of record asks here.
`KERNELDECK_ASSUME_NETWORK_FS=1` makes every path count as one, to try that behaviour anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

ASSUME_NETWORK = "KERNELDECK_ASSUME_NETWORK_FS"
UNKNOWN = "unknown"

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK_KINDS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre",
        "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb", "smb2", "smb3", "smbfs", "virtiofs",
        "fuse.beegfs", "fuse.ceph", "fuse.cephfs", "fuse.davfs", "fuse.glusterfs", "fuse.gcsfuse",
        "fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs",
    }
)  # fmt: skip


def is_network(path: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether `path` (it need not exist yet) lies on a file system that other machines may share."""
    if environ.get(ASSUME_NETWORK, "") not in ("", "0"):
        return True
    return filesystem_kind(path) in _NETWORK_KINDS


def filesystem_kind(path: Path, mounts: Path = _MOUNTS) -> str:
    """The kernel's name of the file system of `path`, such as ext4 or nfs4.

    `unknown` where the system has no mount table to read (macOS).
    """
    try:
        lines = os.fsdecode(mounts.read_bytes()).split("\n")
    except OSError:
        return UNKNOWN
    real = Path(os.path.realpath(path))
    best, kind = -1, UNKNOWN
    for point, name in filter(None, map(_mount, lines)):
        depth = len(point.parts)
        # A later mount on the same point hides the earlier one.
        if depth >= best and real.is_relative_to(point):
            best, kind = depth, name
    return kind


def free_bytes(path: Path) -> int:
    """Bytes that we may still write on the disk of `path` (its nearest existing parent)."""
    here = Path(os.path.realpath(path))
    while not here.exists():
        here = here.parent
    room = os.statvfs(here)
    return room.f_bavail * room.f_frsize


def _mount(line: str) -> tuple[Path, str] | None:
    """Mount point and kind of one line of the mount table (proc(5), `mountinfo`)."""
    left, _, right = line.partition(" - ")
    fields, kinds = left.split(" "), right.split(" ")
    if len(fields) < 5 or not kinds[0]:
        return None
    return Path(_unescape(fields[4])), kinds[0]


def _unescape(text: str) -> str:
    raw = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), os.fsencode(text))
    return os.fsdecode(raw)
