"""Actions that show what is behind a row, or hand it to something else."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from tui.actions import CONTEXT, HISTORY, QUEUE
from tui.details.subject import (
    CheckpointSubject,
    CompareSubject,
    DiffSubject,
    ParetoSubject,
    ProgressSubject,
    Subject,
    TrialSubject,
)
from tui.details.view import DetailPage
from tui.doing.registry import handles
from tui.forms.copy_menu import CopyMenu
from tui.plain import plain

if TYPE_CHECKING:
    from tui.app import KerneldeckApp


def selected_trial(app: KerneldeckApp) -> int | None:
    """The trial of the selected row; None where the row has none (yet)."""
    if app.main.pane == HISTORY:
        table = app.main.history.table
        return table.current_id if table is not None else None
    row = app.main.queue.selected
    return row.trial.id if row is not None and row.trial is not None else None


def subject_of(app: KerneldeckApp) -> Subject | None:
    """What the details are of: the selected trial, in Context the best."""
    if app.main.pane == CONTEXT:
        return CheckpointSubject()
    trial = selected_trial(app)
    return None if trial is None else TrialSubject(trial)


@handles("row.open", "row.log")
async def _open(app: KerneldeckApp) -> None:
    subject = subject_of(app)
    if subject is None:
        waits = "it waits, and has no result yet" if app.main.pane == QUEUE else "nothing is selected"
        app.deck.say(f"detail: {waits}")
        return
    show_details(app, subject)


def show_details(app: KerneldeckApp, subject: Subject) -> None:
    reader = app.main.history.reader
    if reader is None:
        runs = app.deck.showing.history.runs
        app.deck.say(f"detail: {'the history is not read yet' if runs else 'no runs are recorded yet'}")
        return
    app.push_screen(DetailPage(subject, reader, app.paint, app.deck.showing.glyphs))


@handles("row.mark")
async def _mark(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.mark()


@handles("hist.compare")
async def _compare(app: KerneldeckApp) -> None:
    table = app.main.history.table
    if table is None:
        app.deck.say("compare: there are no runs yet")
    elif chosen := table.compared():
        show_details(app, CompareSubject(chosen))


@handles("hist.diff")
async def _diff(app: KerneldeckApp) -> None:
    table = app.main.history.table
    marked = tuple(table.marked)[:2] if table is not None else ()
    trial = selected_trial(app)
    if not marked and trial is None:
        app.deck.say("diff: select a row, or mark two with Space")
        return
    show_details(app, DiffSubject(marked or (trial or 0,)))


@handles("hist.modes")
async def _modes(app: KerneldeckApp) -> None:
    show_details(app, ParetoSubject())


@handles("hist.progress")
async def _progress(app: KerneldeckApp) -> None:
    show_details(app, ProgressSubject())


@handles("view.sort")
async def _sort(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.sort_next()


@handles("view.reverse")
async def _reverse(app: KerneldeckApp) -> None:
    if app.main.history.table is not None:
        app.main.history.table.sort_reverse()


@handles("row.copy", "view.save")
async def _copy(app: KerneldeckApp) -> None:
    reader, table = app.main.history.reader, app.main.history.table
    if reader is None or table is None:
        app.deck.say("copy: no runs are recorded yet")
        return
    trial = selected_trial(app)
    row = next(iter(reader.rows([trial])), None) if trial is not None else None

    def told(sentence: str | None) -> None:
        if sentence:
            app.deck.say(sentence)

    app.push_screen(CopyMenu(reader, table.view, row, app.paint, app.deck.showing.glyphs), told)


@handles("row.edit")
async def _edit(app: KerneldeckApp) -> None:
    config = app.deck.showing.facts.config
    if config is None or not config.files.mutable:
        app.deck.say("edit: the workspace names no mutable file")
        return
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    path = app.deck.record.root / config.files.mutable[0]
    try:
        with app.suspend():
            await asyncio.to_thread(subprocess.run, [*shlex.split(editor), str(path)], check=False)
    except (OSError, ValueError) as error:
        app.deck.say(f"edit: {plain(editor)} cannot be started: {plain(error)}")
        return
    app.deck.say(f"{plain(config.files.mutable[0])} was open in {plain(editor)}")
