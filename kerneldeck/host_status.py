"""`kerneldeck host status` and `kerneldeck host stop`."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from core.errors import Busy, KerneldeckError
from core.words import JsonObject
from kerneldeck import streams
from kerneldeck.text import printable
from kerneldeck.watching import standing
from sessions.faults import shown
from sessions.holder import Holder
from sessions.host.client import HostClient
from sessions.host.reaching import host_place
from sessions.host.snapshot import Snapshot
from sessions.host.wire import HostFault
from sessions.lock import holder_of

_ENDS_WITHIN_S = 60.0


def show_status(start: Path, as_json: bool) -> int:
    """What runs and for whom; exit code 0 also when there is no host."""
    place, here = host_place(start)
    host = _host_of(start)
    content: JsonObject = {
        "running": host is not None, "workspace": str(place.workspace), "pid": host.pid if host else None,
        "socket": host.socket if host else str(here.socket), "log": str(here.log), "snapshot": None,
    }  # fmt: skip
    snapshot = asyncio.run(_snapshot(start)) if host else None
    with streams.answering():
        if as_json:
            content["snapshot"] = snapshot.to_json() if snapshot else None
            print(json.dumps(content))
        else:
            _print(content, snapshot)
    return 0


async def _snapshot(start: Path) -> Snapshot | None:
    """None when it left meanwhile."""
    with suppress(HostFault):
        command = "kerneldeck host status"
        client = await HostClient.connect(start, command=command, readonly=True, may_start=False)
        async with client:
            return await client.snapshot()
    return None


def _print(content: JsonObject, snapshot: Snapshot | None) -> None:
    if snapshot is None:
        print(f"no host runs for {shown(content['workspace'])}; the next command that works starts one")
        return
    print(f"host: pid {snapshot.pid}, version {snapshot.version}, at {shown(content['socket'])}")
    print(f"log: {shown(content['log'])}")
    print(printable(standing(snapshot)))
    for work in snapshot.queue:
        print(printable(f"  waits: #{work.receipt} {work.command} ({work.actor}, pid {work.pid})"))
    for client in snapshot.clients:
        reads = ", reads only" if client.readonly else ""
        print(
            printable(f"client {client.number}: {client.actor}, {client.command} (pid {client.pid}{reads})")
        )


def stop_host(start: Path, now: bool, as_json: bool) -> int:
    """End the host's process, whatever its version, and wait for that; Busy while something runs."""
    host = _host_of(start)
    if host is None:
        _say(as_json, "not_running", "no host runs for this workspace")
        return 0
    if not now:
        _refuse_running(start)
    _end(host)
    _say(as_json, "stopped", f"the host (pid {host.pid}) is stopped")
    return 0


def _host_of(start: Path) -> Holder | None:
    """The process of this machine that holds the workspace as its host."""
    holder = holder_of(host_place(start)[0])
    return holder if holder and holder.socket and holder.same_machine(Holder.here("")) else None


def _refuse_running(start: Path) -> None:
    """A host of another version cannot be asked, and is stopped."""
    try:
        snapshot = asyncio.run(_snapshot(start))
    except KerneldeckError as error:
        if error.code != HostFault.code:
            raise
        return
    if snapshot is not None and snapshot.work is not None:
        raise Busy(standing(snapshot), "wait for it, or end it too: kerneldeck host stop --now")


def _end(host: Holder) -> None:
    try:
        handle = os.pidfd_open(host.pid)
    except ProcessLookupError:
        return
    try:
        if host.is_gone():
            return
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended, _, _ = select.select([handle], [], [], _ENDS_WITHIN_S)
        if not ended:
            raise HostFault(
                f"the host (pid {host.pid}) does not end within {_ENDS_WITHIN_S:g} s", f"kill -9 {host.pid}"
            )
    finally:
        os.close(handle)


def _say(as_json: bool, outcome: str, sentence: str) -> None:
    with streams.answering():
        print(json.dumps({"outcome": outcome, "said": sentence}) if as_json else sentence)
