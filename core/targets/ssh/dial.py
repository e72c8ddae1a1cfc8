"""A TCP connection to the first hop."""

from __future__ import annotations

import asyncio
import re
import shlex
import shutil
import socket

from core.targets.ssh.telling import Leg, unanswered, unreachable, unresolved, unusable_options

_PLAIN_PROGRAM = re.compile(r"[\w/.+~-]+")
_BUILT_IN = ("exec", "command", "eval")


async def dial(leg: Leg, within_s: float) -> socket.socket:
    """A connected socket to `leg`'s hop; SshFault of stage `dns` or `connect`."""
    addresses = await _resolve(leg, within_s)
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    fault = unanswered(leg, within_s)
    for left, (family, kind, protocol, _name, address) in zip(
        range(len(addresses), 0, -1), addresses, strict=True
    ):
        connecting = socket.socket(family, kind, protocol)
        connecting.setblocking(False)
        try:
            async with asyncio.timeout(max(0.0, until - loop.time()) / left):
                await loop.sock_connect(connecting, address)
            return connecting
        except TimeoutError:
            connecting.close()
        except OSError as error:
            connecting.close()
            fault = unreachable(leg, error)
        except BaseException:
            connecting.close()
            raise
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
