"""Actions that ask the host for something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sessions.host.snapshot import PAUSED
from tui.actions import QUEUE
from tui.doing.registry import handles
from tui.lines.queue import status_word
from tui.plain import plain
from tui.queue_rows import RUNNING, WAITING, QueueRow
from tui.screens.confirm import Confirm, Question

if TYPE_CHECKING:
    from tui.app import KerneldeckApp

_SHORT_ID = 12


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
        f"It replaces {changed}; what is there now is kept." if changed else "They are there already.",
        "Leave the files", "Restore the best",
    )  # fmt: skip

    def restore(yes: bool | None) -> None:
        if yes:
            app.deck.submit("restore_best_checkpoint", {}, "kerneldeck restore")

    app.push_screen(Confirm(question, app.paint, app.deck.showing.glyphs), restore)
