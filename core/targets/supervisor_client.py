"""Talks to the supervisor process: starts it when first needed, one awaited answer a trial."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from core.errors import TargetFault
from core.targets.job import GRACE_S
from core.words import JsonObject

PROGRAM = Path(__file__).with_name("supervisor.py")
_AFTER_END_S = 30.0  # the supervisor's own bounds (grace, reaping) are well below this
_ENDED: JsonObject = {"failure": "the supervisor process has ended", "stage": "lost"}


class SupervisorClient:
    """One supervisor process at a time; closing it ends every trial it still runs."""

    def __init__(self, start: Callable[[], Awaitable[Connection]] | None = None) -> None:
        """`start` makes a process that speaks as supervisor.py does; its exceptions are those of `run`."""
        self._start = start or _started
        self._connection: Connection | None = None
        self._starting = asyncio.Lock()

    async def run(self, request: JsonObject) -> JsonObject:
        """The supervisor's answer to `request` (see supervisor.py), {"failure": …, "stage": …} included.

        When the waiting task is cancelled, the trial is ended first; then the cancellation goes on.
        TargetFault when there is no supervisor, or none that answers.
        """
        connection = await self._connected()
        return await connection.ask(request)

    async def _connected(self) -> Connection:
        async with self._starting:
            if self._connection is None or self._connection.ended:
                await self._leave()
                self._connection = await self._start()
            return self._connection

    async def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def abandon(self) -> None:
        """Have nothing more to do with a process that does not answer; what it runs ends without it."""
        async with self._starting:
            if self._connection is not None:
                self._connection.kill()
            await self._leave()

    async def close(self) -> None:
        """End what still runs; bounded in time."""
        async with self._starting:
            await self._leave()


async def _started() -> Connection:
    utf8 = int(sys.getfilesystemencoding() == "utf-8")  # file names are to mean the same to both
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-X", f"utf8={utf8}", str(PROGRAM),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise TargetFault("spawn", f"no process can be started: {error.strerror}") from None
    return Connection(process)


def _has_ended(child: int) -> bool:
    """Whether a child of ours has, though the event loop may not have heard of it yet, or was stopped."""
    if sys.platform == "darwin":
        return False
    try:
        return os.waitid(os.P_PID, child, os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


class Connection:
    """A running supervisor and who waits for its answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._requests, self._answers = process.stdin, process.stdout
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._ids = itertools.count(1)
        self._reader = asyncio.create_task(self._read())

    @property
    def ended(self) -> bool:
        """Whether it takes no requests any more."""
        return self._reader.done() or self._process.returncode is not None or _has_ended(self._process.pid)

    async def ask(self, request: JsonObject) -> JsonObject:
        number = next(self._ids)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        bound_s = request["wall_s"] + request.get("grace_s", GRACE_S) + _AFTER_END_S
        try:
            await self._send({**request, "id": number})
            async with asyncio.timeout(bound_s):
                return await asyncio.shield(answer)
        except TimeoutError:
            raise TargetFault("lost", "the supervisor did not answer", "run the command again") from None
        except asyncio.CancelledError:
            await self._cancel(number, answer)
            raise
        finally:
            del self._waiting[number]

    async def _cancel(self, number: int, answer: asyncio.Future[JsonObject]) -> None:
        await self._send({"cancel": number})
        await asyncio.wait([answer], timeout=GRACE_S + _AFTER_END_S)

    async def _send(self, message: JsonObject) -> None:
        """To a supervisor that has ended nothing can be sent; whoever waits learns it from the reader."""
        with suppress(ConnectionError):
            self._requests.write(json.dumps(message).encode() + b"\n")
            await self._requests.drain()

    async def _read(self) -> None:
        """Hand answers out; when the stream ends, whoever still waits learns that the trial is lost."""
        try:
            async for line in self._answers:
                reply = json.loads(line)
                self._hand_out(reply["id"], reply)
        finally:
            for number in self._waiting:
                self._hand_out(number, _ENDED)

    def _hand_out(self, number: int, reply: JsonObject) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    def kill(self) -> None:
        """Its watchdogs notice and end their trials."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        self._requests.close()
        if self.ended:
            self.kill()
        await asyncio.wait([self._reader], timeout=GRACE_S + _AFTER_END_S)
        if not self._reader.done():
            self.kill()
        await self._process.wait()
