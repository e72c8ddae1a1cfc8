"""A real sweep in this event loop: watched by its events, asked by its mailbox, cut off where a test says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.events import Event, SweepEnded, TrialBegan
from core.sweep.mailbox import Mailbox
from core.sweep.plan import Command
from sessions.binding import call, declared
from sessions.session import Caller
from sessions.state_dir import locate
from sessions.store import SessionStore, open_read
from tests.cli.deck import DEADLINE_S, Deck, configured

SWEEP = {"knobs": {"block": [1, 2, 4, 8], "warps": [1]}, "finalists": 2, "keep_best": True, "seed": 7}
# Where the condition holds, a trial waits for a line in the pipe.
_GATED_KERNEL = "if {held}; then read -r line < {pipe}; fi"


class Gated:
    """A workspace with a config file, some of whose trials wait until they are let go."""

    def __init__(self, root: Path, held: str) -> None:
        self.deck = configured(root)
        pipe = root.parent / "pipe"
        os.mkfifo(pipe)
        # Open for both ends, so that neither waits for the other and a line stays until it is read.
        self._pipe = os.open(pipe, os.O_RDWR)
        self.deck.kernel(_GATED_KERNEL.format(held=held, pipe=pipe))

    def let_go(self, trials: int = 1) -> None:
        """So many trials that wait, or will, go on."""
        os.write(self._pipe, b"\n" * trials)

    def close(self) -> None:
        os.close(self._pipe)

    def candidate(self, block: int) -> str:
        """The id of the running sweep's candidate with that block."""
        with store_of(self.deck) as store:
            (sweep,) = store.running_sweeps()
        pairs = zip(sweep.plan["candidates"], sweep.plan["overlays"], strict=True)
        return next(name for name, overlay in pairs if overlay.get("block") == block)


class Live:
    """One call of an operation that runs a sweep."""

    def __init__(self, deck: Deck, detached: bool = True) -> None:
        self.deck = deck
        self.events: list[Event] = []
        self.mailbox: Mailbox | None = None
        self._caller = Caller("test", detached=detached, on_sweep=self._on_sweep)
        self._work: asyncio.Task[Any] | None = None

    def _on_sweep(self, sweep_id: int, mailbox: Mailbox) -> None:
        self.mailbox = mailbox

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self._woken.set()

    def start(self, operation: str = "sweep_kernel_config", **arguments: object) -> None:
        self._woken = asyncio.Event()
        given = arguments if operation == "resume_sweep" else {**SWEEP, **arguments}
        work = call(declared(operation), given, self.deck.root, self._caller, self._tell)
        self._work = asyncio.create_task(work)

    async def until(self, holds: Callable[[list[Event]], bool]) -> None:
        """Wait for what the events so far say."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds(self.events):
                self._woken.clear()
                await self._woken.wait()

    async def until_screening(self, block: int) -> None:
        """A trial that screens the candidate with that block runs."""
        await self.until(lambda events: any(_screens(event, block) for event in events))

    def began(self) -> list[TrialBegan]:
        return [event for event in self.events if isinstance(event, TrialBegan)]

    async def ask(self, command: Command) -> str:
        assert self.mailbox is not None
        return await self.mailbox.send(command)

    async def answer(self) -> dict[str, Any]:
        assert self._work is not None
        async with asyncio.timeout(DEADLINE_S):
            answer = await self._work
        return {**answer.content, "exit_code": answer.exit_code}

    async def cut_off(self) -> None:
        """End the call in its middle, as the end of its process would."""
        assert self._work is not None
        self._work.cancel()
        with suppress(asyncio.CancelledError):
            await self._work


def _screens(event: Event, block: int) -> bool:
    return (
        isinstance(event, TrialBegan)
        and event.trial.purpose == "screen"
        and event.trial.overlay.get("block") == block
    )


def ended(events: list[Event]) -> bool:
    return any(isinstance(event, SweepEnded) for event in events)


def store_of(deck: Deck) -> SessionStore:
    store = open_read(locate(deck.root))
    assert store is not None
    return store


def screened(deck: Deck, sweep_id: int) -> list[tuple[object, str]]:
    """Block and status of the sweep's screening trials, in their order."""
    with store_of(deck) as store:
        trials = [one for one in store.sweep_trials(sweep_id) if one.purpose == "screen"]
    return [(one.overlay.get("block", "start"), str(one.status)) for one in trials]
