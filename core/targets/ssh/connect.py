"""The way to an SSH target, hop by hop, kept for the session; imports asyncssh only when it connects."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from core.targets.ssh.faults import SshFault
from core.targets.ssh.patience import Patience

if TYPE_CHECKING:
    from core.targets.ssh.address import Address
    from core.targets.ssh.connection import Connection
    from core.targets.ssh.hops import LoggedIn
    from core.targets.ssh.host_keys import AskHostKey

    _Way = tuple[Address, Path | None]


async def connect(
    address: Address,
    *,
    ask: AskHostKey | None = None,
    patience: Patience | None = None,
    config_path: Path | None = None,
    key_file: Path | None = None,
) -> Connection:
    """A login on `address` by the user's ssh configuration, every hop's key checked.

    `ask` is the question about an unknown host key, for a terminal; without it such a host is refused.
    A `key_file` is offered to the target instead of the configured keys.
    SshFault of stage `config`, `dns`, `connect`, `hostkey` or `auth` names the hop that failed.
    """
    from core.targets.ssh.connection import Connection, close_logins
    from core.targets.ssh.hops import log_in
    from core.targets.ssh.telling import Leg
    from core.targets.ssh.user_config import effective

    route = effective(address, config_path, key_file)
    bounds = patience or Patience()
    started = time.perf_counter()
    logins: list[LoggedIn] = []
    try:
        for number in range(len(route.hops)):
            via = logins[-1] if logins else None
            logins.append(await log_in(Leg(route, number), via, bounds, ask))
    except BaseException:
        await close_logins(logins)
        raise
    return Connection(route, logins, bounds, (time.perf_counter() - started) * 1e3)


class Connections:
    """At most one connection to a target, kept until the session ends.

    A lost one is opened anew when it is next asked for; after a refused login it is not, until `try_again`.
    """

    def __init__(
        self,
        *,
        ask: AskHostKey | None = None,
        patience: Patience | None = None,
        config_path: Path | None = None,
    ) -> None:
        self._ask = ask
        self._patience = patience
        self._config_path = config_path
        self._open: dict[_Way, Connection] = {}
        self._refused: dict[_Way, SshFault] = {}
        self._turns: dict[_Way, asyncio.Lock] = {}

    async def get(self, address: Address, key_file: Path | None = None) -> Connection:
        """The connection to `address`; SshFault as `connect` raises it, again for a refused login."""
        way = (address, key_file)
        async with self._turns.setdefault(way, asyncio.Lock()):
            kept = self._open.get(way)
            if kept and kept.is_open:
                return kept
            if kept:
                del self._open[way]
                await kept.close()
            if way in self._refused:
                raise self._refused[way].with_traceback(None)
            return await self._connect(way)

    async def _connect(self, way: _Way) -> Connection:
        address, key_file = way
        try:
            made = await connect(
                address,
                ask=self._ask,
                patience=self._patience,
                config_path=self._config_path,
                key_file=key_file,
            )
        except SshFault as fault:
            if fault.stage in ("auth", "hostkey"):
                self._refused[way] = fault
            raise
        self._open[way] = made
        return made

    def try_again(self) -> None:
        """Forget which logins were refused: the user has asked for another try."""
        self._refused.clear()

    async def close(self) -> None:
        """Close every connection; done within seconds."""
        async with asyncio.TaskGroup() as closing:
            for connection in self._open.values():
                closing.create_task(connection.close())
        self._open.clear()
