"""What is kept of a stream that may never end. For `watchdog.py`: standard library, Python 3.8's syntax."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque

HEAD_BYTES = 4 << 20
TAIL_BYTES = 256 << 10
CHUNK_BYTES = 1 << 16
MOST_BUFFERED_BYTES = 16 << 20  # more than any pipe holds once its writers are gone
_LOST_TO_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class CappedFile:
    """A file that keeps the first HEAD_BYTES and the last TAIL_BYTES of a stream.

    A full disk loses output, not the trial: what cannot be written is counted in `lost`.
    """

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.room = HEAD_BYTES
        self.tail: deque[bytes] = deque()
        self.tail_bytes = 0
        self.left_out = 0
        self.lost = 0

    def write(self, chunk: bytes) -> None:
        head, rest = chunk[: self.room], chunk[self.room :]
        self.room -= len(head)
        self._store(head)
        if rest:
            self.tail.append(rest)
            self.tail_bytes += len(rest)
        while self.tail and self.tail_bytes - len(self.tail[0]) >= TAIL_BYTES:
            oldest = self.tail.popleft()
            self.left_out += len(oldest)
            self.tail_bytes -= len(oldest)

    def _store(self, content: bytes) -> None:
        view = memoryview(content)
        try:
            while view and not self.lost:
                view = view[os.write(self.descriptor, view) :]
        except OSError as error:
            if error.errno not in _LOST_TO_DISK:
                raise
        self.lost += len(view)

    def close(self) -> None:
        tail = b"".join(self.tail)
        self.left_out += max(0, len(tail) - TAIL_BYTES)
        if self.left_out:
            self._store(b"\n[%d bytes left out]\n" % self.left_out)
        self._store(tail[-TAIL_BYTES:])
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def pump(descriptor: int, capped: CappedFile) -> bool:
    """Move what is there into the file; False at the stream's end."""
    try:
        chunk = os.read(descriptor, CHUNK_BYTES)
    except BlockingIOError:
        return True
    if chunk:
        capped.write(chunk)
    return bool(chunk)


def drain(descriptor: int, capped: CappedFile) -> None:
    """Read what is still buffered; a stream that somebody else holds open is not waited for."""
    with contextlib.suppress(BlockingIOError):
        for _ in range(MOST_BUFFERED_BYTES // CHUNK_BYTES):
            chunk = os.read(descriptor, CHUNK_BYTES)
            if not chunk:
                return
            capped.write(chunk)
