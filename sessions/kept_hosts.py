"""SSH connections kept between the calls of one process, each for a bounded idle time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessions.where import Here, There, Where

if TYPE_CHECKING:
    from core.targets.ssh.host import SshHost
    from core.targets.ssh.host_keys import AskHostKey, HostKeyQuestion
    from core.targets.ssh.places import Place

KEEP_S = 300.0
_Way = tuple[object, ...]


@dataclass(slots=True)
class KeptHost:
    """One machine's connection; `ask` is the present caller's question, `users` the calls that use it."""

    place: Place
    ask: AskHostKey | None = None
    users: int = 0
    host: SshHost | None = None
    expiry: asyncio.TimerHandle | None = field(default=None)

    async def ask_caller(self, question: HostKeyQuestion) -> bool:
        return self.ask is not None and await self.ask(question)


class KeptHosts:
    """Opens places as `sessions.where.opened` does, but a machine that was used lately is still connected."""

    def __init__(self, keep_s: float = KEEP_S) -> None:
        self._keep_s = keep_s
        self._kept: dict[_Way, KeptHost] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def machines(self) -> list[SshHost]:
        """Those that are connected, as far as is known."""
        return [kept.host for kept in self._kept.values() if kept.host is not None]

    async def opened(self, place: Place | None, ask: AskHostKey | None) -> Where:
        """Connected, greeted, its facts asked for; TargetFault as `sessions.where.opened`."""
        if place is None:
            return Here()
        way = _way(place)
        kept = self._kept.setdefault(way, KeptHost(place))
        if kept.expiry is not None:
            kept.expiry.cancel()
        kept.ask = ask
        kept.users += 1
        try:
            host = await self._host(kept)
        except BaseException:
            self._kept.pop(way, None)
            raise
        return There(host, lambda: self._release(way, kept))

    async def _host(self, kept: KeptHost) -> SshHost:
        from core.targets.ssh.health_cache import HealthCache, cache_folder
        from core.targets.ssh.host import SshHost

        if kept.host is None:
            ask = None if kept.ask is None else kept.ask_caller
            kept.host = SshHost(kept.place, ask=ask, healthy=HealthCache(cache_folder(os.environ)))
        await kept.host.open()
        return kept.host

    def _release(self, way: _Way, kept: KeptHost) -> None:
        kept.users -= 1
        kept.ask = None
        if kept.users == 0:
            kept.expiry = asyncio.get_running_loop().call_later(self._keep_s, self._expire, way, kept)

    def _expire(self, way: _Way, kept: KeptHost) -> None:
        if self._kept.get(way) is kept and kept.users == 0 and kept.host is not None:
            del self._kept[way]
            task = asyncio.get_running_loop().create_task(kept.host.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Leave every machine; bounded in time by each connection's own closing."""
        kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            if one.expiry is not None:
                one.expiry.cancel()
        closing = [one.host.close() for one in kept if one.host is not None]
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)


def _way(place: Place) -> _Way:
    """What makes two calls mean the same machine, reached in the same way by the same user's settings."""
    return (
        place.name, place.address, place.gpu, place.scratch, place.python, place.key_file,
        os.environ.get("HOME", ""), place.min_free_mb, place.scratch_limit_mb,
        tuple(sorted(place.environment.items())), place.wrapper,
    )  # fmt: skip
