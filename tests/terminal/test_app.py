"""The app as a person has it: in a tmux pane, with keys."""

from __future__ import annotations

from tests.cli.deck import Deck, wait_until
from tests.host.hosting import rows
from tests.terminal.acting import PaneMaker, app_pids, sweep_that_waits, waiting_sweep
from tests.terminal.tmux import PROMPT


def test_a_sweep_is_started_watched_left_and_found_again(deck: Deck, pane: PaneMaker) -> None:
    reached, go_on = waiting_sweep(deck)
    screen = pane()
    screen.start()
    screen.wait_for("sums idle")
    assert screen.wait_for("Nothing ran").splitlines()[-1].strip().endswith("q detach")
    screen.press("a")
    screen.wait_for("New sweep of sums")
    screen.press("Enter")
    screen.wait_for("sums#01 RUN")
    wait_until(reached.exists, "the trial that waits")
    shown = screen.wait_for("RUN       #")
    assert "[3]Queue" in shown and " 1 Context" in shown and " 2 Health" in shown and " 4 History" in shown

    screen.press("q")
    left = screen.wait_for(PROMPT)
    assert "sweep #1 goes on" in left and "kerneldeck tui" in left
    assert screen.state("alternate_on") == "0" and screen.state("cursor_flag") == "1"
    assert app_pids(deck) == []

    screen.start()
    screen.wait_for("sums#01 RUN")
    go_on.touch()
    screen.wait_for("sums#01 DONE 8/8")
    assert rows(deck.root, "SELECT state FROM sweeps") == [("done",)]


def test_pausing_moving_cancelling_and_stopping_reach_the_sweep(deck: Deck, pane: PaneMaker) -> None:
    sweep_that_waits(deck)
    screen = pane()
    screen.start()
    screen.wait_for("sums#01 RUN")
    screen.press("p")
    screen.wait_for("PAUSED by tui")
    assert "p resume" in screen.text()
    screen.press("p")
    screen.wait_for("sums#01 RUN")
    screen.press("x")
    question = screen.wait_for("Stop trial #")
    assert "Keep running" in question and "Stop the trial" in question
    screen.press("Enter")  # the safe answer is chosen at first
    screen.wait_for(lambda text: "Keep running" not in text)
    screen.press("j", "x")
    screen.wait_for("1 cancelled")
    screen.press("X")
    screen.wait_for("waiting candidates are dropped")
    screen.press("y")
    screen.wait_for("sums#01 STOPPED")
    assert rows(deck.root, "SELECT state FROM sweeps") == [("stopped",)]
    screen.press("@")
    log = screen.wait_for("Command lines of this session")
    for command in ("sweep pause", "sweep continue", "sweep cancel", "sweep stop"):
        assert f"kerneldeck {command}" in log


def test_resizing_changes_the_layout_and_keeps_what_is_selected(deck: Deck, pane: PaneMaker) -> None:
    deck.run("sweep", "config")
    screen = pane(size=(150, 40), COLUMNS="80", LINES="24")  # exported by some shells, and stale
    screen.start()
    shown = screen.wait_for(lambda text: "#10 " in text and "Trial #" in text)
    assert "objective" in shown and "against best" in shown  # all areas at once
    screen.press("g", "j")
    screen.wait_for("> OK        #2 ")
    screen.resize(39, 11)
    screen.wait_for("39x11, needs 40x12")
    screen.resize(55, 14)
    screen.wait_for("> OK        #2 ")
    screen.resize(150, 40)
    screen.wait_for(lambda text: "> OK        #2 " in text and "objective" in text)
    screen.resize(39, 11)
    screen.wait_for("needs 40x12")
    screen.press("q")
    screen.wait_for(PROMPT)


def test_two_apps_one_of_which_only_reads(deck: Deck, pane: PaneMaker) -> None:
    go_on = sweep_that_waits(deck)
    acting, reading = pane(), pane()
    acting.start()
    reading.start("--readonly")
    reading.wait_for("reads only")
    acting.wait_for("sums#01 RUN")
    reading.press("p")
    reading.wait_for("this app only reads")
    acting.press("p")
    reading.wait_for("PAUSED by tui")
    acting.press("p")
    reading.wait_for("sums#01 RUN")
    reading.press("q")
    reading.wait_for(PROMPT)
    go_on.touch()
    acting.wait_for("sums#01 DONE 8/8")
    paused_by = "SELECT json_extract(event, '$.actor') FROM sweep_events WHERE event LIKE '%Pause%'"
    assert rows(deck.root, paused_by) == [("tui",)], "once, by the one that acts"
