"""A TCP connection to the first hop."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import socket
from dataclasses import dataclass

from core.targets.ssh.telling import Leg, unanswered, unreachable, unresolved, unusable_options

_PLAIN_PROGRAM = re.compile(r"[\w/.+~-]+")
_BUILT_IN = ("exec", "command", "eval")


@dataclass(frozen=True, slots=True)
class Dialled:
    """A connected socket, and how long its two steps took."""

    socket: socket.socket
    dns_ms: float
    connect_ms: float


async def dial(leg: Leg, within_s: float) -> Dialled:
    """A connection to `leg`'s hop; SshFault of stage `dns` or `connect`."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    addresses = await _resolve(leg, within_s)
    resolved_s = loop.time()
    until = resolved_s + within_s
    fault = unanswered(leg, within_s)
    for left, (family, kind, protocol, _name, address) in zip(
        range(len(addresses), 0, -1), addresses, strict=True
    ):
        connecting = socket.socket(family, kind, protocol)
        connecting.setblocking(False)
        try:
            async with asyncio.timeout(max(0.0, until - loop.time()) / left):
                await loop.sock_connect(connecting, address)
            return Dialled(connecting, (resolved_s - began_s) * 1e3, (loop.time() - resolved_s) * 1e3)
        except TimeoutError:
            connecting.close()
        except OSError as error:
            connecting.close()
            fault = unreachable(leg, error)
        except BaseException:
            connecting.close()
            raise
    fault.passed_ms = {"dns": (resolved_s - began_s) * 1e3}
    raise fault


def proxy_words(leg: Leg) -> list[str]:
    """The user's ProxyCommand as OpenSSH runs it, by a shell; what it writes to stderr is left out.

    asyncssh would take stderr for a part of the talk, and its end for the end of the connection: the shell
    keeps it open on another descriptor. SshFault of stage `config` when the program is not there.
    """
    command = leg.hop.proxy_command
    try:
        program = shlex.split(command)[0]
    except (ValueError, IndexError):
        program = ""
    if _PLAIN_PROGRAM.fullmatch(program) and program not in _BUILT_IN and not shutil.which(program):
        raise unusable_options(leg, FileNotFoundError(program))
    return ["/bin/sh", "-c", f"exec 3>&2 2>/dev/null; exec {command.removeprefix('exec ')}"]


async def _resolve(leg: Leg, within_s: float) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(within_s):
            found = await loop.getaddrinfo(
                leg.hop.host, leg.hop.port, family=leg.hop.family, type=socket.SOCK_STREAM
            )
    except TimeoutError:
        raise unresolved(leg, f"no answer within {within_s:g} s") from None
    except (OSError, UnicodeError) as error:
        raise unresolved(leg, str(error)) from None
    return [
        (int(family), int(kind), protocol, name, address) for family, kind, protocol, name, address in found
    ]
