"""Everything that a key can do, declared once: bindings, footer, help, palette and command log read this."""

from __future__ import annotations

from dataclasses import dataclass

CONTEXT, HEALTH, QUEUE, HISTORY = "context", "health", "queue", "history"
PANES = (CONTEXT, HEALTH, QUEUE, HISTORY)
LISTS = (QUEUE, HISTORY)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. `keys`: the first is shown, the others are aliases.

    `verb` is the command line that it stands for, empty where it only changes the view; `changes` says
    whether it changes anything beyond the screen. `panes` are those in which it is bound.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    doc: str
    verb: str = ""
    changes: bool = False
    panes: tuple[str, ...] = PANES


ACTIONS = (
    Action("pane.context", ("1",), "context", "open Context: workspace, space, what differs from the best"),
    Action("pane.health", ("2",), "health", "open Health: the machine that runs the trials"),
    Action("pane.queue", ("3",), "queue", "open Queue: what ended, runs and waits"),
    Action("pane.history", ("4",), "history", "open History: every trial so far"),
    Action("pane.next", ("tab",), "next pane", "open the next pane"),
    Action("pane.previous", ("shift+tab",), "previous pane", "open the previous pane"),
    Action("row.open", ("0", "enter"), "detail", "show all there is about the selected row"),
    Action("view.zoom", ("z", "plus"), "zoom", "give the open pane the whole screen, or take it back"),
    Action("nav.down", ("j", "down"), "down", "next row"),
    Action("nav.up", ("k", "up"), "up", "previous row"),
    Action("nav.top", ("g", "home"), "top", "first row"),
    Action("nav.bottom", ("G", "end"), "bottom", "last row"),
    Action("nav.page_down", ("pagedown", "ctrl+d"), "page down", "a page on"),
    Action("nav.page_up", ("pageup", "ctrl+u"), "page up", "a page back"),
    Action("nav.left", ("left", "h"), "left", "columns to the left", panes=LISTS),
    Action("nav.right", ("right", "L"), "right", "columns to the right", panes=LISTS),
    Action("nav.back", ("escape",), "back", "close, then clear the filter, then the marks, then un-zoom"),
    Action("view.filter", ("slash",), "filter", "filter the rows", panes=(HISTORY,)),
    Action("app.commands", ("colon", "ctrl+p"), "command", "type a command"),
    Action("app.help", ("question_mark", "f1"), "keys", "the keys of this pane"),
    Action("app.log", ("at",), "log", "the command lines of everything done here"),
    Action("row.menu", ("full_stop",), "menu", "what can be done with this row, and why not"),
    Action("row.mark", ("space",), "mark", "mark the row, to compare", panes=(HISTORY,)),
    Action("item.add", ("a",), "add", "add a sweep or a run", "kerneldeck sweep config", changes=True),
    Action("item.run", ("n",), "run now", "run the objective once, as the files are", "kerneldeck run", True),
    Action("item.again", ("A",), "again", "run the selected candidate again",
           "kerneldeck sweep config --config", True, LISTS),
    Action("queue.pause", ("p",), "pause", "pause or resume: what runs goes on to its end",
           "kerneldeck sweep pause", True),
    Action("queue.later", ("J",), "later", "move the waiting candidate one place later",
           "kerneldeck sweep move --by 1", True, (QUEUE,)),
    Action("queue.sooner", ("K",), "sooner", "move the waiting candidate one place sooner",
           "kerneldeck sweep move --by -1", True, (QUEUE,)),
    Action("queue.cancel", ("x",), "cancel", "cancel the selected candidate or work",
           "kerneldeck sweep cancel", True, (QUEUE,)),
    Action("queue.stop", ("X",), "stop", "stop the whole sweep; what finished stays",
           "kerneldeck sweep stop", True),
    Action("final.verify", ("v",), "verify", "verify what the workspace holds, with the gate",
           "kerneldeck verify", True),
    Action("best.restore", ("R",), "restore", "write the best's files back into the workspace",
           "kerneldeck restore", True),
    Action("row.baseline", ("b",), "baseline", "compare all with the selected trial; once more: with none",
           "kerneldeck baseline", True, LISTS),
    Action("row.note", ("t",), "tag/note", "keep tags and a note with the selected trial", "kerneldeck note",
           True, LISTS),
    Action("hist.compare", ("c",), "compare", "compare the marked rows", panes=(HISTORY,)),
    Action("hist.diff", ("d",), "diff", "how the marked rows differ in files and knobs", panes=(HISTORY,)),
    Action("hist.modes", ("M",), "modes", "screening against deciding scores, and what nothing beats"),
    Action("hist.progress", ("B",), "best so far", "how the best came about, over time"),
    Action("row.log", ("l",), "log of trial", "what the selected trial wrote", panes=LISTS),
    Action("row.edit", ("e",), "edit", "edit the first mutable file in $EDITOR", "", True, (CONTEXT,)),
    Action("view.refresh", ("r",), "refresh", "look again; in Health: probe the target", "kerneldeck health"),
    Action("view.follow", ("f",), "follow", "keep what runs in view", panes=(QUEUE,)),
    Action("view.sort", ("o",), "sort", "sort by the next column", panes=(HISTORY,)),
    Action("view.reverse", ("O",), "reverse", "the other way round", panes=(HISTORY,)),
    Action("view.hide_bad", ("i",), "hide bad", "hide or show what failed", panes=LISTS),
    Action("row.copy", ("y",), "copy", "copy from the selected row", panes=LISTS),
    Action("view.save", ("s",), "save", "write what is shown to a file", panes=LISTS),
    Action("app.target", ("T",), "target", "choose where trials run", "kerneldeck target use"),
    Action("app.repaint", ("ctrl+l",), "repaint", "draw everything anew"),
    Action("app.detach", ("q", "ctrl+q"), "detach", "leave; nothing stops"),
)  # fmt: skip
BY_ID = {action.id: action for action in ACTIONS}
UNBINDABLE = ("app.detach",)
SURE_WAY_OUT = "q"

_FOOTERS = {
    CONTEXT: ("item.add", "final.verify", "best.restore"),
    HEALTH: ("view.refresh", "app.target", "item.add"),
    QUEUE: ("item.add", "queue.pause", "queue.cancel"),
    HISTORY: ("view.filter", "row.mark", "hist.compare"),
}


def footer_actions(pane: str) -> tuple[Action, ...]:
    """The pane's own three; the row adds panes, zoom, help and detach."""
    return tuple(BY_ID[name] for name in _FOOTERS[pane])
