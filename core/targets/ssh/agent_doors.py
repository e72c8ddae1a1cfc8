"""How agents reach the process that watches a trial: a socket in the trial's folder.

Whoever is connected keeps the trial's lease. The watching process writes JSON lines and closes when there
is an outcome; "c" from an agent cancels. Part of the agent's bundle: standard library, Python 3.8's syntax.
"""

from __future__ import annotations

import json
import select
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.targets.ssh.wire import Json

CANCEL = b"c"
LONGEST_WAIT_S = 3600.0


def listen(path: str) -> socket.socket:
    """`path` has to be short (about 100 bytes): it is relative to the scratch folder."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(16)
    door.setblocking(False)
    return door


def knock(path: str) -> socket.socket:
    """OSError when nobody listens there (any more)."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(5.0)
        connection.connect(path)
        connection.setblocking(False)
    except OSError:
        connection.close()
        raise
    return connection


class Doors:
    """The watching side: who is connected, whether they cancelled, and when the lease runs out."""

    def __init__(self, door: socket.socket, lease_s: float) -> None:
        self.door = door
        self.lease_s = lease_s
        self.connections: list[socket.socket] = []
        self.alone_since = time.monotonic()
        self.cancelled = False

    def descriptors(self) -> list[int]:
        return [self.door.fileno(), *(each.fileno() for each in self.connections)]

    def lease_until(self) -> float | None:
        """None while somebody is connected."""
        return None if self.connections else self.alone_since + self.lease_s

    @property
    def lease_over(self) -> bool:
        until = self.lease_until()
        return until is not None and time.monotonic() >= until

    def look(self, ready: Collection[int]) -> None:
        """Take who knocks, hear who speaks, let go who has left."""
        for connection in [each for each in self.connections if each.fileno() in ready]:
            try:
                said = connection.recv(64)
            except BlockingIOError:
                continue
            except OSError:
                said = b""
            self.cancelled = self.cancelled or CANCEL in said
            if not said:
                self._let_go(connection)
        if self.door.fileno() in ready:
            try:
                connection, _ = self.door.accept()
            except OSError:
                return
            connection.setblocking(False)
            self.connections.append(connection)

    def _let_go(self, connection: socket.socket) -> None:
        connection.close()
        self.connections.remove(connection)
        if not self.connections:
            self.alone_since = time.monotonic()

    def wait(self, descriptor: int, until: float) -> None:
        """Until the descriptor is readable, time is up, the lease is over or somebody cancels."""
        while not self.cancelled and not self.lease_over:
            ends = [end for end in (until, self.lease_until()) if end is not None]
            wait_s = min(LONGEST_WAIT_S, max(0.0, min(ends) - time.monotonic()))
            ready, _, _ = select.select([descriptor, *self.descriptors()], [], [], wait_s)
            self.look(ready)
            if descriptor in ready or time.monotonic() >= until:
                return

    def tell(self, news: Json) -> None:
        line = json.dumps(news).encode() + b"\n"
        self.look(select.select(self.descriptors(), [], [], 0)[0])
        for connection in list(self.connections):
            try:
                connection.sendall(line)
            except OSError:
                self._let_go(connection)

    def close(self) -> None:
        for connection in (self.door, *self.connections):
            connection.close()
