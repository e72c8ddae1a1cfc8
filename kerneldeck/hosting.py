"""A verb carried out: by the workspace's host where it changes something, here where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.operations.declaration import Answer, Operation
from kerneldeck.host_key import host_key_asker
from sessions.binding import call, check_arguments, needs_hold
from sessions.host.client import HostClient, Tell
from sessions.session import Caller


@dataclass(frozen=True, slots=True)
class Ask:
    """One call from the command line; `quiet`: nobody is asked anything."""

    operation: Operation
    given: Mapping[str, object]
    start: Path
    command: str
    wait_s: float
    quiet: bool
    detach: bool = False


async def carried_out(ask: Ask, tell: Tell) -> Answer:
    """The answer; for detached work its receipt. KerneldeckError as the operation raises it."""
    asker = None if ask.quiet else host_key_asker()
    if not needs_hold(ask.operation, ask.given):
        caller = Caller("cli", ask.command, ask.wait_s, asker)
        return await call(ask.operation, ask.given, ask.start, caller, tell)
    check_arguments(ask.operation, ask.given)
    client = await HostClient.connect(ask.start, command=ask.command, ask=asker, wait_s=ask.wait_s)
    async with client:
        if ask.detach:
            return await _handed_over(client, ask)
        return await client.call(
            ask.operation.id, ask.given, wait_s=ask.wait_s, command=ask.command, tell=tell
        )


async def _handed_over(client: HostClient, ask: Ask) -> Answer:
    pending = await client.submit(
        ask.operation.id, ask.given, lease=False, wait_s=ask.wait_s, command=ask.command
    )
    # What is refused at once was answered before this is.
    running = (await client.snapshot()).work
    if pending.ended:
        return await pending.answer()
    state = "runs" if running is not None and running.receipt == pending.receipt else "waits for its turn"
    return Answer({"receipt": pending.receipt, "state": state, "command": ask.command, "detached": True})
