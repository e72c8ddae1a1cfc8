"""Setting the baseline and noting a trial by keys, while a sweep runs."""

from __future__ import annotations

from tests.cli.deck import Deck
from tests.host.hosting import rows
from tests.terminal.acting import PaneMaker, sweep_that_waits


def test_the_baseline_and_a_note_are_set_by_keys_while_a_sweep_runs(deck: Deck, pane: PaneMaker) -> None:
    sweep_that_waits(deck)
    app = pane()
    app.start()
    app.wait_for("RUN")
    app.press("4")
    app.wait_for(">       #2")
    app.press("j")
    app.wait_for(">       #1")
    app.press("b")
    shown = app.wait_for(lambda text: "baseline -" in text and "baseline #1" in text, "the baseline's column")
    assert shown.splitlines()[5].split()[-3:] == ["baseline", "verdict", "what"]
    app.press("t")
    app.wait_for("Tags and note of trial #1")
    app.type("base x,")
    app.wait_for("tags: 'x,' is no tag")
    app.press("BSpace", "Down")
    app.type("[b]as it came[/b]")
    app.wait_for("kerneldeck note 1 --tag base --tag x '[b]as it")
    app.press("Enter")
    app.wait_for("trial #1: [base x] [b]as it came[/b]")
    app.wait_for(lambda text: "[base x]" in text.splitlines()[7], "the mark in the row")
    app.press("Enter")
    app.wait_for(lambda text: "it is the baseline" in text and "[b]as it came[/b]" in text, "the details")
    app.press("Escape")
    app.wait_for("1-4 pane")
    app.press("/")
    app.wait_for("Enter filters")
    app.type("!tag:base", "Enter")
    shown = app.wait_for("filter: !tag:base (1)")
    assert "#1 " not in "".join(shown.splitlines()[6:20])
    app.press("Escape")
    app.wait_for("filter: none")
    app.press("G")
    app.wait_for(">       #1")
    app.press("b")
    app.wait_for("trial #1 is no baseline any more")
    assert rows(deck.root, "SELECT trial_id FROM baselines") == [(1,), (None,)]
    assert rows(deck.root, "SELECT COUNT(*) FROM trials WHERE status IS NULL") == [(1,)]
