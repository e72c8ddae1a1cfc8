"""The work asked of a host: one operation at a time, in the order of asking."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import Busy, Cancelled, KerneldeckError
from core.operations.declaration import Answer, Operation
from core.words import JsonObject
from sessions.fault_file import internal_sentence
from sessions.faults import shown
from sessions.holder import Holder
from sessions.host.event_log import EventLog
from sessions.host.events import Numbered, Work, WorkAsked, WorkBegan, WorkEnded, WorkKept

if TYPE_CHECKING:
    from core.targets.ssh.host_keys import AskHostKey

INTERRUPTED = "interrupted; what had finished is in the history"


@dataclass(slots=True, eq=False)
class Job:
    """Work with all that carries it out; `ended` gets its answer, or the KerneldeckError."""

    work: Work
    operation: Operation
    arguments: JsonObject
    environment: Mapping[str, str]
    cwd: str
    ended: asyncio.Future[Answer]
    ask: AskHostKey | None = None
    told: Callable[[Numbered], None] | None = None
    task: asyncio.Task[Answer] | None = None
    expiry: asyncio.TimerHandle | None = field(default=None)


class Desk:
    """Takes jobs, performs them one by one, and tells each step to the log."""

    def __init__(
        self,
        root: Path,
        log: EventLog,
        perform: Callable[[Job], Awaitable[Answer]],
        after: Callable[[], None],
    ) -> None:
        self._root = root
        self._log = log
        self._perform = perform
        self._after = after  # called whenever one has ended
        self._queue: list[Job] = []
        self._running: Job | None = None
        self._wake = asyncio.Event()

    @property
    def idle(self) -> bool:
        return self._running is None and not self._queue

    @property
    def running(self) -> Job | None:
        return self._running

    def take(self, job: Job, wait_s: float | None) -> None:
        """Queue the job. Without its turn within `wait_s` (None: without bound) it ends as Busy."""
        self._log.tell(WorkAsked(job.work), job.work.actor, job.work.receipt)
        if not self.idle and wait_s is not None:
            job.expiry = asyncio.get_running_loop().call_later(wait_s, self._expire, job)
        self._queue.append(job)
        self._wake.set()

    def pass_by(self, job: Job, annotated: Callable[[Job], Answer]) -> None:
        """Carry the job out now, beside whatever runs: it takes no time and needs nothing of that."""
        try:
            job.ended.set_result(annotated(job))
        except KerneldeckError as fault:
            job.ended.set_exception(fault)
        except Exception as error:
            job.ended.set_exception(internal_fault(error))

    def _expire(self, job: Job) -> None:
        if job in self._queue and self._running is not None:
            self._queue.remove(job)
            self._end(job, self._busy(self._running))

    def _busy(self, first: Job) -> Busy:
        holder = Holder.here(first.work.command, lambda: first.work.asked_s)
        who = holder.described(holder, time.time()).replace(f"pid {holder.pid}", f"pid {first.work.pid}")
        hint = "wait with --wait SECONDS, or end that command"
        if not first.work.leased:
            hint = "wait with --wait SECONDS, or see to it: kerneldeck attach"
        return Busy(f"{shown(self._root)} is held by {who}", hint)

    def cancel(self, receipt: int) -> bool:
        """End that job, waiting or running; False when there is none such."""
        if self._running is not None and self._running.work.receipt == receipt:
            if self._running.task is not None:
                self._running.task.cancel()
            return True
        job = next((one for one in self._queue if one.work.receipt == receipt), None)
        if job is None:
            return False
        self._queue.remove(job)
        self._end(job, Cancelled(INTERRUPTED))
        return True

    def leased_by(self, client: int) -> list[Job]:
        """Work that ends with that client."""
        running = [self._running] if self._running is not None else []
        return [job for job in [*self._queue, *running] if job.work.client == client and job.work.leased]

    def keep(self, job: Job) -> None:
        """Leased work becomes detached."""
        job.work = replace(job.work, leased=False)
        self._log.tell(WorkKept(job.work.receipt), job.work.actor, job.work.receipt)

    async def run(self) -> None:
        """Perform job after job; when cancelled, the running one is ended first."""
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            job = self._running = self._queue.pop(0)
            if job.expiry is not None:
                job.expiry.cancel()
            try:
                await self._run_one(job)
            finally:
                self._running = None
                self._ended(job)

    async def _run_one(self, job: Job) -> None:
        self._log.tell(WorkBegan(job.work.receipt, time.time()), job.work.actor, job.work.receipt)
        job.task = asyncio.ensure_future(self._perform(job))
        try:
            await asyncio.wait([job.task])
        except asyncio.CancelledError:
            job.task.cancel()
            await asyncio.wait([job.task])
            raise

    def _ended(self, job: Job) -> None:
        task = job.task
        assert task is not None and task.done()
        if task.cancelled():
            self._end(job, Cancelled(INTERRUPTED))
        elif (error := task.exception()) is None:
            answer = task.result()
            work = job.work
            self._log.tell(WorkEnded(work.receipt, "done", answer.exit_code), work.actor, work.receipt)
            job.ended.set_result(answer)
            self._after()
        else:
            self._end(job, error if isinstance(error, KerneldeckError) else internal_fault(error))

    def _end(self, job: Job, fault: KerneldeckError) -> None:
        ended = WorkEnded(job.work.receipt, fault.code, fault.exit_code, fault.sentence)
        self._log.tell(ended, job.work.actor, job.work.receipt)
        job.ended.set_exception(fault)
        self._after()


class InternalFault(KerneldeckError):
    """A programming error met while something was done for a client."""

    code = "internal"


def internal_fault(error: BaseException) -> KerneldeckError:
    """What the client is told of a fault of ours; its trace goes to the host's log."""
    traceback.print_exception(error)
    return InternalFault(internal_sentence(error), "please report it with the host's log")
