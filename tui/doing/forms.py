"""Actions that ask for options first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.workspace.config import WorkspaceConfig
from tui.doing.registry import handles
from tui.forms.form import Asked, FormScreen
from tui.forms.options import run_form, verify_form
from tui.forms.sweep import SweepForm, Typical

if TYPE_CHECKING:
    from tui.app import KerneldeckApp


def _config(app: KerneldeckApp, what: str) -> WorkspaceConfig | None:
    facts = app.deck.showing.facts
    if facts.config is None:
        app.deck.say(f"{what}: the workspace cannot be read: {facts.fault}")
    return facts.config


def _ask(app: KerneldeckApp, form: FormScreen) -> None:
    """Open the form, and hand over to the host what it ends with."""

    def asked(answer: Asked | None) -> None:
        if answer is not None:
            app.deck.submit(answer.operation, answer.arguments, answer.command)

    app.push_screen(form, asked)


@handles("item.add")
async def _add(app: KerneldeckApp) -> None:
    config = _config(app, "add")
    if config is None:
        return
    if not config.knobs:
        app.deck.say("add: kerneldeck.toml declares no knobs to sweep; run the files as they are instead")
        return
    showing = app.deck.showing
    typical = Typical.of(app.main.history.reader)
    _ask(app, SweepForm(config, showing.facts.current, typical, app.paint, showing.glyphs))


@handles("item.run")
async def _run(app: KerneldeckApp) -> None:
    if (config := _config(app, "run")) is not None:
        _ask(app, run_form(tuple(config.modes), app.paint, app.deck.showing.glyphs))


@handles("final.verify")
async def _verify(app: KerneldeckApp) -> None:
    if (config := _config(app, "verify")) is not None:
        _ask(app, verify_form(tuple(config.modes), app.paint, app.deck.showing.glyphs))
