"""A terminal that is closed under the app: a lost connection, a window that is shut."""

from __future__ import annotations

from tests.cli.deck import Deck, wait_until
from tests.host.hosting import rows
from tests.terminal.acting import PaneMaker, app_pids, sweep_that_waits


def test_a_terminal_that_is_closed_ends_the_app_and_is_no_fault(deck: Deck, pane: PaneMaker) -> None:
    go_on = sweep_that_waits(deck)
    screen = pane(TMPDIR=str(deck.root.parent))
    screen.start()
    screen.wait_for("sums#01 RUN")
    screen.tmux("kill-server")
    wait_until(lambda: app_pids(deck) == [], "the app's end")
    assert list(deck.root.parent.glob("kerneldeck-fault-*")) == [], "a goodbye that nobody hears is no fault"
    go_on.touch()
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("done",)], "the sweep's end")
