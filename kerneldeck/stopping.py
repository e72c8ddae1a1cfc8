"""Ctrl-C, SIGTERM and SIGHUP: a command that is asked to stop first ends what it started."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from core.errors import Cancelled

HARD_AFTER_S = 1.0
_ASKED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MOST_WORDS = 2  # that are said again before whoever insists is believed

T = TypeVar("T")


class Stopped(Cancelled):
    """A signal ended the work; `exit_code` is the one of a program that it ended."""

    def __init__(self, number: int) -> None:
        super().__init__("interrupted; what had finished is in the history")
        self.exit_code = 128 + number


def run(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of `work`; Stopped when a signal came before its end.

    Each signal cancels the work once more, and so ends one wait of its end. The third one, some time after
    the first, leaves at once: by then the trial's cancel is on its way.
    """
    stop = _Stop()
    try:
        return asyncio.run(_until_asked(work, stop))
    except (asyncio.CancelledError, KeyboardInterrupt):
        if not stop.asked:
            raise
        raise Stopped(stop.asked[0]) from None


async def _until_asked(work: Coroutine[Any, Any, T], stop: _Stop) -> T:
    task = asyncio.current_task()
    assert task is not None
    with stop.heard_by(asyncio.get_running_loop(), task):
        return await work


class _Stop:
    """The signals that came, and what each of them does."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._first_s = 0.0

    @contextmanager
    def heard_by(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Iterator[None]:
        def note(number: int, _: FrameType | None) -> None:
            self._first_s = self._first_s if self.asked else time.monotonic()
            self.asked.append(number)
            if len(self.asked) > _MOST_WORDS and time.monotonic() > self._first_s + HARD_AFTER_S:
                raise KeyboardInterrupt
            loop.call_soon_threadsafe(task.cancel)

        # What was ignored when we were started, as by nohup, stays so. Only the first thread hears signals.
        first = threading.current_thread() is threading.main_thread()
        heard = _ASKED_BY if first else ()
        numbers = [number for number in heard if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, note) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
