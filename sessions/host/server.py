"""The host: holds a workspace, carries out what clients ask for, and leaves when nobody needs it."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from core.errors import ArgumentFault, KerneldeckError
from core.events import Event, Note
from core.operations.declaration import Answer
from core.sweep.mailbox import Mailbox
from core.sweep.plan import StopAsked
from core.version import VERSION
from core.words import JsonObject
from sessions.binding import annotate, call_held
from sessions.host.acting import acting_as
from sessions.host.control import command_of
from sessions.host.desk import Desk, Job
from sessions.host.event_log import EventLog
from sessions.host.events import Annotated, ClientCame, ClientLeft, HostLeaves
from sessions.host.footing import Listener, StateFolder
from sessions.host.looking import Looker
from sessions.host.machines import Machines
from sessions.host.resuming import jobs_to_resume, keep_sweeps
from sessions.host.snapshot import ENDED_KEPT, Snapshot
from sessions.host.visitor import Visitor
from sessions.session import Caller, Held
from sessions.where import place_of, remembered

LOOKS_EVERY_S = 2.0
AWAITED_S = 5.0


class Host:
    """One workspace's host, for as long as `run` lasts."""

    def __init__(self, held: Held, idle_s: float, recovered: list[str]) -> None:
        self.held = held
        self.root = str(held.root)
        self.leaving = ""
        first = Snapshot(
            pid=os.getpid(), version=VERSION, began_s=time.time(),
            ended=tuple(one for one in held.store.trials(ENDED_KEPT) if one.status is not None),
        )  # fmt: skip
        self.log = EventLog(first)
        self.desk = Desk(held.root, self.log, self._perform, self._after_work)
        self._idle_s = idle_s
        self._recovered = recovered
        self._visitors: dict[int, Visitor] = {}
        self._numbers, self._receipts = itertools.count(1), itertools.count(1)
        self._machines = Machines(self.log)
        self._looker = Looker(held)
        self._state = StateFolder(held.place)
        self._mailboxes: dict[int, Mailbox] = {}
        self._left = asyncio.Event()
        self._idle: asyncio.TimerHandle | None = None
        self._kept_open: list[int] = []
        self._logged: set[tuple[str, int | None]] = set()
        self._awaited = True  # whoever started this host is on its way

    async def run(self, socket: Path, ready: Callable[[], None]) -> None:
        """Serve at `socket` until it is time to leave; `ready` is called once it listens."""
        listener = Listener(socket, self._visit)
        await listener.open()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.leave, "it was stopped")
        for job in jobs_to_resume(self.held.store, self.receipt):
            self.desk.take(job, None)
        ready()
        tasks = [
            asyncio.create_task(one) for one in (self.desk.run(), self._watch(listener), self._left.wait())
        ]
        self._consider_leaving()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.leave("of a fault of its own")
            listener.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._machines.close()
            await self._say_goodbye()

    def leave(self, reason: str) -> None:
        """Serve nobody any more; what runs is ended first."""
        if not self.leaving:
            self.leaving = reason
            self.log.tell(HostLeaves(reason))
            self._left.set()

    async def _say_goodbye(self) -> None:
        for visitor in list(self._visitors.values()):
            self._keep_open(visitor)
            await visitor.flush()

    def _keep_open(self, visitor: Visitor) -> None:
        """The client sees its connection end when this process has, and not before."""
        with suppress(OSError):
            self._kept_open.append(os.dup(visitor.writer.get_extra_info("socket").fileno()))

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Visitor(self, reader, writer).serve()
        if not self.leaving:
            writer.close()

    def receipt(self) -> int:
        return next(self._receipts)

    def came(self, visitor: Visitor) -> None:
        visitor.number = next(self._numbers)
        self._visitors[visitor.number] = visitor
        self._awaited = False
        self.log.tell(ClientCame(visitor.view), visitor.hello.actor)
        self._consider_leaving()

    def went(self, visitor: Visitor) -> None:
        del self._visitors[visitor.number]
        self.log.tell(ClientLeft(visitor.number), visitor.hello.actor)
        self._let_go(visitor.number)
        self._consider_leaving()
        if self.leaving:
            self._keep_open(visitor)

    def _let_go(self, client: int) -> None:
        """Leased work of a client that has gone ends, or goes on for those who watch."""
        watched = any(one.watches for one in self._visitors.values())
        for job in self.desk.leased_by(client):
            if watched:
                self.desk.keep(job)
                keep_sweeps(self.held.store, self._mailboxes)
            else:
                self.desk.cancel(job.work.receipt)

    def _consider_leaving(self) -> None:
        """Leave `idle_s` after the last work and the last client have gone."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._visitors or not self.desk.idle or self.leaving:
            return
        idle_s = max(self._idle_s, AWAITED_S) if self._awaited else self._idle_s
        if idle_s <= 0:
            self.leave("nobody needs it")
        else:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(idle_s, self.leave, "nobody needs it")

    def look(self) -> None:
        """Tell what the workspace and its target look like now, where that has changed."""
        try:
            self._look()
        except Exception as error:
            self._log_once(error)

    def _log_once(self, error: Exception) -> None:
        """A look that fails by a fault of ours ends no work: its trace goes to the log, once a place."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        if (place.filename, place.lineno) not in self._logged:
            self._logged.add((place.filename, place.lineno))
            traceback.print_exception(error)

    def _look(self) -> None:
        before = self.log.snapshot.workspace
        seen = self._looker.look(before)
        if seen != before:
            self.log.tell(seen)
        with suppress(KerneldeckError):
            self._machines.look(remembered(place_of("")), self.held.store)

    async def _watch(self, listener: Listener) -> None:
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            if not self._state.stands():
                self.leave("the state folder that it holds was moved or removed")
            await listener.keep()
            if self.log.watched and self._looker.is_new():
                self.look()
            if self.log.watched and self.desk.idle:
                await self._sample()

    async def _sample(self) -> None:
        try:
            await self._machines.sample()
        except Exception as error:
            self._log_once(error)

    async def cancel(self, actor: str, receipt: int) -> bool:
        """End that work; a detached sweep is stopped, where its next host would else go on with it."""
        running = self.desk.running
        if running is not None and running.work.receipt == receipt and not running.work.leased:
            for mailbox in self._mailboxes.values():
                await mailbox.send(StopAsked(f"stopped by {actor}", actor))
                return True
        return self.desk.cancel(receipt)

    async def control(self, actor: str, message: JsonObject) -> str:
        """Hand a command to a running sweep; what was done, or an ArgumentFault."""
        sweep, command, said = command_of(message, actor, self.held.store, list(self._mailboxes))
        refusal = await self._mailboxes[sweep].send(command)
        if refusal:
            raise ArgumentFault(f"sweep #{sweep}: {refusal}")
        return said

    def annotate(self, job: Job) -> None:
        """Write what somebody says of a record, beside whatever runs, and tell it."""

        def written(job: Job) -> Answer:
            caller = Caller(job.work.actor, job.work.command)
            answer = annotate(self.held, job.operation, job.arguments, caller, lambda _: None)
            self.log.tell(Annotated(str(answer.content["said"])), job.work.actor, job.work.receipt)
            return answer

        self.desk.pass_by(job, written)
        if self.log.watched:
            self.look()

    async def _perform(self, job: Job) -> Answer:
        def tell(event: Event) -> None:
            numbered = self.log.tell(event, job.work.actor, job.work.receipt)
            if job.told is not None:
                job.told(numbered)

        def began(sweep: int, mailbox: Mailbox) -> None:
            self._mailboxes[sweep] = mailbox
            if not job.work.leased:  # its client may have gone while the sweep was being set up
                keep_sweeps(self.held.store, [sweep])

        work = job.work
        caller = Caller(work.actor, work.command, 0.0, job.ask, not work.leased, began)
        while self._recovered:
            tell(Note(f"recovered: {self._recovered.pop(0)}"))
        with acting_as(job.environment, job.cwd):
            return await call_held(
                self.held, job.operation, job.arguments, caller, tell, self._machines.opened
            )

    def _after_work(self) -> None:
        if self.desk.running is None:  # what has ended may have waited in vain, while a sweep runs
            self._mailboxes.clear()
        if self.log.watched:
            self.look()
        self._consider_leaving()
