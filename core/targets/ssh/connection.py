"""A login on a target through all its hops, and the programs that run on it."""

from __future__ import annotations

import asyncio

import asyncssh

from core.targets.ssh.channel import AgentChannel
from core.targets.ssh.faults import SshFault
from core.targets.ssh.hops import LoggedIn
from core.targets.ssh.patience import Patience
from core.targets.ssh.user_config import Route

_CLOSES_WITHIN_S = 2.0
_TURNS_TO_CLOSE_A_SOCKET = 4  # of the event loop, after a transport was aborted or closed
_SESSION_REQUEST_FAILED = 0xFFFFFFFF


class Connection:
    """A login on a target through all its hops.

    `connect_ms` is the whole way's time, `stage_ms` what its stages took, hops together: the host key's is
    in that of `auth`.
    """

    def __init__(self, route: Route, logins: list[LoggedIn], patience: Patience, connect_ms: float) -> None:
        self.route = route
        self.connect_ms = connect_ms
        self.stage_ms = {
            "dns": sum(login.dns_ms for login in logins),
            "connect": sum(login.connect_ms for login in logins),
            "auth": sum(login.login_ms for login in logins),
        }
        self.notes = tuple(note for login in logins for note in login.notes)
        self._logins = logins
        self._patience = patience

    @property
    def target(self) -> str:
        return self.route.address.name

    @property
    def is_open(self) -> bool:
        return not any(login.witness.lost.is_set() for login in self._logins)

    async def wait_lost(self) -> SshFault:
        """The fault of stage `lost`, as soon as the link has gone (by keepalive, within 20 s of silence)."""
        await self._logins[-1].witness.lost.wait()
        return self._lost()

    def _lost(self) -> SshFault:
        told = [login.witness.lost_by for login in self._logins if login.witness.lost.is_set()]
        return SshFault(
            "lost", f"{self.target}: the connection was lost", details="; ".join(filter(None, told))
        )

    async def open_agent_channel(
        self, boot_line: str, marker: bytes = b"", within_s: float = 10.0
    ) -> AgentChannel:
        """A channel that runs `boot_line`, a fixed text: nothing is ever put into it for a shell to read.

        With a `marker` the channel is given back once the other side has printed it, and it is the first
        thing to be read; nothing is written before. SshFault of stage `channel`, `shell` or `lost`.
        """
        channel = await self._open(boot_line)
        if not marker:
            return channel
        try:
            async with asyncio.timeout(within_s):
                found, noise = await channel.skip_to(marker)
                if not found:
                    await channel.wait_closed()
        except TimeoutError:
            channel.close()
            raise self._no_marker(channel, b"", within_s) from None
        except BaseException:
            channel.close()
            raise
        if found:
            return channel
        channel.close()
        raise self._no_marker(channel, noise, None)

    async def _open(self, boot_line: str) -> AgentChannel:
        if not self.is_open:
            raise self._lost()
        try:
            async with asyncio.timeout(self._patience.session_s):
                _channel, session = await self._logins[-1].connection.create_session(
                    AgentChannel, boot_line, encoding=None, request_pty=False
                )
        except TimeoutError:
            raise SshFault(
                "channel", f"{self.target} did not open a session within {self._patience.session_s:g} s"
            ) from None
        except asyncssh.ChannelOpenError as error:
            raise self._no_session(error) from None
        except (asyncssh.Error, OSError) as error:
            raise SshFault("lost", f"{self.target}: the connection was lost", details=str(error)) from None
        assert isinstance(session, AgentChannel)
        return session

    def _no_session(self, error: asyncssh.ChannelOpenError) -> SshFault:
        if not self.is_open:
            return self._lost()
        if error.code == _SESSION_REQUEST_FAILED:
            return SshFault("shell", f"{self.target} does not run commands", details=error.reason)
        return SshFault(
            "channel",
            f"{self.target} opens no further session on its connection (MaxSessions)",
            details=error.reason,
        )

    def _no_marker(self, channel: AgentChannel, noise: bytes, within_s: float | None) -> SshFault:
        if not self.is_open:
            return self._lost()
        said = b"\n".join(part for part in (noise.strip(), channel.stderr_tail.strip()) if part)
        details = said.decode("utf-8", "replace")
        if within_s is not None:
            return SshFault(
                "shell",
                f"{self.target}: the remote shell did not start our program within {within_s:g} s",
                "a start-up file of the shell may wait for input or start another shell; "
                f"try: ssh {self.route.address.by_hand} python3 -V",
                details=details,
            )
        status = channel.exit_status
        if status in (126, 127):
            return SshFault(
                "shell",
                f"{self.target}: python3 was not found there (exit status {status})",
                "install Python 3.8 or newer, or name it as the target's python",
                details=details,
            )
        ended = "ended" if status is None else f"ended with exit status {status}"
        return SshFault(
            "shell",
            f"{self.target}: the remote shell {ended} before it started our program",
            "the login may be restricted (ForceCommand, nologin), or a start-up file exits; "
            f"try: ssh {self.route.address.by_hand} python3 -V",
            details=details,
        )

    async def close(self) -> None:
        """Close every hop; done within seconds whatever the other side does."""
        await close_logins(self._logins)


async def close_logins(logins: list[LoggedIn]) -> None:
    """Close what is behind first; what has not closed by then is dropped without a word."""
    for login in reversed(logins):
        login.connection.close()
    try:
        async with asyncio.timeout(_CLOSES_WITHIN_S):
            for login in logins:
                await login.connection.wait_closed()
    except TimeoutError:
        pass
    finally:
        for login in reversed(logins):
            login.connection.abort()
    for _ in range(_TURNS_TO_CLOSE_A_SOCKET):
        await asyncio.sleep(0)
