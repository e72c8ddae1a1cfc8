"""What the app reads of the state of record."""

from __future__ import annotations

from pathlib import Path

from sessions.host.looking import Looker
from sessions.session import hold_workspace
from tests.cli.deck import configured
from tui.record import Record


def test_a_candidate_s_knobs_are_what_it_ran_with_and_not_what_the_file_says_now(tmp_path: Path) -> None:
    deck = configured(tmp_path / "knobs")
    before = Record(deck.root).facts().current
    candidate = deck.json("run")["candidate"]
    changed = {name: f"{value}0" if isinstance(value, str) else value + 1 for name, value in before.items()}
    deck.config(**changed)
    record = Record(deck.root)
    try:
        assert record.facts().current == changed != before
        assert record.knobs([candidate, "unknown"]) == {candidate: before, "unknown": {}}
    finally:
        record.close()


def test_another_best_and_what_more_is_known_of_one_are_seen_at_the_next_look(tmp_path: Path) -> None:
    deck = configured(tmp_path / "knobs")
    deck.run("verify")
    with hold_workspace(deck.root, "a test") as held:
        looker = Looker(held)
        seen = looker.look(None)
        assert seen.best is not None and seen.best.score is not None and not looker.is_new()
        held.store.add_anchor_value(seen.contract_id, seen.best.id, 3.0 * seen.best.score)
        assert looker.is_new()
        now = looker.look(seen)
        assert now.best is not None and now.best.score == deck.seen()["best"]["score"] != seen.best.score
        assert not looker.is_new()
