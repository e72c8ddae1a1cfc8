"""Terminals of other kinds: fewer colours or none, ASCII alone, settings that cannot be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.deck import Deck
from tests.terminal.acting import PaneMaker
from tests.terminal.tmux import PROMPT

INDEXED, TRUECOLOR, SIXTEEN = (
    r"\x1b\[[0-9;]*38;5;",
    r"\x1b\[[0-9;]*38;2;",
    r"\x1b\[(?:\d+;)*(?:3|9)[0-7](?:;\d+)*m",
)


@pytest.mark.parametrize(
    ("changes", "has", "has_not"),
    [
        ({"TERM": "tmux-256color"}, [INDEXED], [TRUECOLOR]),
        ({"TERM": "screen"}, [SIXTEEN], [INDEXED, TRUECOLOR]),
        ({"TERM": "xterm"}, [SIXTEEN], [INDEXED, TRUECOLOR]),
        ({"TERM": "tmux-256color", "NO_COLOR": "1"}, [], [INDEXED, TRUECOLOR, SIXTEEN]),
    ],
    ids=["256", "screen", "xterm", "no-colour"],
)
def test_colours_are_as_many_as_the_terminal_has(
    deck: Deck, pane: PaneMaker, changes: dict[str, str], has: list[str], has_not: list[str]
) -> None:
    deck.run("run")
    screen = pane(**changes)
    screen.start()
    screen.wait_for("#1 ")
    painted = screen.text(colours=True)
    assert all(re.search(one, painted) for one in has), painted
    assert not any(re.search(one, painted) for one in has_not), painted
    assert "OK" in screen.text()


def test_an_ascii_terminal_gets_ascii(deck: Deck, pane: PaneMaker) -> None:
    deck.run("sweep", "config")
    screen = pane(size=(150, 40), LC_ALL="C")
    screen.start()
    screen.wait_for("#10 ")
    for key, shows in (("?", "Keys of Queue"), ("q", "#10 "), ("R", "Restore the best"), ("n", "#10 "),
                       ("a", "New sweep"), ("Escape", "#10 "), ("Enter", "Configuration")):  # fmt: skip
        screen.press(key)
        assert screen.wait_for(shows).isascii()


def test_faults_of_the_settings_are_told_and_the_defaults_used(
    deck: Deck, pane: PaneMaker, surroundings: dict[str, str]
) -> None:
    settings = Path(surroundings["XDG_CONFIG_HOME"]) / "kerneldeck/tui.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('theme = "blue"\n[keymap]\n"queue.pause" = "P"\n"app.detach" = "ctrl+b"\n')
    screen = pane()
    screen.start()
    shown = screen.wait_for("sums idle")
    assert "theme 'blue' is not one of" in shown and "(and 1 more)" in shown
    assert "P pause" in shown
    screen.press("q")
    screen.wait_for(PROMPT)
