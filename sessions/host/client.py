"""A client of a workspace's host: asks for work, follows what happens, and may go without stopping it."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import KerneldeckError
from core.operations.declaration import Answer
from core.words import JsonObject
from sessions.host.codec import from_json
from sessions.host.events import Event, Numbered
from sessions.host.reaching import Reached, reach
from sessions.host.snapshot import Snapshot, fold
from sessions.host.wire import HostFault, ToldFault, Welcome, WireFault, encoded, read_message

MOST_PENDING = 1000
_LEFT_WITHIN_S = 10.0
_GONE = "the host has ended meanwhile"
_GONE_HINT = "what had finished is in the history; the next command starts another host and recovers"


@dataclass(frozen=True, slots=True)
class HostKeyAsked:
    """The question about an unknown host key, from the host to the person at this client."""

    target: str
    hop: str
    algorithm: str
    fingerprint: str
    kept_in: str


AskPerson = Callable[[HostKeyAsked], Awaitable[bool]]
Tell = Callable[[Event], None]


@dataclass(slots=True)
class _Asked:
    receipt: asyncio.Future[int]
    answer: asyncio.Future[JsonObject]

    def fail(self, fault: KerneldeckError) -> None:
        for one in (self.receipt, self.answer):
            if not one.done():
                one.set_exception(fault)


@dataclass(frozen=True, slots=True)
class Pending:
    """Work that the host took on; `receipt` names it to every client."""

    client: HostClient
    receipt: int
    _asked: _Asked

    @property
    def ended(self) -> bool:
        """Whether the answer has come, or will not come any more."""
        return self._asked.answer.done()

    async def answer(self) -> Answer:
        """How it ended. KerneldeckError: it could not be done; HostFault: the host has gone."""
        told = await asyncio.shield(self._asked.answer)
        return Answer(told["content"], told["exit_code"])


class HostClient:
    """A connection to one host. Make it with `connect`; close it, or use it with `async with`."""

    def __init__(self, reached: Reached, ask: AskPerson | None) -> None:
        self.welcome: Welcome = reached.welcome
        self.latest: Snapshot | None = None
        self._reader, self._writer = reached.reader, reached.writer
        self._ask = ask
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Asked] = {}
        self._tells: dict[int, Tell] = {}
        self._updates: deque[Snapshot | Numbered] = deque()
        self._wake = asyncio.Event()
        self._closed = False
        self._ended: KerneldeckError | None = None
        self._questions: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(
        cls,
        start: Path,
        *,
        actor: str = "cli",
        command: str = "kerneldeck",
        readonly: bool = False,
        may_start: bool = True,
        ask: AskPerson | None = None,
        wait_s: float | None = 0.0,
    ) -> HostClient:
        """Greet the host of the workspace at or above `start`, started now if there is none.

        `ask` answers the host's question about an unknown host key; without it such a host is refused.
        `wait_s` is how long to wait (None: for ever) where a process that is no host holds the workspace.
        HostFault: without `may_start` there is none, it is of another version, or cannot be trusted; Busy,
        StorageFault and the like, as the starting host told them.
        """
        return cls(await reach(start, actor, command, readonly, may_start, wait_s), ask)

    async def snapshot(self) -> Snapshot:
        """The state now."""
        told = await self._request({"do": "snapshot"})
        return Snapshot.from_json(told["snapshot"])

    async def updates(self, after: int | None = None) -> AsyncIterator[Snapshot | Numbered]:
        """A snapshot, or with `after` the events behind that number, and then each event as it happens.

        Whoever is slow gets a newer snapshot in place of what was missed; `latest` is always the newest.
        Ends when the client is closed; HostFault when the host has gone.
        """
        await self._request({"do": "watch", "after": after})
        while True:
            while self._updates:
                yield self._updates.popleft()
            if self._ended is not None and not self._closed:
                raise self._ended
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()

    async def submit(
        self,
        operation: str,
        arguments: Mapping[str, object],
        *,
        lease: bool = True,
        wait_s: float | None = None,
        command: str = "",
        tell: Tell | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Pending:
        """Hand work over; the host has taken it on when this returns.

        `lease`: the work ends with this client, unless others watch. `wait_s`: how long it may wait for
        its turn before it is Busy (None: for ever). `tell` gets its events. Trials on this machine get
        `environment`, by default this process's.
        """
        number = next(self._numbers)
        asked = self._expect(number)
        if tell is not None:
            self._tells[number] = tell
        message: JsonObject = {
            "do": "call", "id": number, "operation": operation, "arguments": dict(arguments),
            "lease": lease, "wait_s": wait_s, "command": command, "cwd": _cwd(),
            "environment": dict(os.environ if environment is None else environment),
            "asks": self._ask is not None, "tell": tell is not None,
        }  # fmt: skip
        await self._send(message)
        try:
            return Pending(self, await asyncio.shield(asked.receipt), asked)
        except asyncio.CancelledError:
            if lease:
                await self._take_back(asked)
            raise

    async def call(
        self,
        operation: str,
        arguments: Mapping[str, object],
        *,
        wait_s: float | None = None,
        command: str = "",
        tell: Tell | None = None,
    ) -> Answer:
        """Leased work from beginning to end; cancelling the caller cancels it, and waits for its end."""
        pending = await self.submit(operation, arguments, wait_s=wait_s, command=command, tell=tell)
        try:
            return await pending.answer()
        except asyncio.CancelledError:
            await self._take_back(pending._asked)
            raise

    async def _take_back(self, asked: _Asked) -> None:
        """End work and wait for its end, also where the host has not said yet under which receipt it goes.

        Left to the end of the connection it would go on for those who watch.
        """
        with suppress(KerneldeckError):
            await self.cancel(await asyncio.shield(asked.receipt))
            await asyncio.shield(asked.answer)

    async def control(self, what: str, sweep: int | None = None, **more: object) -> str:
        """Pause, resume, stop, cancel, move or retry in a sweep (None: the one that runs); what was done.

        cancel and retry take `candidate` (an id or its beginning; cancel without one: the running trial),
        move takes `candidate` and `by` (places; negative: sooner). ToldFault says why it does not fit.
        """
        told = await self._request({"do": "control", "what": what, "sweep": sweep, **more})
        return str(told["said"])

    async def cancel(self, receipt: int) -> None:
        """End that work, whoever asked for it; its own answer tells when it has ended."""
        await self._request({"do": "cancel", "receipt": receipt})

    async def close(self) -> None:
        """Leave. A host that leaves with its last client has left when this returns."""
        if not self._closed:
            self._closed = True
            self._wake.set()
            with suppress(KerneldeckError, OSError, TimeoutError):
                async with asyncio.timeout(_LEFT_WITHIN_S):
                    await self._send({"do": "bye", "id": 0})
                    await asyncio.shield(self._reading)
        for task in [self._reading, *self._questions]:
            task.cancel()
        await asyncio.gather(self._reading, *self._questions, return_exceptions=True)
        self._writer.close()

    async def __aenter__(self) -> HostClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _expect(self, number: int) -> _Asked:
        loop = asyncio.get_running_loop()
        asked = _Asked(loop.create_future(), loop.create_future())
        asked.receipt.add_done_callback(_seen)
        asked.answer.add_done_callback(_seen)
        self._asked[number] = asked
        return asked

    async def _request(self, message: JsonObject) -> JsonObject:
        number = next(self._numbers)
        asked = self._expect(number)
        await self._send({**message, "id": number})
        return await asyncio.shield(asked.answer)

    async def _send(self, message: JsonObject) -> None:
        if self._ended is not None:
            raise self._ended
        self._writer.write(encoded(message))
        try:
            await self._writer.drain()
        except OSError:
            raise self._end() from None

    async def _read(self) -> None:
        try:
            with suppress(WireFault):
                while (message := await read_message(self._reader)) is not None:
                    self._take(message)
        finally:  # also after a fault of whoever is told
            self._end()

    def _end(self) -> KerneldeckError:
        """Whoever waits for an answer is told that none will come."""
        ended = self._ended or HostFault(_GONE, _GONE_HINT)
        self._ended = ended
        for asked in self._asked.values():
            asked.fail(ended)
        self._wake.set()
        return ended

    def _take(self, message: JsonObject) -> None:
        if "re" in message:
            self._answered(message)
        elif "snapshot" in message:
            self._follow(Snapshot.from_json(message["snapshot"]))
        elif "event" in message:
            self._follow(Numbered.from_json(message))
        elif "told" in message:
            tell = self._tells.get(message["told"])
            if tell is not None:
                tell(Numbered.from_json(message["numbered"]).event)
        elif "question" in message:
            task = asyncio.create_task(self._ask_person(message))
            self._questions.add(task)
            task.add_done_callback(self._questions.discard)

    def _answered(self, message: JsonObject) -> None:
        asked = self._asked.get(message["re"])
        if asked is None or asked.answer.done():
            return
        if "receipt" in message:
            if not asked.receipt.done():  # whoever waited for it may have been interrupted
                asked.receipt.set_result(message["receipt"])
            return
        del self._asked[message["re"]]
        self._tells.pop(message["re"], None)
        if "fault" in message:
            asked.fail(ToldFault(message["fault"]))
        else:
            asked.answer.set_result(message["answer"])

    def _follow(self, update: Snapshot | Numbered) -> None:
        if isinstance(update, Snapshot):
            self.latest = update
        elif self.latest is not None:
            self.latest = fold(self.latest, update)
        self._updates.append(update)
        if len(self._updates) > MOST_PENDING and self.latest is not None:
            self._updates.clear()
            self._updates.append(self.latest)
        self._wake.set()

    async def _ask_person(self, message: JsonObject) -> None:
        question = from_json(HostKeyAsked, message["question"])
        yes = self._ask is not None and await self._ask(question)
        with suppress(KerneldeckError):
            await self._send({"do": "reply", "id": 0, "number": message["number"], "yes": yes})


def _seen(answer: asyncio.Future[Any]) -> None:
    """An answer that nobody waited for to the end is no fault."""
    if not answer.cancelled():
        answer.exception()


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return "/"
