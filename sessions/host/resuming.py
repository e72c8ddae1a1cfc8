"""Sweeps that outlive a host: which ones the next host goes on with."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from core.errors import Busy, KerneldeckError, StorageFault
from core.operations.catalogue import operation_named
from core.operations.declaration import Answer, Operation
from core.records import SweepRecord
from core.targets.ssh.address import SCHEME
from core.targets.ssh.places_file import targets_file
from core.targets.ssh.places_toml import read_places
from core.words import JsonObject
from sessions.host.desk import Job
from sessions.host.events import Work
from sessions.store import SessionStore

RESUME = "resume_sweep"


def jobs_to_resume(store: SessionStore, receipt: Callable[[], int]) -> list[Job]:
    """One job a sweep that is on record as running: detached ones, once recovery has stopped the others.

    Their trials get this process's environment, which is that of whoever started it.
    """
    operation = operation_named(RESUME)
    assert operation is not None
    return [_job(operation, sweep, receipt()) for sweep in store.running_sweeps()]


def _job(operation: Operation, sweep: SweepRecord, receipt: int) -> Job:
    command = f"kerneldeck sweep resume {sweep.id}"
    work = Work(receipt, RESUME, sweep.actor, command, os.getpid(), 0, False, time.time())
    ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    ended.add_done_callback(lambda ended: ended.exception())  # its end is told as an event
    return Job(work, operation, _arguments(sweep), dict(os.environ), "/", ended)


def _arguments(sweep: SweepRecord) -> JsonObject:
    """On the target of its record, which names a described place behind the scheme of all SSH targets."""
    target = sweep.target
    if target.startswith(SCHEME):
        with suppress(KerneldeckError):
            places = read_places(targets_file(os.environ)).by_name
            target = target.removeprefix(SCHEME) if target.removeprefix(SCHEME) in places else target
    return {"sweep": sweep.id, "target": target}


def keep_sweeps(store: SessionStore, sweeps: Iterable[int]) -> None:
    """These sweeps are leased no longer: another host goes on with them, where that can be stored."""
    with suppress(StorageFault, Busy):
        for number in sweeps:
            record = store.sweep(number)
            if record is not None and record.ended_s is None and not record.detached:
                store.update_sweep(replace(record, detached=True))
