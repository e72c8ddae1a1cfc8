"""The app, its guard and its host are killed one by one: nothing is lost, and the terminal stays sane."""

from __future__ import annotations

import os
import shlex
import signal
import sys

from tests.cli.deck import Deck, wait_until
from tests.host.hosting import holder, host_pid, kill, rows
from tests.terminal.acting import PaneMaker, app_pids, sweep_that_waits
from tests.terminal.tmux import PROMPT


def test_a_killed_app_leaves_the_terminal_sane_and_the_sweep_running(deck: Deck, pane: PaneMaker) -> None:
    go_on = sweep_that_waits(deck)
    screen = pane()
    screen.start()
    screen.wait_for("sums#01 RUN")
    kill(app_pids(deck)[-1])
    said = screen.wait_for(PROMPT)
    assert "the app was ended by SIGKILL" in said and "kerneldeck tui" in said
    assert screen.state("alternate_on") == "0" and screen.state("cursor_flag") == "1"
    screen.type("stty -a | tr ';' '\\n' | grep -c ' icanon'", "Enter")
    screen.wait_for(lambda text: "\n1\n" in text, "a terminal in its usual mode")
    go_on.touch()
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("done",)], "the sweep's end")


def test_the_app_leaves_when_the_process_above_it_is_killed(deck: Deck, pane: PaneMaker) -> None:
    screen = pane()
    screen.start()
    screen.wait_for("sums idle")
    host = host_pid(deck.root)
    kill(app_pids(deck)[0])
    wait_until(lambda: app_pids(deck) == [], "the app's end")
    assert host_pid(deck.root) == host, "the host stays"


def test_a_killed_host_is_followed_by_another_that_goes_on(deck: Deck, pane: PaneMaker) -> None:
    go_on = sweep_that_waits(deck)
    screen = pane()
    screen.start()
    screen.wait_for("sums#01 RUN")
    before = host_pid(deck.root)
    kill(before)
    screen.wait_for("connected again")
    assert host_pid(deck.root) != before
    go_on.touch()
    screen.wait_for("sums#01 DONE 8/8")
    counted = rows(deck.root, "SELECT COUNT(*) FROM trials WHERE purpose = 'screen' AND status = 'ok'")
    assert counted == [(8,)]


def test_a_host_that_was_stopped_is_started_again_only_when_asked(deck: Deck, pane: PaneMaker) -> None:
    screen = pane()
    screen.start()
    screen.wait_for("sums idle")
    deck.run("host", "stop")
    screen.wait_for("host ended")
    assert holder(deck.root) is None
    screen.press("r")
    screen.wait_for(lambda text: "sums idle" in text and "host ended" not in text, "another host")
    assert host_pid(deck.root)


def test_ctrl_c_and_a_hangup_stop_nothing(deck: Deck, pane: PaneMaker) -> None:
    go_on = sweep_that_waits(deck)
    screen = pane()
    screen.start()
    screen.wait_for("sums#01 RUN")
    host = host_pid(deck.root)
    screen.press("C-c")
    screen.wait_for("nothing was stopped")
    os.kill(app_pids(deck)[0], signal.SIGHUP)
    screen.wait_for(PROMPT)
    assert host_pid(deck.root) == host
    go_on.touch()
    wait_until(lambda: rows(deck.root, "SELECT state FROM sweeps") == [("done",)], "the sweep's end")


def test_an_app_that_cannot_draw_says_so_and_shows_no_trace(deck: Deck, pane: PaneMaker) -> None:
    """What ends the app is a sentence, and its trace lies in a file."""
    broken = (
        "import sys, kerneldeck.cli, tui.lines.frame as frame; frame.last_line = lambda *_: 1 / 0; "
        "sys.exit(kerneldeck.cli.run(['tui']))"
    )
    screen = pane(size=(80, 40), TMPDIR=str(deck.root.parent))
    screen.type("clear; " + shlex.join([sys.executable, "-c", broken]), "Enter")
    said = screen.wait_for(lambda text: PROMPT in text and "kerneldeck: the app failed" in text)
    assert "ZeroDivisionError" in said and "to see it again: kerneldeck tui" in said
    assert "Traceback" not in said and "locals" not in said
    assert screen.state("alternate_on") == "0" and screen.state("cursor_flag") == "1"
    assert "last_line" in next(deck.root.parent.glob("kerneldeck-fault-*.txt")).read_text()
