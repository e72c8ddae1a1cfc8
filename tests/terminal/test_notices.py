"""Notices as a terminal gets them: off, the bell, and tmux's own message line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.deck import Deck
from tests.terminal.acting import PaneMaker, sweep_that_waits
from tests.terminal.pty_app import PtyApp
from tests.terminal.tmux import APP


def ask_for(surroundings: dict[str, str], how: str) -> None:
    settings = Path(surroundings["XDG_CONFIG_HOME"]) / "kerneldeck/tui.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'notify = "{how}"\n')


def bells(written: bytes) -> int:
    """How often the bell rang; some sequences end with the same byte."""
    return re.sub(rb"\x1b\][^\a]*\a", b"", written).count(b"\a")


@pytest.mark.parametrize("how", ["", "bell"])
def test_the_bell_rings_when_a_sweep_ends_only_if_asked_for(
    deck: Deck, surroundings: dict[str, str], how: str
) -> None:
    ask_for(surroundings, how)
    go_on = sweep_that_waits(deck)
    with PtyApp(APP, surroundings, str(deck.root)) as app:
        app.read_until(lambda written: b"RUN" in written)
        assert bells(bytes(app.written)) == 0
        go_on.touch()
        app.read_until(lambda written: b"DONE" in written)
        app.press("q")
        assert app.wait() == 0
        assert bells(bytes(app.written)) == (1 if how else 0)


def test_tmux_shows_the_notice_to_whoever_is_attached(
    deck: Deck, surroundings: dict[str, str], pane: PaneMaker
) -> None:
    ask_for(surroundings, "tmux")
    go_on = sweep_that_waits(deck)
    screen = pane()
    told_by = {"TMUX": screen.state("socket_path") + ",1,0", "TMUX_PANE": screen.state("pane_id")}
    screen.type(" ".join(f"export {name}={value};" for name, value in told_by.items()), "Enter")
    attach = ("tmux", "-S", screen.state("socket_path"), "attach")
    with PtyApp(attach, {**surroundings, "TERM": "xterm-256color"}, str(deck.root), (80, 24)) as client:
        screen.start()
        client.read_until(lambda written: b"RUN" in written)
        screen.press("4")  # the notice is seen whatever the app shows
        assert b"DONE" not in client.written
        go_on.touch()
        client.read_until(lambda written: b"sums sweep #1 DONE: 8 of 8 screened" in written)
        screen.press("q")
