"""The way to a running sweep, for everybody in its event loop."""

from __future__ import annotations

import asyncio

from core.sweep.plan import Command

HAS_ENDED = "the sweep has ended"


class Asked:
    """A command on its way, and whoever waits for the answer."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def answer(self, refusal: str) -> None:
        """Tell that it is done, or with a sentence why it is not."""
        if not self._answer.done():
            self._answer.set_result(refusal)

    async def answered(self) -> str:
        return await self._answer


class Mailbox:
    """Commands in the order in which they came; every one is answered."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Asked] = asyncio.Queue()
        self._closed = False

    async def send(self, command: Command) -> str:
        """Ask the sweep; empty once it is done and on record, else a sentence why it is not."""
        if self._closed:
            return HAS_ENDED
        asked = Asked(command)
        self._queue.put_nowait(asked)
        return await asked.answered()

    async def next(self) -> Asked:
        """The next command; it must be answered. Being cancelled loses none."""
        return await self._queue.get()

    def close(self) -> None:
        """Nobody reads any more: what is still here, or comes, is answered so."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait().answer(HAS_ENDED)
