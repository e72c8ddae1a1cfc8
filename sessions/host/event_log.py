"""The host's numbered events, the snapshot they make, and a bounded outbox a client."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from core.words import JsonObject
from sessions.host.events import Event, Numbered
from sessions.host.snapshot import Snapshot, fold

KEPT_EVENTS = 2000
MOST_WAITING = 500


@dataclass(frozen=True, slots=True)
class _Event:
    numbered: Numbered
    request: int

    @property
    def replaces(self) -> str:
        return "" if self.request else self.numbered.replaces


class Outbox:
    """What one client is yet to be sent. Answers are all kept; of events too many give way to a snapshot."""

    def __init__(self, current: Callable[[], Snapshot]) -> None:
        self._current = current
        self._items: deque[JsonObject | _Event] = deque()
        self._events = 0
        self._missed = False
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()

    def put(self, message: JsonObject) -> None:
        self._items.append(message)
        self._wake.set()

    def put_snapshot(self) -> None:
        """In place of all events that still wait here."""
        self._items = deque(item for item in self._items if not isinstance(item, _Event))
        self._events = 0
        self._missed = True
        self._wake.set()

    def put_event(self, numbered: Numbered, request: int = 0) -> None:
        """An event for whoever watches; with `request` for that call alone."""
        if self._missed:
            return  # the snapshot to come has it
        if numbered.replaces:
            self._drop(numbered.replaces)
        self._items.append(_Event(numbered, request))
        self._events += 1
        self._wake.set()
        if self._events > MOST_WAITING:
            self.put_snapshot()

    def _drop(self, replaced: str) -> None:
        kept = [one for one in self._items if not (isinstance(one, _Event) and one.replaces == replaced)]
        self._events -= len(self._items) - len(kept)
        self._items = deque(kept)

    async def drained(self) -> None:
        """Until the last message has gone out."""
        await self._drained.wait()

    async def next(self) -> JsonObject:
        """The next message for the wire; asked for when the one before has gone out."""
        while not self._items and not self._missed:
            self._drained.set()
            self._wake.clear()
            await self._wake.wait()
        self._drained.clear()
        if self._items:
            item = self._items.popleft()
            if not isinstance(item, _Event):
                return item
            self._events -= 1
            written = item.numbered.to_json()
            return {"told": item.request, "numbered": written} if item.request else written
        self._missed = False
        return {"snapshot": self._current().to_json()}


class EventLog:
    """Numbers events, folds them into the snapshot, and hands them to whoever watches."""

    def __init__(self, first: Snapshot) -> None:
        self.snapshot = first
        self._kept: deque[Numbered] = deque(maxlen=KEPT_EVENTS)
        self._watchers: list[Outbox] = []

    @property
    def watched(self) -> bool:
        return bool(self._watchers)

    def tell(self, event: Event, actor: str = "host", receipt: int = 0) -> Numbered:
        numbered = Numbered(self.snapshot.seq + 1, actor, time.time(), event, receipt)
        self.snapshot = fold(self.snapshot, numbered)
        self._kept.append(numbered)
        for outbox in self._watchers:
            outbox.put_event(numbered)
        return numbered

    def watch(self, outbox: Outbox, after: int | None) -> None:
        """Give `outbox` the events behind number `after`, or a snapshot where they are not all kept."""
        oldest = self._kept[0].seq if self._kept else self.snapshot.seq + 1
        if after is None or not oldest - 1 <= after <= self.snapshot.seq:
            outbox.put_snapshot()
        else:
            for numbered in self._kept:
                if numbered.seq > after:
                    outbox.put_event(numbered)
        self.unwatch(outbox)
        self._watchers.append(outbox)

    def unwatch(self, outbox: Outbox) -> None:
        self._watchers = [one for one in self._watchers if one is not outbox]
