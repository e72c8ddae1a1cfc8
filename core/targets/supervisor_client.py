"""Talks to the supervisor process: starts it when first needed, one awaited answer a trial."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path

from core.errors import TargetFault
from core.targets.job import GRACE_S
from core.words import JsonObject

_PROGRAM = Path(__file__).with_name("supervisor.py")
_AFTER_END_S = 30.0  # the supervisor's own bounds (grace, reaping) are well below this


class SupervisorClient:
    """One supervisor process; closing it ends every trial it still runs."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._ids = itertools.count(1)

    async def run(self, request: JsonObject) -> JsonObject:
        """The supervisor's answer to `request` (see supervisor.py), or {"failure": sentence}.

        When the waiting task is cancelled, the trial is ended first; then the cancellation goes on.
        """
        process = await self._started()
        number = next(self._ids)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        bound = request["wall_s"] + request.get("grace_s", GRACE_S) + _AFTER_END_S
        try:
            await self._send(process, {**request, "id": number})
            return await asyncio.wait_for(asyncio.shield(answer), bound)
        except TimeoutError:
            raise TargetFault("lost", "the supervisor did not answer", "run the command again") from None
        except asyncio.CancelledError:
            await self._cancel(process, number, answer)
            raise
        finally:
            self._waiting.pop(number, None)

    async def _cancel(
        self, process: asyncio.subprocess.Process, number: int, answer: asyncio.Future[JsonObject]
    ) -> None:
        await self._send(process, {"cancel": number})
        await asyncio.wait([answer], timeout=GRACE_S + _AFTER_END_S)

    async def _send(self, process: asyncio.subprocess.Process, message: JsonObject) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise TargetFault("lost", "the supervisor process has ended", "run the command again") from None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", "-S", str(_PROGRAM),
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise TargetFault("spawn", f"no process can be started: {error.strerror}") from None
            self._reader = asyncio.create_task(self._read(self._process))
        return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Hand answers out; when the stream ends, whoever still waits learns that the trial is lost."""
        assert process.stdout is not None
        async for line in process.stdout:
            reply = json.loads(line)
            waiting = self._waiting.get(reply["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(TargetFault("lost", "the supervisor process has ended"))

    async def close(self) -> None:
        if self._process is None or self._reader is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        await asyncio.wait([self._reader], timeout=GRACE_S + _AFTER_END_S)
        await self._process.wait()
        self._process = None
