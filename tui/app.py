"""The app: a client of a workspace's host, on a terminal."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import TYPE_CHECKING

from rich.console import RenderableType
from textual.app import App
from textual.reactive import Reactive
from textual.screen import Screen

from sessions.fault_file import internal_sentence, keep_trace
from tui.actions import Action
from tui.deck import Deck
from tui.keymap import Keymap
from tui.lines.frame import why_dimmed
from tui.main_screen import MainScreen
from tui.notify import give_notice
from tui.paint import Paint
from tui.partial import only_changed
from tui.plain import plain
from tui.sturdy import Sturdy
from tui.style import LAYOUT

if TYPE_CHECKING:
    from sessions.host.client import HostKeyAsked


class KerneldeckApp(Sturdy, App[int]):
    """Shows what the host tells, and asks it for what the keys say. Its result is an exit code.

    `stands` is called once, when the first picture is painted and all that keys need is imported.
    """

    TITLE = "kerneldeck"
    ENABLE_COMMAND_PALETTE = False
    INHERIT_BINDINGS = False
    CSS = LAYOUT
    theme: Reactive[str] = Reactive("ansi-dark")  # set later, every style would be made twice

    def __init__(self, deck: Deck, paint: Paint, keymap: Keymap, notify: str = "") -> None:
        super().__init__()
        self.deck = deck
        self.paint = paint
        self.keymap = keymap
        self.set_class(deck.showing.glyphs.ascii, "ascii", update=False)
        self.main = MainScreen(self)
        self.stands: Callable[[], None] = lambda: None
        self.fault: Exception | None = None  # what ended the app
        self._doing: ModuleType | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        deck.changed = self._changed
        deck.ask_person = self._host_key
        if notify:
            deck.notify = lambda sentence: self.begin(self._notify(notify, sentence))

    def get_default_screen(self) -> MainScreen:
        return self.main

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.exit, 0)
        # Behind whatever still leads to the first picture.
        self.call_later(self.main.call_after_refresh, lambda: self.begin(self._follow()))

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        super()._display(screen, only_changed(renderable))

    def begin(self, work: Coroutine[object, object, None]) -> None:
        """Do something beside the screen; a fault of it is a sentence on the screen, never its end."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except Exception as error:
            self.tell_fault(error)

    async def _follow(self) -> None:
        # What only keys and the history need is imported once the first picture stands.
        await self._imported()
        self.stands()
        await self.deck.run()
        if self.deck.lost_at_start is not None:
            self.exit(self.deck.lost_at_start.exit_code)

    async def _imported(self) -> ModuleType:
        self._doing = await asyncio.to_thread(importlib.import_module, "tui.doing")
        return self._doing

    def _changed(self) -> None:
        if self.is_running and self.main.is_mounted:
            self.main.show()

    async def _notify(self, setting: str, sentence: str) -> None:
        if wrong := await give_notice(setting, sentence, os.environ, self.bell):
            self.deck.say(wrong)

    async def do(self, action: Action) -> None:
        """Carry an action out, or say why it cannot be done now."""
        why = why_dimmed(action, self.deck.showing)
        if why:
            self.deck.say(why)
            return
        try:
            await (self._doing or await self._imported()).do(self, action)
        except Exception as error:
            self.tell_fault(error, action.id)

    async def _host_key(self, asked: HostKeyAsked) -> bool:
        """Ask about the key of a machine that nobody has connected to before."""
        from tui.screens.confirm import Confirm, Question

        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        kept = f"kept in {plain(asked.kept_in)}" if asked.kept_in else "for this connection only"
        question = Question(
            f"{plain(asked.hop)} shows a host key that is not known. Trust it ({kept})?",
            f"{plain(asked.algorithm)} {plain(asked.fingerprint)}: compare it with what its owner says.",
            "Do not connect", "Trust this key",
        )  # fmt: skip

        def told(yes: bool | None) -> None:
            if not answer.done():
                answer.set_result(bool(yes))

        self.push_screen(Confirm(question, self.paint, self.deck.showing.glyphs), told)
        return await answer

    def tell_fault(self, error: Exception, doing: str = "") -> None:
        """A fault of ours is a sentence on the screen, and its trace in a file."""
        self.deck.say(f"{internal_sentence(error, doing)}; {keep_trace(error)}")

    def _handle_exception(self, error: Exception) -> None:
        """What cannot be drawn ends the app; it is told when the terminal is as it was."""
        self.fault = self.fault or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

    def action_help_quit(self) -> None:
        """Ctrl+C: nothing ends by it."""
        way_out, stop = self.keymap.shown("app.detach"), self.keymap.shown("queue.stop")
        self.deck.say(f"nothing was stopped: {way_out} detaches, {stop} stops the sweep")

    async def on_unmount(self) -> None:
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.deck.close()
