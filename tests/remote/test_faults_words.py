"""Faults that are rare: their stage and sentence, without a command line around."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh import remote_sync
from core.targets.ssh.remote_sync import RemoteSync
from tests.remote.agents import agent, run
from tests.remote.conftest import Serve
from tests.remote.connecting import QUICK, fault_of, wait_until_gone
from tests.remote.sshd import User

NO_WAY = "HostName 255.255.255.255"  # an address to which the system makes no connection


def test_a_host_to_which_there_is_no_way(user: User) -> None:
    user.writes("box", 22, NO_WAY)
    fault = fault_of(user)
    assert fault.stage == "connect" and fault.sentence.startswith("box cannot be reached: ")
    assert "255.255" not in str(fault)


def test_a_host_to_which_the_jump_host_has_no_way(user: User, serve: Serve) -> None:
    gate = serve()
    user.trusts(gate)
    user.writes("gate", gate.port)
    user.writes("box", 22, NO_WAY, "ProxyJump gate")
    fault = fault_of(user)
    assert (fault.stage, fault.sentence) == ("connect", "box (behind gate) could not be reached by gate")
    wait_until_gone(gate)


def test_a_login_that_does_not_end(user: User, serve: Serve, tmp_path: Path) -> None:
    """The agent that holds the key is asked, and never answers."""
    server = serve()
    user.trusts(server)
    with socket.socket(socket.AF_UNIX) as agent_socket:
        agent_socket.bind(str(tmp_path / "agent"))
        agent_socket.listen()
        user.writes("box", server.port, f"IdentityAgent {tmp_path / 'agent'}")
        fault = fault_of(user, patience=replace(QUICK, login_s=1.5))
    assert (fault.stage, fault.sentence) == ("auth", "box did not finish the login within 1.5 s")
    assert "touch" in fault.hint
    wait_until_gone(server)


def test_a_link_that_takes_no_more_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_sync, "STALLS_AFTER_S", 0.1)

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            file = there.held.file("large", b"x")
            there.channel.drain = asyncio.Event().wait  # type: ignore[method-assign, assignment]
            with pytest.raises(TargetFault) as caught:
                await RemoteSync(there.link, there.held).put([file.sha256], {file.sha256: 1})
            assert (caught.value.stage, caught.value.sentence) == (
                "lost", "the files could not be sent: the link stalls",
            )  # fmt: skip

    run(main())
