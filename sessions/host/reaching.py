"""The way to a workspace's host: its socket, a greeting, and starting one where there is none."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import Busy
from core.version import VERSION
from core.words import JsonObject
from core.workspace.finding import find_workspace
from core.workspace.toml_reader import read_workspace
from sessions.host.codec import from_json, to_json
from sessions.host.place import SocketPlace, check_socket, socket_place
from sessions.host.starting import start_host
from sessions.host.wire import (
    GREETED_WITHIN_S,
    MOST_FROM_HOST_BYTES,
    PROTOCOL,
    Hello,
    HostFault,
    ToldFault,
    Welcome,
    WireFault,
    encoded,
    read_message,
)
from sessions.lock import holder_of
from sessions.state_dir import StatePlace, locate, refuse_foreign

_TRIES = 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


@dataclass(frozen=True, slots=True)
class Reached:
    """A host that said welcome."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    welcome: Welcome


def host_place(start: Path) -> tuple[StatePlace, SocketPlace]:
    """The state folder of the workspace at or above `start`, and where its host listens."""
    workspace = read_workspace(find_workspace(start))
    place = locate(workspace.root, workspace.config.state_dir)
    refuse_foreign(place)
    return place, socket_place(place)


async def reach(
    start: Path, actor: str, command: str, readonly: bool, may_start: bool, wait_s: float | None
) -> Reached:
    """See HostClient.connect."""
    place, here = host_place(start)
    hello = Hello(PROTOCOL, VERSION, actor, os.getpid(), command, readonly)
    deadline_s = time.monotonic() + (float("inf") if wait_s is None else wait_s)
    pause_s = _FIRST_PAUSE_S
    for number in range(1 << 30):
        reached = await _greeted(_listening(place, here), hello)
        if reached is not None and _serves(reached.welcome, place):
            return reached
        if reached is not None:
            reached.writer.close()
        if not may_start:
            raise HostFault("no host runs for this workspace", "the next command that works starts one")
        try:
            await start_host(place.workspace, here)
        except ToldFault as fault:
            if fault.code != Busy.code or time.monotonic() >= deadline_s:
                raise
        # A host that was just leaving, or was faster than the one started here.
        if number >= _TRIES and time.monotonic() >= deadline_s:
            break
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    raise HostFault(
        "no host of this workspace stays up to be asked", "look at its log: kerneldeck host status"
    )


def _listening(place: StatePlace, here: SocketPlace) -> Path:
    """The socket that the workspace's holder says it listens on; else the one of this environment."""
    if check_socket(here.socket):
        return here.socket
    holder = holder_of(place)
    return Path(holder.socket) if holder and holder.socket else here.socket


def _serves(welcome: Welcome, place: StatePlace) -> bool:
    """Not where the workspace was moved from under its host, or is a copy of the host's."""
    with suppress(OSError):
        return Path(welcome.root).samefile(place.workspace)
    return False


async def _greeted(socket: Path, hello: Hello) -> Reached | None:
    """None when nobody listens there (any more). HostFault: a host that refuses this client."""
    if not check_socket(socket):
        return None
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket), limit=MOST_FROM_HOST_BYTES)
    except (ConnectionRefusedError, FileNotFoundError, ConnectionResetError):
        return None
    except OSError as error:
        raise HostFault(f"the host's socket cannot be used: {error.strerror}", "try again") from error
    try:
        async with asyncio.timeout(GREETED_WITHIN_S):
            writer.write(encoded({"hello": to_json(hello)}))
            told = await read_message(reader)
    except (TimeoutError, WireFault, OSError) as error:
        writer.close()
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            return None
        raise HostFault("the host does not answer", "end it and try again: kerneldeck host stop") from None
    if told is None or told.get("leaving"):
        writer.close()
        return None
    return Reached(reader, writer, _welcome(told, writer))


def _welcome(told: JsonObject, writer: asyncio.StreamWriter) -> Welcome:
    if "welcome" not in told:
        writer.close()
        raise ToldFault(told.get("refused") or {"sentence": "the host refused this client", "exit_code": 3})
    return from_json(Welcome, told["welcome"])
