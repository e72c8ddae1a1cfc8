"""What each action does, by its id."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sessions.host.snapshot import PAUSED
from tui.actions import PANES, QUEUE, Action
from tui.lines.queue import status_word
from tui.panes.lines_view import ScrolledLines
from tui.panes.queue_list import QueueList
from tui.plain import plain
from tui.probing import probe
from tui.queue_rows import RUNNING, WAITING, QueueRow
from tui.screens.confirm import Confirm, Question
from tui.screens.help import HelpScreen
from tui.screens.pages import LinesPage
from tui.screens.prompt import Prompt

if TYPE_CHECKING:
    from tui.app import KerneldeckApp

_SHORT_ID = 12
Handler = Callable[["KerneldeckApp"], Awaitable[None]]
_HANDLERS: dict[str, Handler] = {}


def handles(*ids: str) -> Callable[[Handler], Handler]:
    def keep(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(ids, handler))
        return handler

    return keep


async def do(app: KerneldeckApp, action: Action) -> None:
    """Carry the action out in the open pane."""
    if action.id.startswith("pane.") and action.id.removeprefix("pane.") in PANES:
        app.main.open_pane(action.id.removeprefix("pane."))
    elif action.id.startswith("nav.") and action.id != "nav.back":
        _move(app, action.id)
    elif action.id in _HANDLERS:
        await _HANDLERS[action.id](app)
    else:
        app.deck.say(f"{action.label}: not in this pane")


# Looking.


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
    if app.main.pane == "history" and table is not None:
        if table.view.words:
            table.filter("")
            return
        if table.clear_marks():
            return
    app.main.remove_class("zoomed")
    app.main.call_after_refresh(app.main.show)


def _move(app: KerneldeckApp, action_id: str) -> None:
    body, table = app.main.panes[app.main.pane].body, app.main.history.table
    what = action_id.removeprefix("nav.")
    if isinstance(body, QueueList):
        _move_queue(app, body, what)
    elif isinstance(body, ScrolledLines):
        height = max(1, body.size.height - 1)
        steps = {
            "down": 1,
            "up": -1,
            "page_down": height,
            "page_up": -height,
            "top": -1_000_000,
            "bottom": 1_000_000,
        }
        body.move(steps.get(what, 0))
    elif table is not None:
        table.follow = what == "top"
        {
            "down": lambda: table.move(1), "up": lambda: table.move(-1), "page_down": lambda: table.page(1),
            "page_up": lambda: table.page(-1), "top": lambda: table.move_to(0), "bottom": table.bottom,
        }.get(what, lambda: None)()  # fmt: skip


def _move_queue(app: KerneldeckApp, queue: QueueList, what: str) -> None:
    if what in ("left", "right"):
        queue.shift_columns(-1 if what == "left" else 1)
        return
    if app.deck.showing.follow:
        app.deck.show(follow=False)
    steps = {"down": 1, "up": -1, "page_down": queue.page, "page_up": -queue.page}
    if what in steps:
        queue.move(steps[what])
    else:
        queue.move_to(0 if what == "top" else queue.last)


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
    lines = app.deck.commands or ["nothing was done here yet: every action leaves its command line here"]
    app.push_screen(LinesPage("Command lines of this session", lines, app.paint, app.deck.showing.glyphs))


@handles("app.commands")
async def _commands(app: KerneldeckApp) -> None:
    app.push_screen(Prompt(app))


@handles("view.sort")
async def _sort(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.sort_next()


@handles("view.reverse")
async def _reverse(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.sort_reverse()


@handles("row.mark")
async def _mark(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.mark()


# Asking the host.


@handles("queue.pause")
async def _pause(app: KerneldeckApp) -> None:
    sweep = app.deck.showing.sweep
    assert sweep is not None
    if sweep.state == PAUSED:
        app.deck.control("kerneldeck sweep continue", f"resume sweep #{sweep.id}", "resume", sweep=sweep.id)
    else:
        app.deck.control("kerneldeck sweep pause", f"pause sweep #{sweep.id}", "pause", sweep=sweep.id)


@handles("queue.later")
async def _later(app: KerneldeckApp) -> None:
    _move_waiting(app, 1)


@handles("queue.sooner")
async def _sooner(app: KerneldeckApp) -> None:
    _move_waiting(app, -1)


def _move_waiting(app: KerneldeckApp, by: int) -> None:
    row = app.main.queue.selected
    if row is None or row.kind != WAITING:
        app.deck.say("move: only a waiting candidate can be moved; j and k select one")
        return
    app.deck.show(follow=False)
    short = row.candidate_id[:_SHORT_ID]
    app.deck.control(
        f"kerneldeck sweep move {short} --by {by}", f"move {short} {'later' if by > 0 else 'sooner'}", "move",
        candidate=row.candidate_id, by=by,
    )  # fmt: skip


@handles("queue.cancel")
async def _cancel(app: KerneldeckApp) -> None:
    row = app.main.queue.selected
    if row is None:
        app.deck.say("cancel: no row is selected")
    elif row.kind == WAITING:
        short = row.candidate_id[:_SHORT_ID]
        app.deck.control(
            f"kerneldeck sweep cancel {short}", f"cancel {short}", "cancel", candidate=row.candidate_id
        )
    elif row.kind == RUNNING:
        _cancel_running(app, row)
    elif row.work is not None:
        command = plain(row.work.command)
        app.deck.cancel(row.work.receipt, f"# cancelled: {command}", f"cancel {command}")
    else:
        status = status_word(row.trial.status) if row.trial else "ended"
        app.deck.say(f"cancel: that trial has ended ({status}); nothing to cancel")


def _cancel_running(app: KerneldeckApp, row: QueueRow) -> None:
    """Ask first: what a trial has done so far is lost."""
    showing = app.deck.showing
    trial, work, sweep = row.trial, row.work or showing.snapshot.work, showing.sweep
    named = f"trial #{trial.id}" if trial else plain(work.command if work else "the work")
    spent_s = showing.age_s(trial.started_s if trial else work.began_s if work else None) or 0.0
    in_sweep = (
        sweep is not None and sweep.running and trial is not None and trial.candidate_id == sweep.running
    )

    def cancel() -> None:
        if in_sweep and trial is not None:
            app.deck.control(
                "kerneldeck sweep cancel", f"cancel {named}", "cancel", candidate=trial.candidate_id
            )
        elif work is not None:
            app.deck.cancel(
                work.receipt, f"# cancelled: {plain(work.command)}", f"cancel {plain(work.command)}"
            )

    question = Question(
        f"Stop {named} on {plain(showing.target.name)}?", f"{spent_s:.0f} s of work are lost.",
        "Keep running", f"Stop {'the trial' if in_sweep else 'it'}",
    )  # fmt: skip
    app.push_screen(Confirm(question, app.paint, showing.glyphs), lambda yes: cancel() if yes else None)


@handles("queue.stop")
async def _stop(app: KerneldeckApp) -> None:
    showing = app.deck.showing
    sweep = showing.sweep
    assert sweep is not None
    name = f"sweep #{sweep.id}"
    question = Question(
        f"Stop {name} on {plain(showing.target.name)}?",
        f"{len(sweep.waiting)} waiting candidates are dropped; what finished stays in the history.",
        "Keep it running", f"Stop {name}",
    )  # fmt: skip

    def stop(yes: bool | None) -> None:
        if yes:
            app.deck.control("kerneldeck sweep stop", f"stop {name}", "stop", sweep=sweep.id)

    app.push_screen(Confirm(question, app.paint, showing.glyphs), stop)


@handles("final.verify")
async def _verify(app: KerneldeckApp) -> None:
    app.deck.submit("guarded_final_verify", {}, "kerneldeck verify")


@handles("item.run")
async def _run(app: KerneldeckApp) -> None:
    app.deck.submit("run_objective", {}, "kerneldeck run")


@handles("item.again")
async def _again(app: KerneldeckApp) -> None:
    row = app.main.queue.selected if app.main.pane == QUEUE else None
    trial = row.trial if row else None
    sweep = app.deck.showing.sweep
    if (
        row is not None
        and trial is not None
        and sweep is not None
        and not sweep.ended
        and trial.sweep_id == sweep.id
    ):
        short = trial.candidate_id[:_SHORT_ID]
        app.deck.control(
            f"kerneldeck sweep retry {short}", f"again {short}", "retry", candidate=trial.candidate_id
        )
    elif trial is not None and trial.overlay:
        config = json.dumps(dict(trial.overlay))
        app.deck.submit(
            "sweep_kernel_config",
            {"configs": [dict(trial.overlay)]},
            f"kerneldeck sweep config --config '{config}'",
        )
    else:
        app.deck.say("again: select a candidate that ended")


@handles("best.restore")
async def _restore(app: KerneldeckApp) -> None:
    workspace = app.deck.showing.workspace
    changed = ", ".join(plain(one) for one in workspace.changed_files) if workspace else ""
    question = Question(
        f"Write the best's files back into {plain(workspace.name) if workspace else 'the workspace'}?",
        f"It replaces {changed}; what is there now is kept." if changed else "The workspace has them already.",
        "Leave the files", "Restore the best",
    )  # fmt: skip

    def restore(yes: bool | None) -> None:
        if yes:
            app.deck.submit("restore_best_checkpoint", {}, "kerneldeck restore")

    app.push_screen(Confirm(question, app.paint, app.deck.showing.glyphs), restore)
