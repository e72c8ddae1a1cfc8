"""What waits to be written to the client: whole frames first come, long files piece by piece.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITE_BYTES = 1 << 16


class Outbox:
    """Holds one unfinished frame; files are read when there is room for them, never before."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.unwritten = memoryview(b"")
        self.queue: deque[bytes | Iterator[bytes]] = deque()
        os.set_blocking(descriptor, False)

    def add(self, frames: bytes | Iterator[bytes]) -> None:
        self.queue.append(frames)

    def __bool__(self) -> bool:
        return bool(self.unwritten) or bool(self.queue)

    def write(self) -> None:
        """As much as is taken now. BrokenPipeError when nobody reads any more."""
        while self:
            if not self.unwritten:
                self.unwritten = memoryview(self._next())
                continue
            try:
                written = os.write(self.descriptor, self.unwritten[:WRITE_BYTES])
            except BlockingIOError:
                return
            self.unwritten = self.unwritten[written:]

    def _next(self) -> bytes:
        first = self.queue[0]
        if isinstance(first, bytes):
            self.queue.popleft()
            return first
        piece = next(first, None)
        if piece is None:
            self.queue.popleft()
            return b""
        self.queue.rotate(-1)  # others may go between the pieces of a long one
        return piece
