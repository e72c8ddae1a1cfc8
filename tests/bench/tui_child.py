"""The app as `kerneldeck tui` starts it, following a host that is a stand-in: what it tells comes as lines.

`python tui_child.py ROOT FIFO`: the first line of the FIFO is a snapshot, each further one a numbered event.
Only the connection is stood in for; the app, its launcher, its store and its terminal are the real ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from core.operations.declaration import Answer
from sessions.host.client import HostClient
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot, fold
from tui.launch import run_app

LONGEST_LINE = 1 << 24


class NothingAsked:
    """Work that never ends."""

    receipt = 1

    async def answer(self) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


class ToldByLines:
    """A `tui.connection.Connection` that reads a FIFO and takes every request."""

    def __init__(self, fifo: Path) -> None:
        self.latest: Snapshot | None = None
        self._fifo = fifo

    async def updates(self, after: int | None = None) -> AsyncIterator[Snapshot | Numbered]:
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        pipe = os.fdopen(os.open(self._fifo, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        while line := await reader.readline():
            told = json.loads(line)
            if self.latest is None:
                self.latest = Snapshot.from_json(told)
                yield self.latest
                continue
            numbered = Numbered.from_json(told)
            self.latest = fold(self.latest, numbered)
            yield numbered
        await asyncio.Event().wait()

    async def submit(
        self,
        operation: str,
        arguments: Mapping[str, object],
        *,
        lease: bool = True,
        wait_s: float | None = None,
        command: str = "",
    ) -> NothingAsked:
        return NothingAsked()

    async def control(self, what: str, sweep: int | None = None, **more: object) -> str:
        return f"{what}: taken"

    async def cancel(self, receipt: int) -> None:
        return None

    async def close(self) -> None:
        return None


def main() -> None:
    root, fifo = Path(sys.argv[1]), Path(sys.argv[2])

    async def connect(*_: object, **__: object) -> ToldByLines:
        return ToldByLines(fifo)

    HostClient.connect = connect  # type: ignore[method-assign, assignment]
    sys.exit(run_app(root))


if __name__ == "__main__":
    main()
