"""Moments in the life of another process, told by what happens to files: inotify, without a clock."""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

# inotify(7)
_MODIFY, _MOVED_TO, _CREATE, _DELETE = 0x02, 0x80, 0x100, 0x200
_EVENT = struct.Struct("iIII")
_ROOM = 1 << 16


@dataclass(frozen=True, slots=True)
class Moments:
    """Changes in some folders, counted as the kernel tells them."""

    handle: int

    def follow(self, pid: int, most: int) -> int:
        """Wait until `most` changes were seen or the child `pid` has ended; how many there were."""
        process = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        poll.register(process, select.POLLIN)
        seen = 0
        try:
            while seen < most:
                ready = [handle for handle, _ in poll.poll()]
                if self.handle not in ready:
                    break
                seen += _events(os.read(self.handle, _ROOM))
            return seen
        finally:
            os.close(process)


@contextmanager
def moments_in(folders: list[Path]) -> Iterator[Moments]:
    """Follow what is made, written, renamed and removed directly in `folders`."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_CLOEXEC)
    try:
        for folder in folders:
            watched = _MODIFY | _MOVED_TO | _CREATE | _DELETE
            if libc.inotify_add_watch(handle, os.fsencode(folder), watched) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(folder))
        yield Moments(handle)
    finally:
        os.close(handle)


def _events(content: bytes) -> int:
    count = offset = 0
    while offset < len(content):
        _, _, _, length = _EVENT.unpack_from(content, offset)
        offset += _EVENT.size + length
        count += 1
    return count
