"""Actions that keep something with a record: the baseline, tags and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.doing.reading import selected_trial
from tui.doing.registry import handles
from tui.forms.form import Asked
from tui.forms.note import NoteForm

if TYPE_CHECKING:
    from tui.app import KerneldeckApp


@handles("row.baseline")
async def _baseline(app: KerneldeckApp) -> None:
    trial = selected_trial(app)
    if trial is None:
        app.deck.say("baseline: select a trial that has a score")
        return
    workspace = app.deck.showing.workspace
    if workspace is not None and workspace.baseline == trial:
        app.deck.annotate("set_baseline", {"clear": True}, "kerneldeck baseline --clear", "no baseline")
    else:
        app.deck.annotate(
            "set_baseline", {"record": str(trial)}, f"kerneldeck baseline {trial}", f"baseline #{trial}"
        )


@handles("row.note")
async def _note(app: KerneldeckApp) -> None:
    trial, reader = selected_trial(app), app.main.history.reader
    if trial is None or reader is None:
        app.deck.say("tag/note: select a trial")
        return

    def ended(asked: Asked | None) -> None:
        if asked is not None:
            app.deck.annotate(asked.operation, asked.arguments, asked.command, f"note on #{trial}")

    form = NoteForm(trial, reader.store.note(trial), app.paint, app.deck.showing.glyphs)
    app.push_screen(form, ended)
