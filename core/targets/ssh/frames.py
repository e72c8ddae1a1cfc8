"""Frames over a channel: the client's side of `wire`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from core.targets.ssh.wire import NoFrame, Unframer, frame
from core.words import JsonObject

if TYPE_CHECKING:
    from core.targets.ssh.wire import Frame

READ_BYTES = 1 << 18


class ByteChannel(Protocol):
    """Two byte streams to a program somewhere else."""

    async def read(self, n: int) -> bytes:
        """At most `n` bytes, b"" at the end."""
        ...

    def write(self, content: bytes, /) -> None: ...

    async def drain(self) -> None:
        """Wait until more may be written. An OSError when the channel is gone."""
        ...

    def close(self) -> None: ...


class FrameChannel:
    """Whole frames in both directions; `first` is what was already read of the channel."""

    def __init__(self, channel: ByteChannel, first: bytes = b"") -> None:
        self._channel = channel
        self._unframer = Unframer()
        self._read: deque[Frame] = deque(self._unframer.feed(first))

    async def receive(self) -> Frame | None:
        """The next frame, None at the end of the stream. NoFrame when it is no stream of frames."""
        while not self._read:
            chunk = await self._channel.read(READ_BYTES)
            if not chunk:
                return None
            self._read.extend(self._unframer.feed(chunk))
        return self._read.popleft()

    async def send(self, header: JsonObject, body: bytes = b"", deflate: bool = False) -> None:
        """Returns when the channel takes more. An OSError when it is gone."""
        self._channel.write(frame(header, body, deflate))
        await self._channel.drain()

    def close(self) -> None:
        self._channel.close()


__all__ = ["ByteChannel", "FrameChannel", "NoFrame"]
