"""From a shell to the app and back: refusals before it, the terminal as it was after it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConfigFault, UsageFault
from tui.environment import depth_of, settle, tick_s, wants_ascii
from tui.guardian import guarded

if TYPE_CHECKING:
    from sessions.host.snapshot import Snapshot


def run_app(
    start: Path,
    *,
    readonly: bool = False,
    mouse: bool | None = None,
    ascii_glyphs: bool | None = None,
    theme: str = "",
) -> int:
    """Show the workspace at or above `start` until the person leaves; the exit code.

    UsageFault: this is no terminal that a screen can be drawn on. ConfigFault: no workspace there.
    """
    refuse_terminal()
    root = _workspace(start)
    return guarded(lambda: _run(root, readonly, mouse, ascii_glyphs, theme))


def _workspace(start: Path) -> Path:
    """The workspace's folder; where there is none, what makes one is offered."""
    from core.workspace.finding import NoWorkspace, find_workspace

    try:
        return find_workspace(start)
    except NoWorkspace as fault:
        from core.workspace.templates import template_names  # a tenth of a second

        names = " or ".join(template_names())
        shipped = f"or begin with a shipped one: kerneldeck init FOLDER --template {names}"
        raise ConfigFault(fault.sentence, f"{fault.hint}\n  {shipped}") from None


def refuse_terminal() -> None:
    """UsageFault, with what to run instead, where no screen can be drawn."""
    instead = "follow line by line instead: kerneldeck watch --plain"
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        names = ("input", "output", "error output")
        streams = zip(names, (sys.stdin, sys.stdout, sys.stderr), strict=True)
        which = next(name for name, stream in streams if not stream.isatty())
        raise UsageFault(f"the app needs a terminal, and its {which} is none", instead)
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageFault("the app cannot draw on a terminal that says TERM=dumb", instead)


def _run(root: Path, readonly: bool, mouse: bool | None, ascii_glyphs: bool | None, theme: str) -> int:
    depth = depth_of(os.environ)
    settle(os.environ, depth)
    gc.disable()  # a seventh of the time to the first picture, and what is imported is no garbage
    from tui.app import KerneldeckApp
    from tui.connection import Connection
    from tui.deck import Deck
    from tui.glyphs import glyphs_of
    from tui.keymap import keymap_of
    from tui.paint import paint_of
    from tui.record import Record
    from tui.settings import read_settings

    settings = read_settings(os.environ)
    keymap = keymap_of(settings.keymap)
    wanted = settings.ascii if ascii_glyphs is None else ascii_glyphs
    glyphs = glyphs_of(wants_ascii(os.environ) if wanted is None else wanted)
    paint = paint_of(theme or settings.theme, depth)

    async def connect() -> Connection:
        from sessions.host.client import HostClient

        return await HostClient.connect(
            root, actor="tui", command="kerneldeck", readonly=readonly, ask=deck.host_key
        )

    deck = Deck(Record(root), connect, glyphs, readonly, tick_s(os.environ))
    faults = (*settings.faults, *keymap.faults)
    deck.showing = replace(deck.showing, banner=_banner(faults))
    app = KerneldeckApp(deck, paint, keymap, settings.notify)
    app.stands = _collect_what_comes
    code = app.run(mouse=settings.mouse if mouse is None else mouse)
    if app.fault is not None:
        raise app.fault
    if deck.lost_at_start is not None:
        raise deck.lost_at_start
    _say_goodbye(deck.showing.snapshot)
    return code or 0


def _collect_what_comes() -> None:
    """Collect garbage, but never look again through what was imported: a key would wait for that."""
    gc.freeze()
    gc.enable()


def _banner(faults: Sequence[str]) -> str:
    """The first fault of the person's settings, and how many more there are."""
    if not faults:
        return ""
    return faults[0] + (f" (and {len(faults) - 1} more)" if len(faults) > 1 else "")


def _say_goodbye(snapshot: Snapshot) -> None:
    """What goes on without the app, and how to see it again."""
    sweep, work = snapshot.sweep, snapshot.work
    what = f"sweep #{sweep.id}" if sweep is not None and not sweep.ended else work.command if work else ""
    if what:
        with suppress(OSError):  # a terminal that was closed
            print(
                f"{what} goes on; to see it again: kerneldeck tui, or line by line: kerneldeck attach",
                flush=True,
            )
