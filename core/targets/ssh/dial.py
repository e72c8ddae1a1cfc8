"""A TCP connection to the first hop."""

from __future__ import annotations

import asyncio
import socket

from core.targets.ssh.telling import Leg, unanswered, unreachable, unresolved


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
