"""Pane heads, the line of the last event, the footer, and what a tiny terminal shows."""

from __future__ import annotations

from tui.actions import BY_ID as ACTION
from tui.actions import CONTEXT, HEALTH, HISTORY, PANES, QUEUE, Action, footer_actions
from tui.keymap import Keymap
from tui.line import Line, Part, Span, line_of, row
from tui.lines.context import context_head
from tui.lines.health import health_head
from tui.lines.history import history_head
from tui.lines.queue import queue_head
from tui.showing import ENDED, LOST, Showing

_TITLES = {CONTEXT: "Context", HEALTH: "Health", QUEUE: "Queue", HISTORY: "History"}
_TITLE_WIDTH = 8
_HEADS = {CONTEXT: context_head, HEALTH: health_head, QUEUE: queue_head, HISTORY: history_head}
FEWEST_COLUMNS, FEWEST_ROWS = 40, 12


def pane_head(pane: str, showing: Showing, width: int, focused: bool) -> Line:
    """The pane's title and what it has to say in one line, folded or open."""
    number = PANES.index(pane) + 1
    title = (
        f"[{number}]{_TITLES[pane]:<{_TITLE_WIDTH}}"
        if focused
        else f" {number} {_TITLES[pane]:<{_TITLE_WIDTH}}"
    )
    lead = Span(title, "title-on" if focused else "title")
    room = width - len(title) - 2
    return (lead, Span(" "), *_HEADS[pane](showing, room))


def last_line(showing: Showing, width: int) -> Line:
    """The last event; what was asked for and is not answered yet; what is wrong with the host."""
    waiting = showing.requested[-1:]
    if waiting:
        return row(
            [Part(line_of((f" requested: {waiting[0].words}", "warn")))], width, "", showing.glyphs.ascii
        )
    role = "bad" if showing.link.state in (LOST, ENDED) else "dim"
    said = showing.last or "press ? for keys, : for commands"
    left = line_of((f" {said}", role))
    return row([Part(left)], width, "", showing.glyphs.ascii)


def why_dimmed(action: Action, showing: Showing) -> str:
    """Why the action cannot be done now, as a sentence; empty when it can."""
    if not action.changes:
        return ""
    if showing.readonly:
        return f"{action.label}: this app only reads (--readonly)"
    if not showing.live and action.id != "row.edit":
        return f"{action.label}: there is no host ({showing.link.state}); r tries again"
    sweep = showing.sweep
    if action.id.startswith("queue.") and action.id != "queue.cancel" and (sweep is None or sweep.ended):
        return f"{action.label}: no sweep runs; a adds one"
    if action.id == "queue.cancel" and showing.snapshot.work is None and not showing.snapshot.queue:
        return f"{action.label}: nothing runs and nothing waits"
    if action.id == "best.restore" and showing.workspace is not None and showing.workspace.best is None:
        return f"{action.label}: there is no best yet; v verifies what the workspace holds"
    return ""


def label_of(action: Action, showing: Showing) -> str:
    """What the key does now: pause becomes resume."""
    paused = showing.sweep is not None and showing.sweep.state == "PAUSED"
    return "resume" if action.id == "queue.pause" and paused else action.label


def footer_line(pane: str, showing: Showing, keymap: Keymap, width: int) -> Line:
    """Six keys, those of the pane in the middle; keys that do nothing now are dimmed."""
    own = [_key(action, showing, keymap) for action in footer_actions(pane)]
    parts = [
        Part(line_of(("1-4", "key"), " pane"), 2),
        Part(_key(ACTION["view.zoom"], showing, keymap), 5),
        *(Part(line, 3) for line in own),
        Part(_key(ACTION["app.commands"], showing, keymap), 4),
        Part(_key(ACTION["app.help"], showing, keymap), 1),
        Part(_key(ACTION["app.detach"], showing, keymap), 0),
    ]
    return (Span(" "), *row(parts, width - 1, "  ", showing.glyphs.ascii))


def _key(action: Action, showing: Showing, keymap: Keymap) -> Line:
    key = keymap.shown(action.id)
    if not key:
        return ()
    label = label_of(action, showing)
    if why_dimmed(action, showing):
        return line_of((f"{key} {label}", "off"))
    return line_of((key, "key"), f" {label}")


def tiny_line(width: int, height: int, keymap: Keymap) -> Line:
    """What a terminal shows in which nothing else fits."""
    way_out = keymap.shown("app.detach")
    return line_of(
        (f"{width}x{height}, needs {FEWEST_COLUMNS}x{FEWEST_ROWS}", "warn"),
        f"  {way_out} detach"[: max(0, width)],
    )


def banner_line(showing: Showing, width: int) -> Line:
    """A fault of the person's own settings, for as long as the app runs."""
    return row([Part(line_of((f" {showing.banner}", "warn")))], width, "", showing.glyphs.ascii)
