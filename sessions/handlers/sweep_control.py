"""pause_sweep and its kin: words to the sweep that the workspace's host runs."""

from __future__ import annotations

from pathlib import Path

from core.operations.catalogue import (
    SWEEP_CANCEL,
    SWEEP_CONTINUE,
    SWEEP_MOVE,
    SWEEP_PAUSE,
    SWEEP_RETRY,
    SWEEP_STOP,
)
from core.operations.declaration import Answer, Operation
from core.words import JsonObject
from sessions.host.client import HostClient
from sessions.session import Caller


async def pause_sweep(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_PAUSE, start, caller, arguments)


async def continue_sweep(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_CONTINUE, start, caller, arguments)


async def stop_sweep(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_STOP, start, caller, arguments)


async def cancel_candidate(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_CANCEL, start, caller, arguments)


async def move_candidate(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_MOVE, start, caller, arguments)


async def retry_candidate(start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    return await _controlled(SWEEP_RETRY, start, caller, arguments)


async def _controlled(operation: Operation, start: Path, caller: Caller, arguments: JsonObject) -> Answer:
    """Done once it is on record; a fault says why it does not fit where the sweep stands."""
    client = await HostClient.connect(start, actor=caller.actor, command=caller.command, may_start=False)
    async with client:
        return Answer(
            {"outcome": operation.control, "said": await client.control(operation.control, **arguments)}
        )
