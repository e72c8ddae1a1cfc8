"""A link that breaks while it is used: always noticed, never waited for without end, closed at once."""

from __future__ import annotations

import asyncio
import time

import pytest

from core.targets.ssh.address import parse_address
from core.targets.ssh.connect import connect
from core.targets.ssh.connection import Connection
from core.targets.ssh.faults import SshFault
from tests.remote.conftest import Serve
from tests.remote.connecting import HELLO, MARKER, QUICK, says_hello, shareable, started, wait_until_gone
from tests.remote.proxy import Proxy, proxying
from tests.remote.sshd import Server, User

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


@pytest.fixture
def server(serve: Serve, user: User) -> Server:
    running = serve()
    user.known_hosts.write_text(running.known_hosts_line.replace(f"[127.0.0.1]:{running.port}", "box"))
    return running


def through(user: User, proxy: Proxy, *options: str) -> None:
    user.writes("box", proxy.port, "HostKeyAlias box", *options)


async def login(user: User) -> Connection:
    return await connect(parse_address("ssh:box"), patience=QUICK, config_path=user.config)


def lost(fault: SshFault, user: User) -> None:
    assert shareable(fault, user).stage == "lost"
    assert fault.sentence == "box: the connection was lost"


def test_a_cut_ends_every_read_and_every_later_start(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            channel = await started(connection)
            proxy.cut()
            async with asyncio.timeout(5):
                assert await channel.read(10) == b""
                lost(await connection.wait_lost(), user)
                await channel.drain()
                await channel.wait_closed()
            assert channel.exit_status is None and not connection.is_open
            channel.write(b"nobody hears this")
            with pytest.raises(SshFault) as caught:
                await connection.open_agent_channel(HELLO, MARKER)
            lost(caught.value, user)
            async with asyncio.timeout(1):
                await connection.close()

    asyncio.run(session())
    wait_until_gone(server)


@pytest.mark.parametrize(
    ("at_byte", "told"),
    [
        (0, "box closed the connection before a login (2 tries)"),
        (10, "box closed the connection before a login (2 tries)"),
        (1000, "box closed the connection before a login (2 tries)"),
        (1900, "box ended the connection during the login"),
    ],
)
def test_a_cut_on_the_way_in(user: User, server: Server, at_byte: int, told: str) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            proxy.cut_after_up = at_byte
            with pytest.raises(SshFault) as caught:
                await login(user)
            assert shareable(caught.value, user).stage == "connect"
            assert caught.value.sentence == told

    asyncio.run(session())
    wait_until_gone(server)


def test_a_cut_before_the_program_has_started(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            proxy.cut_after_up = 30
            with pytest.raises(SshFault) as caught:
                await connection.open_agent_channel(HELLO, MARKER)
            lost(caught.value, user)
            await connection.close()

    asyncio.run(session())
    wait_until_gone(server)


def test_a_stalled_link_is_noticed_by_keepalive(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy, "ServerAliveInterval 1", "ServerAliveCountMax 1")
            connection = await login(user)
            channel = await started(connection)
            proxy.stall()
            since = time.monotonic()
            async with asyncio.timeout(6):
                lost(await connection.wait_lost(), user)
                assert await channel.read(1) == b""
            assert 1 < time.monotonic() - since < 4
            await connection.close()

    asyncio.run(session())
    wait_until_gone(server)


def test_closing_over_a_stalled_link_with_much_unsent_does_not_hang(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            channel = await started(connection)
            proxy.stall()
            channel.write(bytes(8 << 20))
            since = time.monotonic()
            await connection.close()
            assert time.monotonic() - since < 4
            assert await channel.read(1) == b"" and not connection.is_open

    asyncio.run(session())
    wait_until_gone(server)


def test_opening_a_session_over_a_stalled_link_is_bounded(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            proxy.stall()
            connection = Connection(
                connection.route, connection._logins, type(QUICK)(session_s=0.3), connection.connect_ms
            )
            with pytest.raises(SshFault) as caught:
                await connection.open_agent_channel(HELLO, MARKER)
            assert shareable(caught.value, user).stage == "channel"
            await connection.close()

    asyncio.run(session())
    wait_until_gone(server)


def test_a_short_stall_loses_nothing(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            channel = await started(connection)
            proxy.stall()
            channel.write(b"held up")
            channel.end_input()
            proxy.flow()
            assert await channel.read(100) == b"held up"
            await connection.close()

    asyncio.run(session())


def test_a_login_and_a_start_cost_few_round_trips(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port, delay_s=0.01) as proxy:
            through(user, proxy)
            connection = await login(user)
            login_trips = proxy.round_trips
            proxy.forget_counts()
            channel = await started(connection)
            start_trips = proxy.round_trips
            channel.close()
            await connection.close()
        assert login_trips <= 8 and start_trips <= 3, (login_trips, start_trips)

    asyncio.run(session())
    wait_until_gone(server)


def test_a_task_that_is_cancelled_leaves_the_connection_good(user: User, server: Server) -> None:
    async def session() -> None:
        async with proxying(server.port) as proxy:
            through(user, proxy)
            connection = await login(user)
            proxy.stall()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await connection.open_agent_channel(HELLO, MARKER)
            proxy.flow()
            await says_hello(connection)
            await connection.close()

    asyncio.run(session())
    wait_until_gone(server)
