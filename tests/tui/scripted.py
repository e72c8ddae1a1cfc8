"""The app over a scripted connection: only the way to the host is a stand-in, its state is the test's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from core.operations.declaration import Answer
from core.records import TrialRecord
from core.words import Status
from sessions.host.events import Best, Numbered, TargetView, Work, WorkspaceSeen
from sessions.host.snapshot import Snapshot, SweepView
from tui.environment import INDEXED, settle

settle(os.environ, INDEXED)

from textual.pilot import Pilot  # noqa: E402 (reads the environment at its import)

from tui.app import KerneldeckApp  # noqa: E402
from tui.connection import Connection  # noqa: E402
from tui.deck import Deck  # noqa: E402
from tui.glyphs import UNICODE, Glyphs  # noqa: E402
from tui.keymap import DEFAULT  # noqa: E402
from tui.paint import paint_of  # noqa: E402
from tui.record import Record  # noqa: E402

CONTRACT = "c0ffee" + "0" * 58
WITHIN_S = 60.0


def trial(number: int, candidate: str, status: Status | None = Status.OK, **more: object) -> TrialRecord:
    """A screening trial of sweep 7."""
    score = 100.0 + number if status is Status.OK else None
    base = TrialRecord(
        candidate, CONTRACT, "dev", "screen", "h200-3", "cli", overlay={"block": 4, "warps": 1},
        status=status, score=score, started_s=1.0, duration_s=2.0, sweep_id=7, id=number,
    )  # fmt: skip
    return replace(base, **more)  # type: ignore[arg-type]


def candidates(count: int) -> tuple[str, ...]:
    return tuple(f"{number:08x}" + "ab" * 28 for number in range(count))


def snapshot(waiting: int = 0, ended: int = 0, running: bool = False, **more: object) -> Snapshot:
    """A host's state with sweep 7 in it when anything waits, runs or has ended."""
    names = candidates(ended + running + waiting)
    done = tuple(trial(number + 1, names[number]) for number in reversed(range(ended)))
    now = trial(ended + 1, names[ended], None) if running else None
    sweep = None
    if names:
        sweep = SweepView(
            7, len(names), "cli", True, phase="screen", waiting=names[ended + running :],
            running=names[ended] if running else "", counts={"ok": ended} if ended else {}, began_s=1.0,
            best_score=101.0 if ended else None, best_candidate=names[0] if ended else "",
            timed=ended, timed_s=2.0 * ended, timed_s2=4.0 * ended,
        )  # fmt: skip
    work = Work(1, "sweep_kernel_config", "cli", "kerneldeck sweep config", 1, 1, False, 1.0, 1.0)
    seen = WorkspaceSeen(
        "sums", "/w", CONTRACT, "total_ms", "ms", True, (), Best("b" * 64, 100.0, 1.0, {}, 1)
    )
    made = Snapshot(
        1, 99, "0", 1.0, seen, TargetView("h200-3", "H200", "connected", 42.0),
        work if running else None, (), sweep, now, None, done,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


class Scripted:
    """A connection whose host is the test: `tell` is its next state, `asked` what it was asked."""

    def __init__(self, first: Snapshot) -> None:
        self.latest: Snapshot | None = first
        self.asked: list[tuple[str, object]] = []
        self.fault: Exception | None = None
        self.held: asyncio.Event | None = None
        self._wake = asyncio.Event()
        self._ended = False

    def tell(self, now: Snapshot) -> None:
        assert self.latest is not None
        self.latest = replace(now, seq=self.latest.seq + 1)
        self._wake.set()

    def up(self) -> None:
        """As if just started."""
        self.fault, self._ended = None, False

    def lose(self, fault: Exception) -> None:
        self.fault = fault
        self._wake.set()

    async def updates(self, after: int | None = None) -> AsyncIterator[Snapshot | Numbered]:
        while not self._ended:
            assert self.latest is not None
            yield self.latest
            await self._wake.wait()
            self._wake.clear()
            if self.fault is not None:
                raise self.fault

    async def submit(
        self,
        operation: str,
        arguments: Mapping[str, object],
        *,
        lease: bool = True,
        wait_s: float | None = None,
        command: str = "",
    ) -> TakenOn:
        assert lease is False, "what the app asks for goes on without it"
        self.asked.append((operation, dict(arguments)))
        return TakenOn()

    async def control(self, what: str, sweep: int | None = None, **more: object) -> str:
        self.asked.append((what, more))
        if self.held is not None:
            await self.held.wait()
        return f"{what} done"

    async def cancel(self, receipt: int) -> None:
        self.asked.append(("cancel", receipt))

    async def close(self) -> None:
        self._ended = True
        self._wake.set()


class TakenOn:
    receipt = 5

    async def answer(self) -> Answer:
        return Answer({}, 0)


class Shown:
    """The running app with what tests ask of it."""

    def __init__(self, app: KerneldeckApp, pilot: Pilot[int], host: Scripted) -> None:
        self.app, self.pilot, self.host = app, pilot, host

    def text(self) -> str:
        """All that is on the screen, line by line."""
        lines = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join("".join(segment.text for segment in line) for line in lines)

    async def wait_for(self, seen: str | Callable[[str], bool]) -> str:
        holds = (lambda text: seen in text) if isinstance(seen, str) else seen
        try:
            async with asyncio.timeout(WITHIN_S):
                while not holds(self.text()):
                    await self.pilot.pause()
        except TimeoutError:
            raise AssertionError(f"in vain waited for {seen!r}:\n{self.text()}") from None
        return self.text()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def tell(self, now: Snapshot) -> None:
        self.host.tell(now)
        await self.pilot.pause()


@asynccontextmanager
async def shown(
    root: Path,
    first: Snapshot,
    size: tuple[int, int] = (80, 24),
    readonly: bool = False,
    glyphs: Glyphs = UNICODE,
    notify: Callable[[str], None] = lambda sentence: None,
    connecting: Callable[[KerneldeckApp], None] = lambda app: None,
) -> AsyncIterator[Shown]:
    """The app in the workspace at `root`, connected to a scripted host in that state."""
    host = Scripted(first)

    async def connect() -> Connection:
        connecting(app)
        host.up()
        return host

    deck = Deck(Record(root), connect, glyphs, readonly, 0.0)
    deck.notify = notify
    app = KerneldeckApp(deck, paint_of("auto", INDEXED), DEFAULT)
    async with app.run_test(size=size) as pilot:
        screen = Shown(app, pilot, host)
        await screen.wait_for("sums")
        yield screen
