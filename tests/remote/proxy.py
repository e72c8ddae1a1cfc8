"""A TCP proxy for tests: it delays, stalls, cuts after so many bytes, and counts bytes and round trips."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class Proxy:
    """What passes between a client and a server; all of it may be changed while connections are open."""

    target_port: int
    delay_s: float = 0.0  # each way
    cut_after_up: int | None = None  # bytes from the client, over all connections
    only_once: bool = False  # after such a cut new connections pass
    down: bool = False  # who connects is turned away at once
    port: int = 0
    up_bytes: int = 0
    down_bytes: int = 0
    round_trips: int = 0  # turns of the talk: times the client spoke after the server had
    _server_spoke: bool = True
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _all: list[asyncio.StreamWriter] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stall(self) -> None:
        """Take bytes no further, as a link that has gone quiet does."""
        self._flowing.clear()

    def flow(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """End every connection at once, without a word."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def forget_counts(self) -> None:
        self.up_bytes = self.down_bytes = self.round_trips = 0
        self._server_spoke = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, far_writer]
        self._all += [writer, far_writer]
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pass(reader, far_writer, up=True))
            both.create_task(self._pass(far_reader, writer, up=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, up: bool) -> None:
        """Bytes are read as they come and leave `delay_s` later, in order."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        async with asyncio.TaskGroup() as sides:
            sides.create_task(self._send(waiting, writer, up=up))
            with suppress(OSError):
                while piece := await reader.read(65536):
                    self._count(len(piece), up=up)
                    waiting.put_nowait((loop.time() + self.delay_s, piece))
            waiting.put_nowait((loop.time() + self.delay_s, b""))

    async def _send(
        self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, *, up: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, piece = await waiting.get()
            await self._flowing.wait()
            if self.delay_s:
                await asyncio.sleep(max(0.0, due - loop.time()))
            if up and self.cut_after_up is not None:
                keep = self.cut_after_up
                self.cut_after_up = max(0, keep - len(piece))
                if len(piece) > keep:
                    if self.only_once:
                        self.cut_after_up = None
                    writer.write(piece[:keep])
                    with suppress(OSError):
                        await writer.drain()
                    self.cut()
                    return
            with suppress(OSError):
                if not piece:
                    writer.close()
                    return
                writer.write(piece)
                await writer.drain()

    def _count(self, size: int, *, up: bool) -> None:
        if up:
            self.up_bytes += size
            self.round_trips += self._server_spoke
        else:
            self.down_bytes += size
        self._server_spoke = not up

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self) -> None:
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._all:
            with suppress(OSError):
                await writer.wait_closed()


@asynccontextmanager
async def proxying(target_port: int, delay_s: float = 0.0) -> AsyncIterator[Proxy]:
    """A proxy before `target_port` of this machine, ended with all its connections afterwards."""
    proxy = Proxy(target_port, delay_s)
    proxy.flow()
    server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy._end()
