"""One client's connection, from its greeting to its end."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import ArgumentFault, KerneldeckError
from core.operations.declaration import Answer
from core.version import VERSION
from core.words import JsonObject
from sessions.host.codec import to_json
from sessions.host.desk import Desk, Job, internal_fault
from sessions.host.event_log import EventLog, Outbox
from sessions.host.events import ClientView, Work
from sessions.host.requests import (
    environment_of,
    folder_of,
    hello_in,
    number_of,
    operation_of,
    refusal_of,
    value_of,
)
from sessions.host.wire import (
    GREETED_WITHIN_S,
    PROTOCOL,
    Hello,
    HostFault,
    Welcome,
    WireFault,
    encoded,
    fault_json,
    peer_uid,
    read_message,
)

_FLUSHED_WITHIN_S = 1.0

if TYPE_CHECKING:
    from core.targets.ssh.host_keys import HostKeyQuestion


class HostOf(Protocol):
    """What a visitor needs of the host."""

    log: EventLog
    desk: Desk
    root: str
    leaving: str

    def came(self, visitor: Visitor) -> None: ...

    def went(self, visitor: Visitor) -> None: ...

    def receipt(self) -> int: ...

    def look(self) -> None: ...

    def annotate(self, job: Job) -> None: ...

    async def cancel(self, actor: str, receipt: int) -> bool: ...

    async def control(self, actor: str, message: JsonObject) -> str: ...


class Visitor:
    """Reads a client's messages and sends it what it asked for; nothing that it sends harms anybody else."""

    def __init__(self, host: HostOf, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.host = host
        self.reader = reader
        self.writer = writer
        self.outbox = Outbox(lambda: host.log.snapshot)
        self.watches = False
        self.number = 0
        self.hello = Hello(0, "", "", 0, "")
        self._since_s = time.time()
        self._numbers = itertools.count(1)
        self._questions: dict[int, asyncio.Future[bool]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def view(self) -> ClientView:
        hello = self.hello
        return ClientView(self.number, hello.actor, hello.pid, hello.command, self._since_s, hello.readonly)

    async def serve(self) -> None:
        """Until the client leaves, goes, or sends what is no message."""
        with suppress(WireFault, OSError, TimeoutError):
            if not await self._greet():
                return
            self.host.came(self)
            try:
                await self._talk()
            finally:
                self._gone()
                self.host.went(self)

    async def _greet(self) -> bool:
        if peer_uid(self.writer.get_extra_info("socket")) != os.geteuid():
            return False
        async with asyncio.timeout(GREETED_WITHIN_S):
            message = await read_message(self.reader)
        if message is None:
            return False
        if self.host.leaving:
            await self._send({"leaving": self.host.leaving})
            return False
        self.hello = hello_in(message)
        refusal = refusal_of(self.hello)
        if refusal is not None:
            await self._send({"refused": fault_json(refusal)})
        return refusal is None

    async def _talk(self) -> None:
        welcome = Welcome(
            PROTOCOL, VERSION, os.getpid(), self.host.log.snapshot.seq, self.number, self.host.root
        )
        await self._send({"welcome": to_json(welcome)})
        self._start(self._send_all())
        try:
            while (message := await read_message(self.reader)) is not None:
                if message.get("do") == "bye":
                    break
                self._take(message)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_all(self) -> None:
        """A client that does not read holds up nobody: what it misses it gets as a snapshot."""
        with suppress(OSError):
            while True:
                await self._send(await self.outbox.next())

    async def _send(self, message: JsonObject) -> None:
        self.writer.write(encoded(message))
        await self.writer.drain()

    async def flush(self) -> None:
        """Until all is sent that waits here, or the client does not take it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSHED_WITHIN_S):
                await self.outbox.drained()

    def _gone(self) -> None:
        self.host.log.unwatch(self.outbox)
        for question in self._questions.values():
            if not question.done():
                question.set_result(False)

    def _take(self, message: JsonObject) -> None:
        number = message.get("id")
        if not isinstance(number, int):
            raise WireFault("a request has no number")
        match message.get("do"):
            case "call":
                self._call(number, message)
            case "reply":
                self._replied(message)
            case "cancel":
                self._start(self._answer(number, self._cancel(message)))
            case "control":
                self._start(self._answer(number, self._control(message)))
            case "snapshot":
                self._start(self._answer(number, self._snapshot()))
            case "watch":
                self._start(self._answer(number, self._watch(message)))
            case _:
                raise WireFault("a request of no known kind")

    async def _answer(self, number: int, work: Coroutine[Any, Any, JsonObject]) -> None:
        try:
            self.outbox.put({"re": number, "answer": await work})
        except KerneldeckError as fault:
            self.outbox.put({"re": number, "fault": fault_json(fault)})
        except WireFault:
            self.writer.transport.abort()
        except Exception as error:
            self.outbox.put({"re": number, "fault": fault_json(internal_fault(error))})

    async def _snapshot(self) -> JsonObject:
        self.host.look()
        return {"snapshot": self.host.log.snapshot.to_json()}

    async def _watch(self, message: JsonObject) -> JsonObject:
        self.host.look()
        after = message.get("after")
        self.watches = True
        self.host.log.watch(self.outbox, after if isinstance(after, int) else None)
        return {}

    async def _cancel(self, message: JsonObject) -> JsonObject:
        self._may_change()
        receipt = value_of(message, "receipt", int)
        if not await self.host.cancel(self.hello.actor, receipt):
            raise ArgumentFault(f"no work #{receipt} runs or waits", "see: kerneldeck host status")
        return {}

    async def _control(self, message: JsonObject) -> JsonObject:
        self._may_change()
        return {"said": await self.host.control(self.hello.actor, message)}

    def _may_change(self) -> None:
        if self.hello.readonly:
            raise HostFault("this client only looks on (--readonly)", "start another one without it")

    def _call(self, number: int, message: JsonObject) -> None:
        try:
            self._may_change()
            job, wait_s = self._job(number, message), number_of(message, "wait_s")
        except KerneldeckError as fault:
            self.outbox.put({"re": number, "fault": fault_json(fault)})
            return
        self.outbox.put({"re": number, "receipt": job.work.receipt})
        job.ended.add_done_callback(lambda ended: self._ended(number, ended))
        if job.operation.annotates:
            self.host.annotate(job)
            return
        self.host.desk.take(job, wait_s)

    def _ended(self, number: int, ended: asyncio.Future[Answer]) -> None:
        fault = ended.exception()
        if isinstance(fault, KerneldeckError):
            self.outbox.put({"re": number, "fault": fault_json(fault)})
        else:
            answer = ended.result()
            self.outbox.put(
                {"re": number, "answer": {"content": answer.content, "exit_code": answer.exit_code}}
            )

    def _job(self, number: int, message: JsonObject) -> Job:
        operation, hello = operation_of(message), self.hello
        work = Work(
            self.host.receipt(), operation.id, hello.actor, str(message.get("command") or hello.command),
            hello.pid, self.number, bool(message.get("lease", True)), time.time(),
        )  # fmt: skip
        return Job(
            work, operation, value_of(message, "arguments", dict), environment_of(message),
            folder_of(message, "cwd"), asyncio.get_running_loop().create_future(),
            ask=self._ask if message.get("asks") else None,
            told=(lambda event: self.outbox.put_event(event, number)) if message.get("tell") else None,
        )  # fmt: skip

    async def _ask(self, question: HostKeyQuestion) -> bool:
        """The client's answer; no when it goes without one."""
        number = next(self._numbers)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._questions[number] = answer
        kept_in = "" if question.kept_in is None else str(question.kept_in)
        asked = {name: getattr(question, name) for name in ("target", "hop", "algorithm", "fingerprint")}
        self.outbox.put({"question": {**asked, "kept_in": kept_in}, "number": number})
        try:
            return await answer
        finally:
            del self._questions[number]

    def _replied(self, message: JsonObject) -> None:
        answer = self._questions.get(value_of(message, "number", int))
        if answer is not None and not answer.done():
            answer.set_result(message.get("yes") is True)
