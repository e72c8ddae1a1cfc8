"""What the app needs of a host: the part of HostClient that it calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from core.operations.declaration import Answer
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot


class Asked(Protocol):
    """Work that the host took on."""

    @property
    def receipt(self) -> int: ...

    async def answer(self) -> Answer: ...


class Connection(Protocol):
    """A host's client, connected."""

    @property
    def latest(self) -> Snapshot | None: ...

    def updates(self, after: int | None = None) -> AsyncIterator[Snapshot | Numbered]: ...

    async def submit(
        self,
        operation: str,
        arguments: Mapping[str, object],
        *,
        lease: bool = True,
        wait_s: float | None = None,
        command: str = "",
    ) -> Asked: ...

    async def control(self, what: str, sweep: int | None = None, **more: object) -> str: ...

    async def cancel(self, receipt: int) -> None: ...

    async def close(self) -> None: ...


Connect = Callable[[], Awaitable[Connection]]

if TYPE_CHECKING:
    from sessions.host.client import HostClient

    def _is_a_connection(client: HostClient) -> Connection:
        return client
