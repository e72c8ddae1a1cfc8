"""The local target's parents: supervisors that have imported what trials declare, one an environment."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory

from core.errors import TargetFault
from core.targets.prefork import IMPORT_WITHIN_S, Declined, interpreter, parent_environment, took_too_long
from core.targets.supervisor_client import PROGRAM, Connection, SupervisorClient
from core.words import JsonObject

_ANSWERS_AFTER_S = 5.0  # the parent bounds its imports itself
_ENDS_WITHIN_S = 10.0
_Key = tuple[str, tuple[str, ...], frozenset[tuple[str, str]]]


class Parents:
    """Runs requests as forks. What cannot be imported is tried once and then remembered."""

    def __init__(self, within_s: float = IMPORT_WITHIN_S) -> None:
        self._within_s = within_s
        self._clients: dict[_Key, SupervisorClient] = {}
        self._declined: set[_Key] = set()

    async def run(self, modules: tuple[str, ...], request: JsonObject) -> JsonObject | None:
        """The supervisor's answer; None when this request is to be run from nothing.

        Declined with the reason the first time that modules cannot be had. A parent that a trial has ended,
        or that says nothing any more, is answered for; the next request finds another.
        """
        python = interpreter(request["argv"], request["env"])
        env = parent_environment(request["env"])
        key = (python, modules, frozenset(env.items()))
        if not python or not modules or key in self._declined:
            return None
        client = self._clients.setdefault(key, SupervisorClient(lambda: self._started(python, modules, env)))
        try:
            return await client.run(request)
        except Declined:
            self._declined.add(key)
            raise
        except TargetFault as fault:
            await client.abandon()
            return {"failure": fault.sentence, "stage": fault.stage}

    async def _started(self, python: str, modules: tuple[str, ...], env: Mapping[str, str]) -> Connection:
        try:
            with TemporaryDirectory(prefix="kerneldeck-import-", ignore_cleanup_errors=True) as folder:
                return await self._started_in(folder, python, modules, env)
        except OSError as error:
            raise Declined(f"{python} could not be started ({error.strerror})") from None

    async def _started_in(
        self, folder: str, python: str, modules: tuple[str, ...], env: Mapping[str, str]
    ) -> Connection:
        process = await asyncio.create_subprocess_exec(
            python, str(PROGRAM), "--import", str(self._within_s), *modules, cwd=folder, env=env,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            await self._imported(process, modules)
        except BaseException:
            await _end(process)
            raise
        return Connection(process)

    async def _imported(self, process: asyncio.subprocess.Process, modules: tuple[str, ...]) -> None:
        assert process.stdout is not None
        named = ", ".join(modules)
        try:
            async with asyncio.timeout(self._within_s + _ANSWERS_AFTER_S):
                async for line in process.stdout:
                    if line.startswith(b'{"ready": '):
                        return
                    if line.startswith(b'{"declined": '):
                        raise Declined(str(json.loads(line)["declined"]))
                ended = await process.wait()
        except TimeoutError:
            raise Declined(took_too_long(named, self._within_s)) from None
        if ended == -signal.SIGALRM:
            raise Declined(took_too_long(named, self._within_s))
        raise Declined(f"importing {named} ended the interpreter (exit code {ended})")

    async def close(self) -> None:
        """End what still runs; bounded in time."""
        for client in self._clients.values():
            await client.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its group, too: imports may have started processes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    ending = asyncio.ensure_future(process.wait())
    with suppress(asyncio.CancelledError):
        await asyncio.wait([ending], timeout=_ENDS_WITHIN_S)
    if not ending.done():
        ending.cancel()
        raise TargetFault("spawn", "a process that imports modules cannot be ended")
