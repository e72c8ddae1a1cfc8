"""Where no screen can be drawn, or nothing can be shown on it, a sentence says so and what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.deck import Deck, kerneldeck
from tests.host.hosting import end_host
from tests.terminal.acting import PaneMaker
from tests.terminal.pty_app import PtyApp
from tests.terminal.tmux import APP, PROMPT


def refused(environment: dict[str, str], cwd: Path, *words: str, **changes: str) -> tuple[int, str]:
    """The exit code of the app on a terminal, and all that it wrote."""
    with PtyApp([*APP, *words], {**environment, **changes}, str(cwd)) as app:
        code = app.wait()
        return code, app.written.decode("utf-8", "replace").replace("\r\n", "\n")


@pytest.mark.parametrize("words", [[], ["tui"]])
def test_without_a_terminal_nothing_is_drawn(deck: Deck, words: list[str]) -> None:
    done = kerneldeck(*words, cwd=deck.root)
    assert "\x1b" not in done.said
    if words:
        assert done.code == 2 and "needs a terminal" in done.err and "watch --plain" in done.err
    else:
        assert done.out.startswith("Usage: kerneldeck")


def test_a_dumb_terminal_is_told_of_the_plain_lines(deck: Deck, surroundings: dict[str, str]) -> None:
    code, said = refused(surroundings, deck.root, TERM="dumb")
    assert code == 2 and "TERM=dumb" in said and "kerneldeck watch --plain" in said


def test_outside_a_workspace_init_and_the_templates_are_offered(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    code, said = refused(surroundings, tmp_path)
    assert code == 2 and "is no workspace" in said
    assert "kerneldeck init" in said and "cpu_rmsnorm" in said and "tensor_plan" in said


def test_a_bare_kerneldeck_on_a_terminal_is_the_app(deck: Deck, pane: PaneMaker) -> None:
    screen = pane()
    screen.type(f"clear; {APP[0]} -m kerneldeck", "Enter")
    screen.wait_for("sums idle")
    assert screen.state("alternate_on") == "1"
    screen.press("q")
    screen.wait_for(PROMPT)
    assert screen.state("alternate_on") == "0"


def test_a_newer_history_is_refused_with_its_sentence(deck: Deck, surroundings: dict[str, str]) -> None:
    deck.run("run")
    end_host(deck.root)
    database = sqlite3.connect(deck.root / ".kerneldeck/state.sqlite3")
    database.execute("PRAGMA user_version = 999")
    database.close()
    code, said = refused(surroundings, deck.root)
    assert code == 2 and "schema version 999" in said and "update Kerneldeck" in said
    assert said.index("\x1b[?1049l") < said.index("kerneldeck: the state of record")


def test_a_broken_toml_is_refused_with_its_line(deck: Deck, surroundings: dict[str, str]) -> None:
    deck.write("kerneldeck.toml", deck.read("kerneldeck.toml").replace("schema = 1", "schema = ["))
    code, said = refused(surroundings, deck.root)
    assert code == 2 and "kerneldeck.toml" in said and "Traceback" not in said


def test_a_workspace_that_is_deleted_under_the_app_is_told_on_the_screen(deck: Deck, pane: PaneMaker) -> None:
    screen = pane(cwd=deck.root.parent)
    screen.start("-C", str(deck.root))
    screen.wait_for("sums idle")
    for file in ("kerneldeck.toml", "benchmark.sh"):
        (deck.root / file).unlink()
    assert "Traceback" not in screen.wait_for("BAD")
    assert screen.state("alternate_on") == "1", "the app goes on"
    deck.write("benchmark.sh", "")
    screen.press("q")
    screen.wait_for(PROMPT)
