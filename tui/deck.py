"""The app's side of the host: follows it, asks of it, and tells the screen at most once a tick."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import KerneldeckError
from sessions.fault_file import internal_sentence, keep_trace
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot
from sessions.host.wire import HostFault
from tui.connection import Connect, Connection
from tui.glyphs import Glyphs
from tui.lines.last import told
from tui.notices import notices
from tui.plain import plain
from tui.record import Record
from tui.showing import CONNECTED, CONNECTING, ENDED, LOST, STALE_AFTER_S, Link, Requested, Showing

if TYPE_CHECKING:
    from sessions.host.client import HostKeyAsked

_CLOCK_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 10.0
_LATE_S = 5.0
_LONGEST_LOG = 500


class Deck:
    """What is known of the workspace and its host, kept up while `run` lasts.

    `changed` is called on the loop when something may look different: at most once in `tick_s` for what
    the host tells, at once for what the person does.
    """

    def __init__(
        self, record: Record, connect: Connect, glyphs: Glyphs, readonly: bool, tick_s: float
    ) -> None:
        self.record = record
        self.showing = Showing(glyphs=glyphs, readonly=readonly, now_s=time.time())
        self.commands: list[str] = []
        self.messages: list[str] = []
        self.changed: Callable[[], None] = lambda: None
        self.notify: Callable[[str], None] = lambda sentence: None
        self.ask_person: Callable[[HostKeyAsked], Awaitable[bool]] | None = None
        self.lost_at_start: KerneldeckError | None = None
        self._connect = connect
        self._client: Connection | None = None
        self._tick_s = tick_s
        self._told_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self._again = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen: tuple[int, object] | None = None

    @property
    def client(self) -> Connection | None:
        return self._client if self.showing.live else None

    def show(self, **changes: object) -> None:
        """Change what is shown, at once."""
        self.showing = replace(self.showing, **changes)  # type: ignore[arg-type]
        self._tell()

    def say(self, words: str) -> None:
        """Put a sentence on the line of the last event."""
        self.show(last=plain(words))

    async def host_key(self, asked: HostKeyAsked) -> bool:
        """Whether the person trusts that key; nobody who only reads is asked."""
        if self.showing.readonly or self.ask_person is None:
            return False
        self.notify(plain(f"{asked.hop} shows a host key that is not known; the app asks about it"))
        return await self.ask_person(asked)

    # Following.

    async def run(self) -> None:
        """Connect and follow; after a loss, again. Ends with the fault when the first try fails."""
        self._look()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                await self._follow()
            except KerneldeckError as fault:
                if not self.showing.snapshot.pid:
                    self.lost_at_start = fault
                    self._link(ENDED, fault)
                    return
                pause_s = await self._after(fault, pause_s)
            else:
                return
            if self.showing.live:
                pause_s = _FIRST_PAUSE_S

    async def _follow(self) -> None:
        self.show(link=replace(self.showing.link, state=CONNECTING))
        client = await self._connect()
        self._client = client
        try:
            async for update in client.updates():
                if isinstance(update, Numbered) and (line := told(self.showing.snapshot, update)):
                    self.showing = replace(self.showing, last=line)
                if client.latest is not None:
                    self._take(client.latest)
        except KerneldeckError:
            raise
        except Exception as error:  # of ours: what is shown is no longer followed, and has to look so
            raise HostFault(internal_sentence(error), keep_trace(error)) from error
        finally:
            with suppress(KerneldeckError, OSError):
                await client.close()

    def _take(self, snapshot: Snapshot) -> None:
        if self.showing.link.state != CONNECTED:
            again = bool(self.showing.snapshot.pid)
            self._link(CONNECTED)
            if again:
                self.showing = replace(
                    self.showing, last="connected again: another host goes on with the work"
                )
        before = self.showing.snapshot
        self.showing = replace(self.showing, snapshot=snapshot)
        if before.pid:  # what had ended before the app came is no news
            for sentence in notices(before, snapshot):
                self.notify(sentence)
        self._soon()

    async def _after(self, fault: KerneldeckError, pause_s: float) -> float:
        """Wait until it is worth trying again: at once after a crash, when asked after a goodbye."""
        left, followed = self.showing.snapshot.leaving, self._client is not None
        self._client = None
        if left:
            if followed:
                self._link(ENDED, sentence=f"the host has left: {left}", hint="r starts it again")
            else:  # it was asked to start again, and says why it cannot
                self._link(ENDED, fault)
            await self._again.wait()
        else:
            self._link(LOST, fault)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._again.wait()
        self._again.clear()
        return min(2 * pause_s, _LONGEST_PAUSE_S)

    def reconnect(self) -> None:
        """Try again now, where there is no connection."""
        self._again.set()

    def _link(
        self, state: str, fault: KerneldeckError | None = None, sentence: str = "", hint: str = ""
    ) -> None:
        sentence, hint = (fault.sentence, fault.hint) if fault else (sentence, hint)
        self.showing = replace(self.showing, link=Link(state, plain(sentence), plain(hint), time.time()))
        if sentence:
            self.showing = replace(self.showing, last=plain(f"{sentence}; {hint}" if hint else sentence))
        self._tell()

    # Telling the screen.

    def _soon(self) -> None:
        if self._timer is None:
            wait_s = self._told_s + self._tick_s - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wait_s), self._tell)

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._told_s = time.monotonic()
        self._look()
        self.showing = replace(self.showing, now_s=time.time())
        if self.showing.last and self.showing.last not in self.messages[-1:]:
            self.messages = [*self.messages, self.showing.last][-_LONGEST_LOG:]
        self._set_clock()
        self.changed()

    def _look(self) -> None:
        """Read again what the store and the files say, where the host's snapshot says that it is new."""
        snapshot, seen = self.showing.snapshot, self._seen
        newest = snapshot.ended[0].id if snapshot.ended else 0
        if seen is None or seen[0] != newest:
            self.showing = replace(self.showing, history=replace(
                self.record.history(), filter=self.showing.history.filter))  # fmt: skip
        if seen is None or seen[1] != snapshot.workspace:
            self.showing = replace(self.showing, facts=self.record.facts())
        self._seen = (newest, snapshot.workspace)

    def _set_clock(self) -> None:
        """A running clock while something runs; without that, one look when the figures grow stale."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        showing = self.showing
        running = showing.live and showing.snapshot.work is not None
        if running:
            wait_s = _CLOCK_S
        elif showing.target.sampled_s or showing.probe.at_s:
            wait_s = STALE_AFTER_S
        else:
            return
        self._clock = asyncio.get_running_loop().call_later(wait_s, self._tell)

    # Asking.

    def _host(self) -> Connection:
        """The host, which may have gone between a key and what it asks for."""
        if self._client is None:
            raise HostFault("not asked for: the host has just gone", "press it again")
        return self._client

    def log(self, command: str) -> None:
        """Keep the command line that what was just done stands for."""
        self.commands = [*self.commands, command][-_LONGEST_LOG:]

    def control(
        self, command: str, words: str, what: str, *, sweep: int | None = None, **more: object
    ) -> None:
        """A command to that sweep (None: the one that runs); `words` name it until it is answered."""

        async def asked() -> str:
            return await self._host().control(what, sweep, **more)

        self._ask(command, words, asked)

    def cancel(self, receipt: int, command: str, words: str) -> None:
        """End that work, whoever asked for it."""

        async def asked() -> str:
            await self._host().cancel(receipt)
            return f"{words}: asked for"

        self._ask(command, words, asked)

    def submit(self, operation: str, arguments: Mapping[str, object], command: str) -> None:
        """Work that goes on whoever leaves; its end is an event like all others."""

        async def asked() -> str:
            pending = await self._host().submit(operation, arguments, lease=False, command=command)
            self._keep(self._watch(command, pending.answer()))
            return f"{command}: taken on as #{pending.receipt}"

        self._ask(command, command, asked)

    def annotate(self, operation: str, arguments: Mapping[str, object], command: str, words: str) -> None:
        """Something to keep with a record: done when it is answered, whatever runs."""

        async def asked() -> str:
            pending = await self._host().submit(operation, arguments, lease=False, command=command)
            return str((await pending.answer()).content["said"])

        self._ask(command, words, asked)

    async def _watch(self, command: str, answer: Awaitable[object]) -> None:
        """A fault that ends the work is told as a sentence."""
        try:
            await answer
        except KerneldeckError as fault:
            if self.showing.live:
                self.say(f"{command}: {fault.sentence}" + (f"; {fault.hint}" if fault.hint else ""))

    def _ask(self, command: str, words: str, asked: Callable[[], Awaitable[str]]) -> None:
        if self.client is None:
            self.say(f"{words}: not asked for, there is no host ({self.showing.link.state})")
            return
        self.log(command)
        self._keep(self._asking(Requested(next(self._numbers), plain(words), time.time()), asked))

    async def _asking(self, requested: Requested, asked: Callable[[], Awaitable[str]]) -> None:
        self.show(requested=(*self.showing.requested, requested), last=f"requested: {requested.words}")
        late = asyncio.get_running_loop().call_later(
            _LATE_S, self.say, f"no answer for {_LATE_S:g} s: {requested.words}; press it again, or wait"
        )
        try:
            said = await asked()
        except KerneldeckError as fault:
            said = fault.sentence + (f"; {fault.hint}" if fault.hint else "")
        except Exception as error:  # of ours: told like any other, for nobody awaits this task
            said = f"{internal_sentence(error, requested.words)}; {keep_trace(error)}"
        finally:
            late.cancel()
        left = tuple(one for one in self.showing.requested if one.number != requested.number)
        self.show(requested=left, last=plain(said))

    def _keep(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Leave the host; what it does goes on."""
        for timer in (self._timer, self._clock):
            if timer is not None:
                timer.cancel()
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            with suppress(KerneldeckError, OSError):
                await self._client.close()
        self.record.close()
