"""The host as a process: holds the workspace, puts right what a crash left, and serves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import Busy, KerneldeckError
from core.workspace.toml_reader import read_workspace
from sessions.host.place import check_socket
from sessions.host.reaching import host_place
from sessions.host.server import Host
from sessions.host.wire import fault_json
from sessions.journal import JournaledFiles
from sessions.lock import holder_of
from sessions.recovery import recover
from sessions.session import Held, hold_workspace

IDLE_VARIABLE = "KERNELDECK_HOST_IDLE_S"
IDLE_S = 30.0
COMMAND = "kerneldeck host"
_LEFT_WITHIN_S = 10.0
_PAUSE_S = 0.02
_STDERR = 2


class _Waiting:
    """Whoever waits at a pipe for what comes of the start; told once, as others get its number then."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe

    def tell(self, message: dict[str, object]) -> None:
        """Tell it and close the pipe; whoever waited may have gone."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            with suppress(OSError):
                os.write(pipe, json.dumps(message).encode() + b"\n")
                os.close(pipe)


class _OtherServes(Exception):
    """Another host of this workspace listens."""


def serve(start: Path, ready: int) -> int:
    """Be the host of the workspace at or above `start`; what came of that is told to the pipe `ready`.

    With such a pipe this process leaves at once, and a child of it, of no terminal and no parent, serves.
    Returns an exit code when it is time to leave, or when another host serves already.
    """
    if ready > _STDERR and os.fork():
        os._exit(0)
    waiting = _Waiting(ready)
    try:
        _, here = host_place(start)
        with _held(start, str(here.socket)) as held:
            check_socket(here.socket)  # a dead one is replaced: whoever holds the workspace may
            recovered = _recovered(held)
            os.chdir("/")
            asyncio.run(_served(held, here.socket, recovered, waiting))
            _drop_empty(here.log)
    except _OtherServes:
        waiting.tell({"ready": True})
    except KerneldeckError as fault:
        waiting.tell({"fault": fault_json(fault)})
        return fault.exit_code
    return 0


async def _served(held: Held, socket: Path, recovered: list[str], waiting: _Waiting) -> None:
    await Host(held, idle_s(), recovered).run(socket, lambda: waiting.tell({"ready": True}))


def idle_s() -> float:
    """How long a host stays that nobody needs."""
    try:
        return max(0.0, float(os.environ[IDLE_VARIABLE]))
    except (KeyError, ValueError):
        return IDLE_S


@contextmanager
def _held(start: Path, listening: str) -> Iterator[Held]:
    """The workspace; a host that is just leaving it is waited for."""
    until_s = time.monotonic() + _LEFT_WITHIN_S
    while True:
        opening = hold_workspace(start, COMMAND, listening)
        try:
            held = opening.__enter__()
        except Busy:
            other = holder_of(host_place(start)[0])
            if other is not None and other.socket and _listens(other.socket):
                raise _OtherServes from None
            # A lock of which nothing can be read is just being taken or left.
            if (other is not None and not other.socket) or time.monotonic() >= until_s:
                raise
            time.sleep(_PAUSE_S)
            continue
        try:
            yield held
        finally:
            opening.__exit__(None, None, None)
        return


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _drop_empty(log: Path) -> None:
    """A log in which nothing was said, before the next host may write into it."""
    with suppress(OSError):
        if log.stat().st_size == 0:
            log.unlink()


def _recovered(held: Held) -> list[str]:
    workspace = read_workspace(held.root)
    return recover(held.store, JournaledFiles(held.root, workspace.config.files.mutable, held.store))
