"""Actions that change only what is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.actions import HISTORY, PANES, QUEUE
from tui.doing.registry import handles
from tui.panes.lines_view import ScrolledLines
from tui.panes.queue_list import QueueList
from tui.probing import probe
from tui.screens.help import HelpScreen
from tui.screens.pages import LinesPage
from tui.screens.prompt import Prompt

if TYPE_CHECKING:
    from tui.app import KerneldeckApp
    from tui.history.table import HistoryTable

_FAR = 1_000_000_000
_ROW_ACTIONS = (
    "row.open", "row.log", "row.note", "row.baseline", "row.copy", "row.mark", "item.again",
    "queue.sooner", "queue.later", "queue.cancel",
    "hist.compare", "hist.diff", "view.save",
)  # fmt: skip


@handles("pane.next")
async def _next(app: KerneldeckApp) -> None:
    app.main.open_pane(PANES[(PANES.index(app.main.pane) + 1) % len(PANES)])


@handles("pane.previous")
async def _previous(app: KerneldeckApp) -> None:
    app.main.open_pane(PANES[(PANES.index(app.main.pane) - 1) % len(PANES)])


@handles("view.zoom")
async def _zoom(app: KerneldeckApp) -> None:
    app.main.toggle_class("zoomed")
    app.main.call_after_refresh(app.main.show)


@handles("nav.back")
async def _back(app: KerneldeckApp) -> None:
    table = app.main.history.table
    if app.main.pane == HISTORY and table is not None:
        if table.view.words:
            table.filter("")
            return
        if table.clear_marks():
            return
    app.main.remove_class("zoomed")
    app.main.call_after_refresh(app.main.show)


def move(app: KerneldeckApp, where: str) -> None:
    """Move in the open pane: down, up, top, bottom, page_down, page_up, left or right."""
    body, table = app.main.panes[app.main.pane].body, app.main.history.table
    if isinstance(body, QueueList):
        _move_queue(app, body, where)
    elif isinstance(body, ScrolledLines):
        page = max(1, body.size.height - 1)
        steps = {"down": 1, "up": -1, "page_down": page, "page_up": -page, "top": -_FAR, "bottom": _FAR}
        body.move(steps.get(where, 0))
    elif table is not None:
        _move_table(table, where)


def _move_table(table: HistoryTable, where: str) -> None:
    table.follow = where == "top"
    if where in ("down", "up"):
        table.move(1 if where == "down" else -1)
    elif where in ("page_down", "page_up"):
        table.page(1 if where == "page_down" else -1)
    elif where == "top":
        table.move_to(0)
    elif where == "bottom":
        table.bottom()


def _move_queue(app: KerneldeckApp, queue: QueueList, where: str) -> None:
    if where in ("left", "right"):
        queue.shift_columns(-1 if where == "left" else 1)
        return
    if app.deck.showing.follow:
        app.deck.show(follow=False)
    steps = {"down": 1, "up": -1, "page_down": queue.page, "page_up": -queue.page}
    if where in steps:
        queue.move(steps[where])
    else:
        queue.move_to(0 if where == "top" else queue.last)


@handles("view.filter")
async def _filter(app: KerneldeckApp) -> None:
    table, bar = app.main.history.table, app.main.history.bar
    if table is None or bar is None:
        app.deck.say("filter: there are no runs yet")
    else:
        bar.open(table.view.words)


@handles("row.menu")
async def _menu(app: KerneldeckApp) -> None:
    app.push_screen(Prompt(app, _ROW_ACTIONS))


@handles("view.follow")
async def _follow(app: KerneldeckApp) -> None:
    app.deck.show(follow=not app.deck.showing.follow)


@handles("view.hide_bad")
async def _hide_bad(app: KerneldeckApp) -> None:
    if app.main.pane == QUEUE:
        app.deck.show(hide_bad=not app.deck.showing.hide_bad)
    elif app.main.history.table is not None:
        app.main.history.table.toggle_bad()


@handles("view.refresh")
async def _refresh(app: KerneldeckApp) -> None:
    app.deck.reconnect()
    if app.main.pane == "health":
        app.begin(probe(app.deck))
    app.deck.log("kerneldeck health" if app.main.pane == "health" else "kerneldeck inspect")
    app.main.show()


@handles("app.repaint")
async def _repaint(app: KerneldeckApp) -> None:
    app.refresh(repaint=True, layout=True)
    for widget in app.screen.walk_children():
        widget.refresh()


@handles("app.detach")
async def _detach(app: KerneldeckApp) -> None:
    app.exit(0)


@handles("app.help")
async def _help(app: KerneldeckApp) -> None:
    app.push_screen(HelpScreen(app.main.pane, app.deck.showing, app.keymap, app.paint))


@handles("app.log")
async def _log(app: KerneldeckApp) -> None:
    none = ["nothing was done here yet: every action leaves its command line here"]
    said = app.deck.messages or ["nothing yet"]
    lines = [*(app.deck.commands or none), "", "What was said, the newest last:", *said]
    app.push_screen(LinesPage("Command lines of this session", lines, app.paint, app.deck.showing.glyphs))


@handles("app.commands")
async def _commands(app: KerneldeckApp) -> None:
    app.push_screen(Prompt(app))
