"""The question about an unknown host key, where there is a person to ask."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from kerneldeck.text import printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.targets.ssh.host_keys import HostKeyQuestion
    from sessions.host.client import HostKeyAsked

    Ask = Callable[[HostKeyQuestion | HostKeyAsked], Awaitable[bool]]


def host_key_asker() -> Ask | None:
    """None without a terminal: an unknown host is refused then."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


async def _ask(question: HostKeyQuestion | HostKeyAsked) -> bool:
    kept = f"kept in {question.kept_in}" if question.kept_in else "for this connection only"
    for text in (
        f"{question.hop} shows a host key that is not known: {question.algorithm} {question.fingerprint}",
        f"Compare it with what the machine's owner says. Trust it ({kept})? [y/N] ",
    ):
        print(printable(text), end="" if text.endswith(" ") else "\n", file=sys.stderr, flush=True)
    try:
        answer = await _typed_line(sys.stdin.fileno())
    except asyncio.CancelledError:
        print(file=sys.stderr)
        raise
    return answer.strip().lower() in ("y", "yes")


async def _typed_line(terminal: int) -> str:
    """A line typed there. The wait can be cancelled, which a thread that reads cannot."""
    loop = asyncio.get_running_loop()
    typed = asyncio.Event()
    loop.add_reader(terminal, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(terminal)
    return os.read(terminal, 4096).decode("utf-8", "replace")
