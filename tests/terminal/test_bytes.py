"""What the app writes to its terminal, counted: nothing while nothing changes."""

from __future__ import annotations

from collections.abc import Callable

from tests.cli.deck import Deck, wait_until
from tests.host.hosting import rows
from tests.terminal.acting import sweep_that_waits
from tests.terminal.pty_app import PtyApp
from tests.terminal.tmux import APP

IDLE_S = 4.0
CLOCK_BYTES = 800  # the pinned row, once a second


def seen(text: str):  # type: ignore[no-untyped-def]
    return lambda written: text.encode() in written


def test_idle_sends_nothing(deck: Deck, surroundings: dict[str, str]) -> None:
    deck.run("run")
    with PtyApp(APP, surroundings, str(deck.root)) as app:
        app.read_until(seen("best none yet"))
        app.read_until(seen("1 runs"))
        assert rests(app, lambda sent: sent == 0)
        app.press("q")
        assert app.wait() == 0


def test_while_a_trial_runs_on_only_the_clock_is_sent(deck: Deck, surroundings: dict[str, str]) -> None:
    go_on = sweep_that_waits(deck)
    with PtyApp(APP, surroundings, str(deck.root)) as app:
        app.read_until(seen("RUN"))
        assert rests(app, lambda sent: 0 < sent < CLOCK_BYTES * IDLE_S)
        app.press("q")
        assert app.wait() == 0
    go_on.touch()
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("done",)], "the sweep's end")


def rests(app: PtyApp, so: Callable[[int], bool]) -> bool:
    """Whether so many bytes come in a while, once the first pictures are all there."""
    return any(so(app.read_for(IDLE_S)) for _ in range(15))
