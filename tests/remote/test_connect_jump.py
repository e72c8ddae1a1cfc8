"""Jump hosts: every hop has its own stage, key check and sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.targets.ssh.host_keys import HostKeyQuestion
from core.targets.ssh.patience import Patience
from tests.remote.conftest import Serve
from tests.remote.connecting import (
    QUICK,
    SPOKEN,
    answering,
    connected,
    fault_of,
    heard,
    says_hello,
    wait_until_gone,
)
from tests.remote.sshd import Server, User, descendants

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


@dataclass(frozen=True, slots=True)
class Pair:
    jump: Server
    far: Server


@pytest.fixture
def pair(serve: Serve) -> Pair:
    return Pair(serve(), serve(host_key="other_host"))


def test_a_target_behind_a_jump_host(user: User, pair: Pair) -> None:
    user.trusts(pair.jump)
    user.trusts(pair.far)
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    connection = connected(user, says_hello)
    assert [hop.name for hop in connection.route.hops] == ["gate", "box"]
    wait_until_gone(pair.far)
    wait_until_gone(pair.jump)


def test_a_chain_of_jump_hosts(user: User, pair: Pair, serve: Serve) -> None:
    middle = serve()
    for server in (pair.jump, pair.far, middle):
        user.trusts(server)
    user.writes("gate", pair.jump.port)
    user.writes("yard", middle.port, "ProxyJump nobody-asks-this")
    user.writes("box", pair.far.port, "ProxyJump gate,yard")
    connection = connected(user, says_hello)
    assert [hop.name for hop in connection.route.hops] == ["gate", "yard", "box"]


def test_a_jump_host_that_is_refused(user: User, pair: Pair, closed_port: int) -> None:
    user.writes("gate", closed_port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box: its jump host gate refused the connection (2 tries)"


def test_a_jump_host_without_a_name(user: User, pair: Pair) -> None:
    user.writes("gate", 22, "HostName gate.invalid")
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user)
    assert (fault.stage, fault.sentence) == (
        "dns",
        "box: its jump host gate: its host name cannot be resolved",
    )


def test_a_target_that_refuses_the_jump_host(user: User, pair: Pair, closed_port: int) -> None:
    user.trusts(pair.jump)
    user.writes("gate", pair.jump.port)
    user.writes("box", closed_port, "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box (behind gate) refused the connection (2 tries)"
    wait_until_gone(pair.jump)


def test_a_target_whose_name_the_jump_host_does_not_know(user: User, pair: Pair) -> None:
    user.trusts(pair.jump)
    user.writes("gate", pair.jump.port)
    user.writes("box", 22, "HostName box.invalid", "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "dns"
    assert fault.sentence == "box (behind gate): its host name cannot be resolved by gate"


def test_a_jump_host_that_passes_nothing_on(user: User, serve: Serve) -> None:
    gate = serve("AllowTcpForwarding no")
    user.trusts(gate)
    user.writes("gate", gate.port)
    user.writes("box", 22, "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "connect"
    assert fault.sentence == "box: its jump host gate does not pass connections on"


def test_an_unknown_key_at_the_first_hop(user: User, pair: Pair) -> None:
    user.trusts(pair.far)
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box: its jump host gate shows a host key that is not known here")


def test_an_unknown_key_at_the_second_hop(user: User, pair: Pair) -> None:
    user.trusts(pair.jump)
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user)
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box (behind gate) shows a host key that is not known here")
    wait_until_gone(pair.jump)


def test_a_changed_key_at_the_second_hop(user: User, pair: Pair) -> None:
    user.trusts(pair.jump)
    with user.known_hosts.open("a") as file:
        file.write(pair.jump.known_hosts_line.replace(str(pair.jump.port), str(pair.far.port)))
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user, ask=answering(True, []))
    assert fault.stage == "hostkey"
    assert fault.sentence.startswith("box (behind gate) shows another host key than before")


def test_each_unknown_hop_is_a_question_of_its_own(user: User, pair: Pair) -> None:
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate")
    asked: list[HostKeyQuestion] = []
    assert heard(user, ask=answering(True, asked)) == SPOKEN
    assert [(question.target, question.hop) for question in asked] == [("box", "gate"), ("box", "box")]
    assert user.known_hosts.read_text() == pair.jump.known_hosts_line + pair.far.known_hosts_line


def test_a_login_refused_by_the_target_behind_a_jump_host(user: User, pair: Pair, keys: Path) -> None:
    user.trusts(pair.jump)
    user.trusts(pair.far)
    user.writes("gate", pair.jump.port)
    user.writes("box", pair.far.port, "ProxyJump gate", key=keys / "stranger")
    fault = fault_of(user)
    assert fault.stage == "auth"
    assert fault.sentence == "box (behind gate) refused the login; keys tried: 1 from files"
    wait_until_gone(pair.jump)


def test_a_login_refused_by_the_jump_host(user: User, pair: Pair, keys: Path) -> None:
    user.trusts(pair.jump)
    user.writes("gate", pair.jump.port, key=keys / "stranger")
    user.writes("box", pair.far.port, "ProxyJump gate")
    fault = fault_of(user)
    assert (fault.stage, fault.sentence) == (
        "auth", "box: its jump host gate refused the login; keys tried: 1 from files",
    )  # fmt: skip


def test_a_proxy_command_is_a_way_in_too(user: User, serve: Serve) -> None:
    server = serve()
    user.trusts(server)
    python = "import socket,sys,os,threading;s=socket.create_connection(('127.0.0.1',int(sys.argv[1])))"
    script = user.folder / "carry.py"
    script.write_text(
        f"{python}\n"
        "def up():\n"
        "    while piece := os.read(0, 65536): s.sendall(piece)\n"
        "    s.shutdown(1)\n"
        "print('noise', file=sys.stderr, flush=True)\n"
        "threading.Thread(target=up, daemon=True).start()\n"
        "while piece := s.recv(65536): os.write(1, piece)\n"
    )
    user.writes("box", server.port, f"ProxyCommand python3 {script} %p")
    assert heard(user, patience=QUICK) == SPOKEN
    wait_until_gone(server)


def test_a_silent_proxy_command_is_ended(user: User) -> None:
    user.writes("box", 22, "ProxyCommand sleep 600")
    before = descendants(os.getpid())
    fault = fault_of(user, patience=Patience(connect_s=0.3, login_s=5))
    assert fault.stage == "connect"
    assert fault.sentence == "box accepted the connection but said nothing within 0.3 s"
    assert descendants(os.getpid()) == before


def test_a_proxy_command_that_ends_at_once(user: User) -> None:
    user.writes("box", 22, "ProxyCommand exec false")
    assert fault_of(user).sentence == "box closed the connection before a login (2 tries)"


def test_a_proxy_command_that_is_not_there(user: User) -> None:
    user.writes("box", 22, "ProxyCommand /no/such/program %h")
    fault = fault_of(user)
    assert fault.stage == "config" and "is not there" in fault.sentence
