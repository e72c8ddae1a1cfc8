"""The tests' proxy in a process of its own, so that it takes no time of the client's: counts on demand."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass

from tests.remote.proxy import proxying


@dataclass(frozen=True, slots=True)
class Counts:
    """What went through: turns of the talk from server to client, and bytes in both directions."""

    round_trips: int
    up_bytes: int
    down_bytes: int


class ProxyProcess:
    """A proxy before `target_port` that delays each way by `delay_s`."""

    def __init__(self, target_port: int, delay_s: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(target_port), str(delay_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.port = int(self._line())

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def counts(self) -> Counts:
        """Since they were last asked for."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return Counts(*json.loads(self._line()))

    def close(self) -> None:
        self._process.communicate()


async def serve(target_port: int, delay_s: float) -> None:
    """One line of counts for each line on standard input, until that ends."""
    async with proxying(target_port, delay_s) as proxy:
        print(proxy.port, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps([proxy.round_trips, proxy.up_bytes, proxy.down_bytes]), flush=True)
            proxy.forget_counts()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
