"""What stands between a login and our program: restricted logins, start-up files, session limits."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from core.targets.ssh.connection import Connection
from core.targets.ssh.faults import SshFault
from tests.remote.conftest import Serve
from tests.remote.connecting import (
    HELLO,
    MARKER,
    SPOKEN,
    connected,
    heard,
    shareable,
    started,
    wait_until_gone,
)
from tests.remote.sshd import Server, User, kill_all

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


def wrapper(folder: Path, *lines: str) -> str:
    """A ForceCommand that does `lines` as a shell's start-up file would, and then what was asked for."""
    script = folder / "wrapper.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, 'exec sh -c "$SSH_ORIGINAL_COMMAND"', ""]))
    script.chmod(0o755)
    return f"ForceCommand {script}"


def ready(user: User, server: Server) -> Server:
    user.trusts(server)
    user.writes("box", server.port)
    return server


def fault_on_start(user: User, boot_line: str = HELLO, within_s: float = 5.0) -> SshFault:
    """The fault with which starting a program ends; the connection itself stays good."""
    caught: list[SshFault] = []

    async def start(connection: Connection) -> None:
        with pytest.raises(SshFault) as raised:
            await connection.open_agent_channel(boot_line, MARKER, within_s)
        caught.append(raised.value)

    connected(user, start)
    return shareable(caught[0], user)


def test_noise_before_the_program_is_passed_over(user: User, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "banner").write_text("Only for members of the lab.\n")
    noise = wrapper(tmp_path, "echo Welcome; echo oops >&2", "head -c 300000 /dev/zero", "printf '\\036hel'")
    server = ready(user, serve(noise, f"Banner {tmp_path / 'banner'}"))
    assert heard(user) == SPOKEN
    wait_until_gone(server)


def test_a_server_without_file_transfer_is_good_enough(user: User, serve: Serve) -> None:
    server = ready(user, serve("AllowTcpForwarding no", "AllowStreamLocalForwarding no", "PermitTTY no"))
    assert "Subsystem" not in (server.home.parent / "sshd_config").read_text()
    assert heard(user) == SPOKEN


@pytest.mark.parametrize("command", ["/bin/false", "/usr/sbin/nologin"])
def test_a_login_that_may_run_nothing(user: User, serve: Serve, command: str) -> None:
    server = ready(user, serve(f"ForceCommand {command}"))
    fault = fault_on_start(user)
    assert fault.stage == "shell"
    assert fault.sentence == "box: the remote shell ended with exit status 1 before it started our program"
    assert "nologin" in fault.hint
    wait_until_gone(server)


def test_a_start_up_file_that_exits(user: User, serve: Serve, tmp_path: Path) -> None:
    ready(user, serve(wrapper(tmp_path, "echo my-own-greeting", "exit 3")))
    fault = fault_on_start(user)
    assert fault.stage == "shell" and "exit status 3" in fault.sentence
    assert "my-own-greeting" in fault.details and "my-own-greeting" not in str(fault)


def test_a_start_up_file_that_starts_another_shell_gets_nothing_to_run(
    user: User, serve: Serve, tmp_path: Path
) -> None:
    server = ready(user, serve(wrapper(tmp_path, "exec sh")))
    fault = fault_on_start(user, within_s=0.5)
    assert fault.stage == "shell"
    assert fault.sentence == "box: the remote shell did not start our program within 0.5 s"
    wait_until_gone(server)


def test_a_start_up_file_that_waits_for_input(user: User, serve: Serve, tmp_path: Path) -> None:
    server = ready(user, serve(wrapper(tmp_path, "read line")))
    assert fault_on_start(user, within_s=0.5).stage == "shell"
    wait_until_gone(server)


def test_a_machine_without_python(user: User, serve: Serve, tmp_path: Path) -> None:
    ready(user, serve(f"SetEnv HOME={tmp_path} PATH={tmp_path}"))
    fault = fault_on_start(user)
    assert fault.stage == "shell"
    assert fault.sentence == "box: python3 was not found there (exit status 127)"


def test_a_server_that_refuses_commands(user: User, serve: Serve) -> None:
    ready(user, serve("ForceCommand internal-sftp", "Subsystem sftp internal-sftp"))
    fault = fault_on_start(user, within_s=1)
    assert fault.stage == "shell"


def test_a_server_with_one_session_a_connection(user: User, serve: Serve) -> None:
    server = ready(user, serve("MaxSessions 1"))

    async def use(connection: Connection) -> None:
        first = await started(connection)
        with pytest.raises(SshFault) as caught:
            await connection.open_agent_channel(HELLO, MARKER)
        fault = shareable(caught.value, user)
        assert fault.stage == "channel"
        assert fault.sentence == "box opens no further session on its connection (MaxSessions)"
        first.write(b"still here")
        first.end_input()
        assert await first.read(100) == b"still here"
        first.close()

    connected(user, use)
    wait_until_gone(server)


def test_a_program_that_is_killed_gives_no_exit_status(user: User, serve: Serve) -> None:
    server = ready(user, serve())

    async def use(connection: Connection) -> None:
        channel = await started(connection)
        os.kill(max(server.children()), signal.SIGKILL)
        assert await channel.read(10) == b""
        await channel.wait_closed()
        assert channel.exit_status in (None, -1)

    connected(user, use)


def test_a_program_that_floods_is_held_back_and_loses_nothing(user: User, serve: Serve) -> None:
    size = 24 << 20
    ready(user, serve())
    flood = (
        "exec python3 -I -S -u -c 'import sys;w=sys.stdout.buffer.write;"
        f'w(chr(30).encode()+b"hello"+bytes([10]));w(bytes({size}));sys.stderr.write("e"*9000)\''
    )

    async def use(connection: Connection) -> None:
        channel = await started(connection, flood)
        got, most = 0, 0
        while piece := await channel.read(1 << 16):
            got += len(piece)
            most = max(most, channel.unread_bytes)
            await asyncio.sleep(0)
        await channel.wait_closed()
        assert got == size and most < 8 << 20
        assert channel.stderr_tail == b"e" * 4096

    connected(user, use)


def test_writing_to_a_program_that_does_not_read_waits(user: User, serve: Serve) -> None:
    server = ready(user, serve())
    deaf = "exec python3 -I -S -u -c 'import sys,time;print(chr(30)+\"hello\");time.sleep(60)'"

    async def use(connection: Connection) -> None:
        channel = await started(connection, deaf)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                for _ in range(1000):
                    channel.write(bytes(1 << 16))
                    await channel.drain()
        channel.close()
        await channel.drain()
        channel.write(b"nobody hears this")

    connected(user, use)
    kill_all(server.children())
    wait_until_gone(server)
