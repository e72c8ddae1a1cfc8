"""Getting to the machine: names, ports, and servers that are none."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import pytest

from core.targets.ssh.address import parse_address
from core.targets.ssh.connect import connect
from core.targets.ssh.patience import Patience
from tests.remote.conftest import Serve
from tests.remote.connecting import connected, fault_of, says_hello, wait_until_gone
from tests.remote.sshd import User

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


@contextmanager
def listening(behave: Callable[[socket.socket], None] | None, backlog: int = 8) -> Iterator[int]:
    """A server that does `behave` with every connection, or never accepts one."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(backlog)
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                if behave:
                    behave(connection)

        thread = Thread(target=accept)
        if behave:
            thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            if behave:
                thread.join()
            for connection in accepted:
                connection.close()


def test_a_login_runs_a_program_and_leaves_nothing(user: User, serve: Serve) -> None:
    server = serve()
    user.trusts(server)
    user.writes("box", server.port)
    connection = connected(user, says_hello)
    assert connection.connect_ms > 0 and connection.notes == ()
    wait_until_gone(server)
    assert list(server.home.iterdir()) == []


def test_a_name_that_does_not_resolve(user: User) -> None:
    user.writes("box", 22, "HostName box.invalid")
    fault = fault_of(user)
    assert fault.stage == "dns"
    assert fault.sentence == "box: its host name cannot be resolved"
    assert "box.invalid" in fault.details


def test_a_refused_port_is_tried_again_and_told_within_a_second(user: User, closed_port: int) -> None:
    user.writes("box", closed_port)
    started = time.monotonic()
    fault = fault_of(user, patience=Patience(tries=3, first_wait_s=0.1))
    assert 0.15 < time.monotonic() - started < 1.5
    assert fault.stage == "connect"
    assert fault.sentence == "box refused the connection (3 tries)"
    assert str(closed_port) in fault.details


def test_the_waits_between_tries_are_bounded_and_repeat_with_the_seed() -> None:
    patience = Patience(tries=6, first_wait_s=1, longest_wait_s=4, seed=7)
    waits = list(patience.waits_s())
    assert waits == list(patience.waits_s()) and len(waits) == 5
    for wait, whole in zip(waits, (1, 2, 4, 4, 4), strict=True):
        assert whole / 2 <= wait <= whole
    assert list(Patience(tries=1).waits_s()) == []


def test_a_machine_that_swallows_the_first_packet(user: User) -> None:
    with listening(None, backlog=0) as port:
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        user.writes("box", port)
        started = time.monotonic()
        fault = fault_of(user, patience=Patience(connect_s=0.4))
        assert time.monotonic() - started < 2
        for filler in fillers:
            filler.close()
    assert fault.stage == "connect"
    assert fault.sentence == "box did not answer a connection within 0.4 s"


def test_the_configured_connect_timeout_counts(user: User) -> None:
    with listening(lambda connection: None) as port:
        user.writes("box", port, "ConnectTimeout 1")
        started = time.monotonic()
        fault = fault_of(user, patience=Patience(connect_s=60, login_s=60))
        assert 0.9 < time.monotonic() - started < 3
    assert fault.stage == "connect"
    assert fault.sentence == "box accepted the connection but said nothing within 1 s"


def test_a_silent_server_is_given_up_long_before_a_login_may_take(user: User) -> None:
    with listening(lambda connection: None) as port:
        user.writes("box", port)
        fault = fault_of(user, patience=Patience(connect_s=0.3, login_s=60))
    assert (fault.stage, fault.sentence) == (
        "connect", "box accepted the connection but said nothing within 0.3 s",
    )  # fmt: skip


def test_a_server_that_greets_and_then_stops_is_no_silent_one(user: User) -> None:
    with listening(lambda connection: connection.sendall(b"SSH-2.0-Stuck\r\n")) as port:
        user.writes("box", port)
        fault = fault_of(user, patience=Patience(connect_s=0.2, login_s=0.6))
    assert fault.stage == "connect"
    assert fault.sentence == "box began to talk but did not come to the login within 0.6 s"


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-\xff\xfe\r\n", b"SSH-1.5-old\r\n", b"SSH-2.0-x\r\n" + bytes(5000), b"\xff" * 70000,
        b"line\r\n" * 3000, b"SSH-2.0-x\r\n\0\0\0\x0c\x04\x14" + bytes(10), b"\x1b]0;owned\x07\r\n",
    ],
    ids=["no-text", "old", "zeros", "endless-line", "endless-lines", "bad-kex", "escapes"],
)  # fmt: skip
def test_a_server_that_talks_nonsense(user: User, said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(said)
        connection.close()

    with listening(talk) as port:
        user.writes("box", port)
        fault = fault_of(user)
    assert fault.stage == "connect" and fault.sentence.startswith("box ")
    assert fault.details.isprintable()


def answer_like_http(connection: socket.socket) -> None:
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    connection.close()


@pytest.mark.parametrize("behave", [socket.socket.close, answer_like_http], ids=["closes", "http"])
def test_something_that_is_no_ssh_server(user: User, behave: Callable[[socket.socket], None]) -> None:
    with listening(behave) as port:
        user.writes("box", port)
        fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box closed the connection before a login (2 tries)"
    assert "MaxStartups" in fault.hint


@contextmanager
def greeted(port: int) -> Iterator[None]:
    """An idle login that the server has let in; the probe of its start may still be in the way."""
    while True:
        with socket.create_connection(("127.0.0.1", port)) as idle:
            if idle.recv(4) == b"SSH-":
                yield
                return


def test_a_server_that_takes_no_more_logins_just_now(user: User, serve: Serve) -> None:
    server = serve("MaxStartups 1:100:1")
    user.trusts(server)
    user.writes("box", server.port)
    with greeted(server.port):
        fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box closed the connection before a login (2 tries)"
    wait_until_gone(server)


def test_a_server_that_turns_the_first_try_away_is_reached_by_the_second(user: User, serve: Serve) -> None:
    server = serve()
    user.known_hosts.write_text(server.known_hosts_line.replace(f"[127.0.0.1]:{server.port}", "box"))
    tries: list[socket.socket] = []
    pipes: list[Thread] = []

    def second_goes_through(connection: socket.socket) -> None:
        tries.append(connection)
        if len(tries) == 1:
            connection.close()
            return
        far = socket.create_connection(("127.0.0.1", server.port))
        tries.append(far)
        for source, sink in ((connection, far), (far, connection)):
            pipes.append(Thread(target=pass_bytes, args=(source, sink)))
            pipes[-1].start()

    with listening(second_goes_through) as port:
        user.writes("box", port, "HostKeyAlias box")
        connected(user, says_hello)
        for pipe in pipes:
            pipe.join()
        tries.pop().close()
    assert len(tries) == 2


def pass_bytes(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def test_cancelling_a_connection_leaves_nothing(user: User) -> None:
    with listening(lambda connection: None) as port:
        user.writes("box", port)

        async def give_up() -> None:
            async with asyncio.timeout(0.2):
                await connect(parse_address("ssh:box"), config_path=user.config)

        with pytest.raises(TimeoutError):
            asyncio.run(give_up())
