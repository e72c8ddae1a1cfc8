"""One command on a connection as a stream of bytes: read, written and ended without a wait that can hang."""

from __future__ import annotations

import asyncio

import asyncssh
from asyncssh.constants import EXTENDED_DATA_STDERR

_READ_AHEAD_BYTES = 4 << 20
_KEPT_STDERR_BYTES = 4096


class AgentChannel(asyncssh.SSHClientSession[bytes]):
    """A byte channel: `read` gives b"" at the end, however the end came about.

    One reader at a time. After the end `write` is ignored: what came of it is read from the other side.
    """

    def __init__(self) -> None:
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._unread = bytearray()
        self._stderr = bytearray()
        self._more = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._closed = asyncio.Event()
        self._ended = False
        self._paused = False
        self.lost_by = ""

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype == EXTENDED_DATA_STDERR:
            self._stderr += data
            del self._stderr[:-_KEPT_STDERR_BYTES]
            return
        self._unread += data
        self._more.set()
        if len(self._unread) > _READ_AHEAD_BYTES and self._channel and not self._paused:
            self._channel.pause_reading()
            self._paused = True

    def eof_received(self) -> bool:
        self._end()
        return True  # the exit status is still to come

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_by = str(exc) if exc else ""
        self._closed.set()
        self._end()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _end(self) -> None:
        self._ended = True
        self._more.set()
        self._writable.set()

    @property
    def exit_status(self) -> int | None:
        """The command's exit status once it is known; None says nothing about success."""
        return self._channel.get_exit_status() if self._channel else None

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the command wrote to stderr."""
        return bytes(self._stderr)

    @property
    def unread_bytes(self) -> int:
        """What has come and waits to be read."""
        return len(self._unread)

    async def read(self, n: int) -> bytes:
        """From 1 to `n` bytes as soon as there are any; b"" when there will be no more."""
        while not self._unread and not self._ended:
            self._more.clear()
            await self._more.wait()
        taken = bytes(self._unread[:n])
        del self._unread[:n]
        if self._paused and len(self._unread) < _READ_AHEAD_BYTES // 2 and self._channel:
            self._paused = False
            self._channel.resume_reading()
        return taken

    async def skip_to(self, marker: bytes, keep: int = 4096) -> tuple[bool, bytes]:
        """Drop what comes before `marker`, which stays unread: whether it came, and the end of the rest."""
        before = bytearray()
        while (place := before.find(marker)) < 0:
            del before[: max(0, len(before) - keep - len(marker))]
            piece = await self.read(65536)
            if not piece:
                return False, bytes(before[-keep:])
            before += piece
        self._unread[:0] = before[place:]
        return True, bytes(before[max(0, place - keep) : place])

    def write(self, data: bytes) -> None:
        if self._channel and not self._ended and not self._channel.is_closing():
            self._channel.write(data)

    def end_input(self) -> None:
        """Say that nothing more will be written."""
        if self._channel and not self._ended and not self._channel.is_closing():
            self._channel.write_eof()

    async def drain(self) -> None:
        """Wait until the other side has taken enough of what was written, or the channel has ended."""
        await self._writable.wait()

    async def wait_closed(self) -> None:
        """Wait until the channel is closed on both sides: then the exit status is known, if ever."""
        await self._closed.wait()

    def close(self) -> None:
        """End the channel; what the other side was running sees its stdin end."""
        if self._channel:
            self._channel.close()
        self._end()
