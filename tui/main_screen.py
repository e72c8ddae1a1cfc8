"""The main screen: the pinned row, four panes, the last event, the keys."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from tui.actions import CONTEXT, HEALTH, HISTORY, QUEUE
from tui.lines.context import context_body
from tui.lines.frame import banner_line, footer_line, last_line, pane_head, tiny_line
from tui.lines.health import health_body
from tui.lines.status import status_line
from tui.panes.drawer import Drawer
from tui.panes.history_body import HistoryBody
from tui.panes.lines_view import LinesView, ScrolledLines
from tui.panes.pane import Pane
from tui.panes.queue_list import QueueList
from tui.showing import HistoryFacts
from tui.sturdy import Sturdy

if TYPE_CHECKING:
    from tui.app import KerneldeckApp
    from tui.history.table import HistoryTable

LAYOUTS = ("tiny", "compact", "accordion", "columns", "areas")


def layout_of(width: int, height: int) -> str:
    """The layout for a terminal of that size."""
    if width < 40 or height < 12:
        return "tiny"
    if width < 60 or height < 16:
        return "compact"
    if width >= 150 and height >= 40:
        return "areas"
    return "columns" if width >= 110 and height >= 30 else "accordion"


class MainScreen(Sturdy, Screen[None]):
    """Everything on it is made once; a change of size changes classes, a change of state changes lines."""

    def __init__(self, deck_app: KerneldeckApp) -> None:
        super().__init__()
        self._app = deck_app
        look = (deck_app.paint, deck_app.deck.showing.glyphs.ascii)
        showing = deck_app.deck.showing
        self.status = LinesView(*look, base="bar", id="status")
        self.banner = LinesView(*look, id="banner")
        self.tiny = LinesView(*look, id="tiny")
        self.last = LinesView(*look, id="last")
        self.footer = LinesView(*look, id="footer")
        self.queue = QueueList(deck_app.deck.record, deck_app.paint, showing, id="queue")
        self.context = ScrolledLines(*look, id="context")
        self.health = ScrolledLines(*look, id="health")
        self.history = HistoryBody(deck_app, id="history")
        bodies: dict[str, Widget] = {
            CONTEXT: self.context, HEALTH: self.health, QUEUE: self.queue, HISTORY: self.history,
        }  # fmt: skip
        self.panes = {name: Pane(name, body, *look) for name, body in bodies.items()}
        self.left, self.right = Vertical(id="left"), Vertical(id="right")
        self.drawer = Drawer(deck_app, id="drawer")
        self.pane = QUEUE
        self.layout_name = ""

    def compose(self) -> ComposeResult:
        # The first picture is laid out, styled and painted once, so all that it shows is set before it.
        self._lay_out(self.app.size)
        self._mark_open(self.panes)
        self.set_class(bool(self._app.deck.showing.banner), "told", update=False)
        self._fill(self.app.size)
        yield self.status
        yield self.banner
        yield self.tiny
        with Container(id="panes"):
            with self.left:
                yield self.panes[CONTEXT]
                yield self.panes[HEALTH]
            with self.right:
                yield self.panes[QUEUE]
                yield self.panes[HISTORY]
            yield self.drawer
        yield self.last
        yield self.footer

    def on_mount(self) -> None:
        self.panes[self.pane].body.focus()

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size)
        self.call_after_refresh(self.show)

    def _lay_out(self, size: Size) -> None:
        name = layout_of(size.width, size.height)
        if name != self.layout_name:
            self.layout_name = name
            self.update_classes({one: one == name for one in LAYOUTS}, update=self.is_mounted)

    def open_pane(self, name: str) -> None:
        """Make that pane the open one, with the focus in it."""
        before, self.pane = self.pane, name
        self._mark_open({before, name})
        self.panes[name].body.focus()
        self.call_after_refresh(self.show)

    def _mark_open(self, changed: Collection[str]) -> None:
        """Give the columns and those panes the classes that say what is open; styles once they have any."""
        for one in changed:
            self.panes[one].set_class(one == self.pane, "open", update=self.is_mounted)
        self.left.set_class(self.pane in (CONTEXT, HEALTH), "has-open", update=self.is_mounted)
        self.right.set_class(self.pane in (QUEUE, HISTORY), "has-open", update=self.is_mounted)

    def show(self) -> None:
        """Give every part its lines; parts repaint what differs."""
        if not self.is_mounted:
            return
        with self.app.batch_update():
            self.set_class(bool(self._app.deck.showing.banner), "told")
            self._fill(self.size)
            self.history.look(self._app.deck.showing)
            if self.layout_name == "areas":
                self.drawer.look()

    def _fill(self, size: Size) -> None:
        showing, width = self._app.deck.showing, size.width
        self.status.show((status_line(showing, width),))
        self.banner.show((banner_line(showing, width),))
        self.tiny.show((tiny_line(width, size.height, self._app.keymap),))
        for name, pane in self.panes.items():
            pane.show_head(pane_head(name, showing, pane.head.size.width or width, name == self.pane))
        self.queue.show(showing)
        self.context.show(partial(context_body, showing))
        self.health.show(partial(health_body, showing))
        self.last.show((last_line(showing, width),))
        self.footer.show((footer_line(self.pane, showing, self._app.keymap, width),))

    async def on_key(self, event: events.Key) -> None:
        if self.app.screen is not self or isinstance(self.focused, Input):
            # Letters are text there; one that was typed ahead is for what has come up meanwhile.
            if self.app.screen is not self or event.is_printable:
                event.stop()
                self.app.post_message(events.Key(event.key, event.character))
            return
        action = self._app.keymap.action_of(event.key, self.pane)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self._app.do(action)

    # What the history says.

    def on_history_table_moved(self) -> None:
        if self.layout_name == "areas":
            self.drawer.look()

    def on_history_table_viewed(self, event: HistoryTable.Viewed) -> None:
        words = " ".join([event.view.words, "bad hidden" if event.view.hide_bad else ""]).strip()
        told = f"{words} ({event.count})" if words else ""
        self._app.deck.show(history=HistoryFacts(event.total, told))

    def on_history_table_refused(self, event: HistoryTable.Refused) -> None:
        self._app.deck.say(event.sentence + (f"; {event.hint}" if event.hint else ""))
