"""Actions that ask for options first."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from core.workspace.config import WorkspaceConfig
from tui.doing.registry import handles
from tui.forms.form import Asked, FormScreen
from tui.forms.options import run_form, verify_form
from tui.forms.sweep import SweepForm, Typical
from tui.forms.targets import TargetChooser
from tui.plain import plain
from tui.probing import asked, checked
from tui.showing import Probe

if TYPE_CHECKING:
    from tui.app import KerneldeckApp


def _config(app: KerneldeckApp, what: str) -> WorkspaceConfig | None:
    facts = app.deck.showing.facts
    if facts.config is None:
        app.deck.say(f"{what}: the workspace cannot be read: {facts.fault}")
    return facts.config


def _ask(app: KerneldeckApp, form: FormScreen) -> None:
    """Open the form, and hand over to the host what it ends with."""

    def ended(answer: Asked | None) -> None:
        if answer is not None:
            app.deck.submit(answer.operation, answer.arguments, answer.command)

    app.push_screen(form, ended)


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


@handles("app.target")
async def _target(app: KerneldeckApp) -> None:
    app.begin(_choose_target(app))


async def _choose_target(app: KerneldeckApp) -> None:
    root, showing = app.deck.record.root, app.deck.showing
    listing = await asked(root, "target", "list")
    if "error" in listing:
        app.deck.say(f"target: {listing['error']['sentence']}")
        return

    async def check(name: str) -> Probe:
        return await checked(root, name)

    def chosen(name: str | None) -> None:
        if name:
            app.begin(_use_target(app, name))

    chooser = TargetChooser(listing, check, app.paint, showing.glyphs, readonly=showing.readonly)
    app.push_screen(chooser, chosen)


async def _use_target(app: KerneldeckApp, name: str) -> None:
    app.deck.log(f"kerneldeck target use {shlex.quote(name)}")
    answer = await asked(app.deck.record.root, "target", "use", name)
    fault = answer.get("error")
    app.deck.say(f"target: {fault['sentence']}" if fault else f"trials run on {plain(name)} from now on")
