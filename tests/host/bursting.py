"""A host that tells 1,000 events a second for three seconds once it gets SIGUSR1."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from core.events import Note
from sessions.host.reaching import host_place
from sessions.host.server import Host
from sessions.session import hold_workspace

EVENTS, PER_BATCH, BATCH_S = 3000, 20, 0.02


class Bursting:
    """Paced by the loop's clock: a batch late is a batch sooner after."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.told = 0
        self.began_s = 0.0

    def begin(self) -> None:
        self.began_s = asyncio.get_running_loop().time()
        self.go_on()

    def go_on(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(PER_BATCH):
            self.told += 1
            over = self.told == EVENTS
            self.host.log.tell(Note("the burst is over" if over else f"event {self.told} of a burst"))
        if self.told < EVENTS:
            loop.call_at(self.began_s + BATCH_S * self.told / PER_BATCH, self.go_on)


async def main(root: Path) -> None:
    here = host_place(root)[1].socket
    with hold_workspace(root, "a burst", str(here)) as held:
        host = Host(held, 600.0, [])
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, Bursting(host).begin)
        await host.run(here, lambda: print("listens", flush=True))


asyncio.run(main(Path(sys.argv[1])))
