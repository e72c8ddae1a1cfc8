"""Logging in: keys that are refused, locked, missing or too many; and never twice by itself."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.targets.ssh.address import parse_address
from core.targets.ssh.connect import Connections
from core.targets.ssh.faults import SshFault
from tests.remote.conftest import Serve
from tests.remote.connecting import (
    QUICK,
    SPOKEN,
    fault_of,
    heard,
    says_hello,
    wait_until_gone,
)
from tests.remote.far import far_of
from tests.remote.sshd import Server, User, kill_all, make_key

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


@pytest.fixture
def server(serve: Serve, user: User) -> Server:
    running = serve("MaxAuthTries 3")
    user.trusts(running)
    return running


@pytest.fixture
def agent(user: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An ssh-agent without keys, ended afterwards."""
    socket_path = user.folder / "agent"
    process = subprocess.Popen(
        [shutil.which("ssh-agent") or "ssh-agent", "-D", "-a", str(socket_path)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()  # said once it listens
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket_path))
    yield socket_path
    process.send_signal(signal.SIGTERM)
    process.wait()
    process.stdout.close()


def load(key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL, capture_output=True)


def test_a_key_that_the_machine_does_not_know(user: User, server: Server, keys: Path) -> None:
    user.writes("box", server.port, key=keys / "stranger")
    fault = fault_of(user)
    assert fault.stage == "auth"
    assert fault.sentence == "box refused the login; keys tried: 1 from files"
    assert "stranger" in fault.details
    wait_until_gone(server)
    assert server.log.read_text().count("Connection from") == 1 + 1  # the start-up probe, and one login


def test_a_user_that_does_not_exist(user: User, server: Server) -> None:
    user.writes("box", server.port, "User nobody-of-this-name")
    fault = fault_of(user)
    assert fault.stage == "auth" and fault.sentence.startswith("box refused the login")
    assert "nobody-of-this-name" not in str(fault) and "nobody-of-this-name" in fault.details


def test_no_key_at_all(user: User, server: Server) -> None:
    user.config.write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n UserKnownHostsFile {user.known_hosts}\n"
    )
    fault = fault_of(user)
    assert fault.stage == "auth"
    assert fault.sentence == "box refused the login: there was no key to offer"


def test_a_locked_key_and_no_agent(user: User, server: Server, keys: Path) -> None:
    user.writes("box", server.port, key=keys / "locked")
    fault = fault_of(user)
    assert fault.stage == "auth"
    assert fault.sentence == "box refused the login: the key needs its passphrase, and no agent holds it"
    assert "ssh-add" in fault.hint


def test_a_locked_key_that_the_agent_holds(
    user: User, server: Server, keys: Path, agent: Path, tmp_path: Path
) -> None:
    for suffix in ("", ".pub"):
        shutil.copy(keys / f"user{suffix}", tmp_path / f"mine{suffix}")
    load(tmp_path / "mine")
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", str(tmp_path / "mine")],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    user.writes("box", server.port, key=tmp_path / "mine")
    assert heard(user) == SPOKEN


def test_a_server_that_would_take_a_password_says_so(user: User, serve: Serve, keys: Path) -> None:
    server = serve("PasswordAuthentication yes")
    user.trusts(server)
    user.writes("box", server.port, key=keys / "stranger")
    assert fault_of(user).sentence == (
        "box refused the login; keys tried: 1 from files; "
        "it also takes a password or a code, but these are not asked for here"
    )


def test_a_login_that_ends_half_way_is_not_tried_again(user: User, serve: Serve, keys: Path) -> None:
    server = serve("LoginGraceTime 1")
    user.trusts(server)
    user.writes("box", server.port, f"IdentityAgent {user.folder / 'slow'}", "IdentitiesOnly no")
    with socket.socket(socket.AF_UNIX) as slow_agent:
        slow_agent.bind(str(user.folder / "slow"))
        slow_agent.listen()
        fault = fault_of(user)
    assert fault.stage == "connect" and not fault.passing
    assert fault.sentence == "box ended the connection during the login"
    wait_until_gone(server)
    assert server.log.read_text().count("Connection from") == 1 + 1


def test_a_dead_agent_is_no_agent(
    user: User, server: Server, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(user.folder / "gone"))
    user.writes("box", server.port, key=keys / "locked")
    assert fault_of(user).sentence.endswith("no agent holds it")


def test_a_file_that_holds_no_key(user: User, server: Server, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a key\n")
    user.writes("box", server.port, "IdentitiesOnly no", key=tmp_path / "text")
    fault = fault_of(user)
    assert fault.stage == "auth" and fault.sentence.startswith("box")


def test_a_key_file_that_is_missing(user: User, server: Server, tmp_path: Path) -> None:
    user.writes("box", server.port, key=tmp_path / "not_there")
    fault = fault_of(user)
    assert fault.stage == "config"
    assert fault.sentence == "box: the key file that its configuration names is not there"
    assert "not_there" in fault.details


def test_a_described_key_file_that_is_missing(user: User, server: Server, tmp_path: Path) -> None:
    far = far_of(tmp_path / "far", user, server)
    far.describe(key_file=str(tmp_path / "not_there"))
    fault = far.deck.run("run", "--json", env=far.env, code=3).answer["error"]
    assert fault["code"] == "target.config"
    assert fault["sentence"] == "box: the key_file of its description is not there"
    assert "--key-file" in fault["hint"] and "IdentityFile" not in fault["hint"]
    named = {"HARNESSGYM_GPU_HOST": "box", "HARNESSGYM_GPU_KEY": "/not_there", "KERNELDECK_GPU_HOST": None}
    fault = far.deck.run("run", "--json", env={**far.env, **named}, code=3).answer["error"]
    assert "HARNESSGYM_GPU_KEY" in fault["hint"] and "IdentityFile" not in fault["hint"]


def test_one_missing_key_file_among_others_is_passed_over(user: User, server: Server, tmp_path: Path) -> None:
    user.writes("box", server.port, f"IdentityFile {tmp_path / 'not_there'}")
    assert heard(user) == SPOKEN


def test_too_many_keys(user: User, server: Server, keys: Path, agent: Path, tmp_path: Path) -> None:
    for number in range(4):
        load(make_key(tmp_path / f"key{number}"))
    user.writes("box", server.port, "IdentitiesOnly no")
    fault = fault_of(user)
    assert fault.stage == "auth"
    assert fault.sentence == "box gave up: too many keys were offered"
    assert "IdentitiesOnly yes" in fault.hint


def test_only_the_named_key_is_offered_from_a_full_agent(
    user: User, server: Server, keys: Path, agent: Path, tmp_path: Path
) -> None:
    for number in range(4):
        load(make_key(tmp_path / f"key{number}"))
    load(keys / "user")
    public = tmp_path / "named.pub"
    public.write_text((keys / "user.pub").read_text())
    user.writes("box", server.port, key=tmp_path / "named")
    assert heard(user) == SPOKEN


def test_the_agent_that_the_configuration_names(
    user: User, server: Server, keys: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(keys / "user")
    monkeypatch.delenv("SSH_AUTH_SOCK")
    user.config.write_text(
        f"Host box\n HostName 127.0.0.1\n Port {server.port}\n UserKnownHostsFile {user.known_hosts}\n"
        f" IdentityAgent {agent}\n"
    )
    assert heard(user) == SPOKEN


def test_nothing_is_forwarded(user: User, serve: Serve, keys: Path, agent: Path) -> None:
    server = serve("LogLevel DEBUG3", "AllowAgentForwarding yes", "X11Forwarding yes")
    user.trusts(server)
    user.writes(
        "box", server.port, "ForwardAgent yes", "ForwardX11Trusted yes", "RequestTTY force",
        "RemoteCommand echo no", f"LocalForward {server.port + 1} 127.0.0.1:1",
    )  # fmt: skip
    assert heard(user) == SPOKEN
    wait_until_gone(server)
    log = server.log.read_text()
    for request in ("auth-agent-req", "x11-req", "pty-req", "tcpip-forward"):
        assert request not in log


def test_a_refused_login_is_not_tried_again_until_asked_for(user: User, server: Server, keys: Path) -> None:
    box = parse_address("ssh:box")
    user.writes("box", server.port, key=keys / "stranger")

    async def insist() -> None:
        connections = Connections(patience=QUICK, config_path=user.config)
        for _ in range(3):
            with pytest.raises(SshFault, match="refused the login"):
                await connections.get(box)
        user.config.write_text(user.config.read_text().replace("stranger", "user"))
        with pytest.raises(SshFault, match="refused the login"):
            await connections.get(box)
        connections.try_again()
        await says_hello(await connections.get(box))
        await connections.close()

    asyncio.run(insist())
    wait_until_gone(server)
    assert server.log.read_text().count("Connection from") == 1 + 2


def test_one_connection_serves_a_session_and_a_lost_one_is_replaced(user: User, server: Server) -> None:
    box = parse_address("ssh:box")
    user.writes("box", server.port)

    async def session() -> None:
        connections = Connections(patience=QUICK, config_path=user.config)
        first, second = await asyncio.gather(connections.get(box), connections.get(box))
        assert first is second is await connections.get(box)
        kill_all(server.children())
        fault = await first.wait_lost()
        assert (fault.stage, fault.sentence) == ("lost", "box: the connection was lost")
        third = await connections.get(box)
        assert third is not first and third.is_open
        await connections.close()
        assert not third.is_open

    asyncio.run(session())
    wait_until_gone(server)
    assert server.log.read_text().count("Accepted publickey") == 2
