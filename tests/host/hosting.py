"""A workspace with its real host, and clients of it: in this process, or as commands."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from sessions.holder import Holder
from sessions.host.client import HostClient
from sessions.host.reaching import host_place
from sessions.host.snapshot import Snapshot
from sessions.host.wire import encoded
from tests.cli.deck import DEADLINE_S, Deck, environment, processes_with, wait_until

STAYS = {"KERNELDECK_HOST_IDLE_S": "600"}


def holder(root: Path) -> Holder | None:
    """The living process that holds the workspace."""
    with suppress(OSError):
        found = Holder.from_text((root / ".kerneldeck/lock").read_text())
        return None if found is None or found.is_gone() else found
    return None


def host_pid(root: Path) -> int:
    found = holder(root)
    assert found is not None and found.socket, "no host holds the workspace"
    return found.pid


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send the signal, and wait for the process's end."""
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, number)
    ended, _, _ = select.select([handle], [], [], DEADLINE_S)
    os.close(handle)
    assert ended, f"process {pid} did not end"


def end_host(root: Path) -> None:
    found = holder(root)
    if found is not None and found.pid != os.getpid():
        kill(found.pid, signal.SIGTERM)
    wait_until(lambda: processes_with(str(root)) == [], "the end of everything of the workspace")


def command(deck: Deck, *words: str, **more: Any) -> subprocess.Popen[str]:
    """A command whose host stays, with pipes to read from."""
    return subprocess.Popen(
        [sys.executable, "-m", "kerneldeck", *words], cwd=deck.root, env=environment(STAYS), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        **more,
    )  # fmt: skip


def socket_of(root: Path) -> Path:
    return host_place(root)[1].socket


def knock(root: Path, *messages: object) -> socket.socket:
    """A raw connection to the host, these messages sent."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(DEADLINE_S)
    connection.connect(str(socket_of(root)))
    for message in messages:
        connection.sendall(message if isinstance(message, bytes) else encoded(message))  # type: ignore[arg-type]
    return connection


def read_line(connection: socket.socket) -> bytes:
    """One line; what came of it when the connection ended."""
    line = b""
    while not line.endswith(b"\n") and (chunk := connection.recv(1)):
        line += chunk
    return line


@asynccontextmanager
async def client(deck: Deck, **more: Any) -> AsyncIterator[HostClient]:
    connected = await HostClient.connect(deck.root, **more)
    async with connected:
        yield connected


async def until(client: HostClient, holds: Callable[[Snapshot], bool]) -> Snapshot:
    """Follow the client's updates until the snapshot they make is as wanted."""
    async with asyncio.timeout(DEADLINE_S):
        async for _ in client.updates():
            if client.latest is not None and holds(client.latest):
                return client.latest
    raise AssertionError("the updates ended")


def rows(root: Path, sql: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(root / ".kerneldeck/state.sqlite3")
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def gated(deck: Deck, when: str = "true") -> tuple[Path, Path]:
    """Trials for which `when` holds say `reached`, and go on once `go-on` is there."""
    reached, go_on = deck.root.parent / "reached", deck.root.parent / "go-on"
    deck.kernel(
        f"if {when}; then touch {reached}; while [ ! -e {go_on} ]; do sleep 0.01; done; fi; : ${{score:=100}}"
    )
    return reached, go_on
