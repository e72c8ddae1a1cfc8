"""A host that was stopped, and cannot be started again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sessions.schema import MIGRATIONS
from tests.cli.deck import Deck
from tests.terminal.acting import PaneMaker


def test_why_no_other_host_can_be_started_is_told(deck: Deck, pane: PaneMaker) -> None:
    screen = pane(size=(150, 40))
    screen.start()
    screen.wait_for("sums idle")
    deck.run("host", "stop")
    screen.wait_for("r starts it again")
    with closing(sqlite3.connect(deck.root / ".kerneldeck/state.sqlite3")) as state:
        state.execute("PRAGMA user_version = 999")
    screen.press("r")
    assert "r starts it again" not in screen.wait_for("has schema version 999").splitlines()[-2]
    with closing(sqlite3.connect(deck.root / ".kerneldeck/state.sqlite3")) as state:
        state.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    screen.press("r")
    assert "schema version" not in screen.wait_for("connected again")
