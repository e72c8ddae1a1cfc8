"""What the connection tests share: quick bounds, a fault as it is raised, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import getpass
import os
import select
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from core.targets.ssh.address import parse_address
from core.targets.ssh.channel import AgentChannel
from core.targets.ssh.connect import connect
from core.targets.ssh.connection import Connection
from core.targets.ssh.faults import SshFault
from core.targets.ssh.host_keys import AskHostKey, HostKeyQuestion
from core.targets.ssh.patience import Patience
from tests.remote.sshd import Server, User, descendants

QUICK = Patience(connect_s=1.0, login_s=4.0, session_s=4.0, tries=2, first_wait_s=0.01, seed=1)
HELLO = "exec python3 -I -S -u -c 'import sys;sys.stdout.write(chr(30)+\"hello\"+chr(10));sys.stdout.flush();sys.stdout.write(sys.stdin.read())'"  # noqa: E501
MARKER = b"\x1ehello\n"
SPOKEN = b"\xff\x00there"


def fault_of(
    user: User, name: str = "box", *, ask: AskHostKey | None = None, patience: Patience = QUICK
) -> SshFault:
    """The fault with which a connection to `name` ends; checked to be fit for sharing."""

    async def attempt() -> None:
        connection = await connect(
            parse_address(f"ssh:{name}"), ask=ask, patience=patience, config_path=user.config
        )
        await connection.close()

    with pytest.raises(SshFault) as caught:
        asyncio.run(attempt())
    return shareable(caught.value, user)


def shareable(fault: SshFault, user: User) -> SshFault:
    """`fault`, once its sentence and hint are seen to hold no address, path, key name or user name."""
    text = str(fault)
    assert fault.sentence and fault.hint and fault.code == f"target.{fault.stage}"
    for private in ("127.0.0.1", str(user.folder), user.key.name + ".pub", f"{getpass.getuser()}@"):
        assert private not in text
    assert len(fault.sentence) < 240
    return fault


def connected(
    user: User,
    use: Callable[[Connection], Awaitable[None]],
    name: str = "box",
    *,
    ask: AskHostKey | None = None,
    patience: Patience = QUICK,
) -> Connection:
    """`use` with a connection to `name`, which is closed afterwards; it is given back to look at."""

    async def session() -> Connection:
        connection = await connect(
            parse_address(f"ssh:{name}"), ask=ask, patience=patience, config_path=user.config
        )
        try:
            await use(connection)
        finally:
            async with asyncio.timeout(6):
                await connection.close()
        assert not connection.is_open
        return connection

    return asyncio.run(session())


async def started(connection: Connection, boot_line: str = HELLO) -> AgentChannel:
    """A program that runs over `connection` and has said so."""
    channel = await connection.open_agent_channel(boot_line, MARKER)
    said = b""
    while len(said) < len(MARKER):
        said += await channel.read(len(MARKER) - len(said))
    assert said == MARKER
    return channel


async def says_hello(connection: Connection) -> None:
    """Run a program over `connection` and see bytes go both ways."""
    assert await _echoed(connection) == SPOKEN


async def _echoed(connection: Connection) -> bytes:
    """What a program over `connection` says when it is told SPOKEN."""
    channel = await started(connection)
    channel.write(SPOKEN)
    channel.end_input()
    said = b""
    while piece := await channel.read(3):
        said += piece
    await channel.wait_closed()
    assert channel.exit_status == 0
    return said


def heard(user: User, *, ask: AskHostKey | None = None, patience: Patience = QUICK) -> bytes:
    """What comes back over a connection to `box` when SPOKEN is sent to a program there."""
    said: list[bytes] = []

    async def listen(connection: Connection) -> None:
        said.append(await _echoed(connection))

    connected(user, listen, ask=ask, patience=patience)
    return b"".join(said)


def answering(yes: bool, asked: list[HostKeyQuestion]) -> AskHostKey:
    """A person who answers every question about a host key in the same way."""

    async def answer(question: HostKeyQuestion) -> bool:
        asked.append(question)
        return yes

    return answer


def wait_until_gone(server: Server, within_s: float = 10.0) -> None:
    """Wait for the server's session processes to end; they must."""
    for pid in descendants(server.pid):
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            ended, _, _ = select.select([watched], [], [], within_s)
            assert ended, f"{Path(f'/proc/{pid}/cmdline').read_bytes()!r} is still there"
        finally:
            os.close(watched)
