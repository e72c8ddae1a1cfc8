"""Following what a host does, without any say in it: attach and watch."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from core.errors import KerneldeckError
from kerneldeck import streams
from kerneldeck.progress import Display
from kerneldeck.text import printable
from sessions.host.client import HostClient
from sessions.host.events import Numbered, WorkEnded
from sessions.host.lines import line_of
from sessions.host.snapshot import Snapshot


def watch(start: Path, as_json: bool) -> int:
    """One line an event until the host leaves or the reader does; exit code 0 either way."""
    with streams.answering():
        try:
            asyncio.run(_watched(start, as_json))
        except KeyboardInterrupt:
            return 0
    return 0


async def _watched(start: Path, as_json: bool) -> None:
    client = await HostClient.connect(start, command="kerneldeck watch", readonly=True)
    async with client, _while_read():
        seen = 0
        async for update in client.updates():
            if isinstance(update, Snapshot):
                seen = update.seq
                print(_state(update, as_json), flush=True)
            elif update.seq > seen and (text := _event(update, as_json)):
                print(text, flush=True)
            latest = client.latest
            if latest is not None and latest.leaving:
                return


@asynccontextmanager
async def _while_read() -> AsyncIterator[None]:
    """What is inside ends when the reader of a pipe has gone, also while there is nothing to write."""
    loop, out = asyncio.get_running_loop(), sys.stdout.fileno()
    gone = asyncio.Event()
    if not stat.S_ISFIFO(os.fstat(out).st_mode):
        yield
        return
    task = asyncio.current_task()
    assert task is not None

    def end() -> None:
        loop.remove_reader(out)
        gone.set()
        task.cancel()

    loop.add_reader(out, end)  # nothing can be read there; an error of the pipe wakes it
    try:
        yield
    except asyncio.CancelledError:
        if not gone.is_set():
            raise
    finally:
        loop.remove_reader(out)


def _event(numbered: Numbered, as_json: bool) -> str:
    if as_json:
        return json.dumps(numbered.to_json())
    text = line_of(numbered)
    return f"{_clock(numbered.when_s)} {printable(text)}" if text else ""


def _state(snapshot: Snapshot, as_json: bool) -> str:
    if as_json:
        return json.dumps({"snapshot": snapshot.to_json()})
    return f"{_clock(time.time())} {printable(standing(snapshot))}"


def standing(snapshot: Snapshot) -> str:
    """What goes on, on one line."""
    sweep, work = snapshot.sweep, snapshot.work
    if work is None:
        return "nothing runs"
    said = f"#{work.receipt} {work.command} ({work.actor}) runs"
    if sweep is not None and not sweep.ended:
        done = sum(sweep.counts.values())
        paused = f", paused by {sweep.paused_by}" if sweep.paused_by else ""
        phase = f"{sweep.phase} " if sweep.phase else ""
        said += f": sweep #{sweep.id} {phase}{done}/{sweep.total}{paused}"
    waiting = len(snapshot.queue)
    return f"{said}; {waiting} more {'wait' if waiting > 1 else 'waits'}" if waiting else said


def _clock(when_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(when_s))


def attach(start: Path) -> int:
    """Follow the running work to its end; its exit code, 0 when nothing runs or whoever watches leaves."""
    try:
        return asyncio.run(_attached(start))
    except KeyboardInterrupt:
        print("left; the work goes on. Again: kerneldeck attach", file=sys.stderr)
        return 0


async def _attached(start: Path) -> int:
    client = await HostClient.connect(start, command="kerneldeck attach", readonly=True, may_start=False)
    async with client:
        with Display(quiet=False) as display:
            ended = await _followed(client, display)
    with streams.answering():
        if ended is None:
            print("nothing runs")
            return 0
        why = f": {printable(ended.sentence)}" if ended.sentence else ""
        print(f"#{ended.receipt} ended: {ended.outcome}{why}")
    return ended.exit_code


async def _followed(client: HostClient, display: Display) -> WorkEnded | None:
    receipt = 0
    async for update in client.updates():
        if isinstance(update, Snapshot):
            if update.work is None:
                return None
            if not receipt:
                print(printable(standing(update)), file=sys.stderr)
            receipt = update.work.receipt
        elif update.receipt == receipt:
            if isinstance(update.event, WorkEnded):
                return update.event
            display.tell(update.event)
    raise KerneldeckError("the host has gone")
