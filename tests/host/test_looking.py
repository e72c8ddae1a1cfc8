"""Looking at a workspace: when there is something new, and what its best is worth."""

from __future__ import annotations

from pathlib import Path

from sessions.host.looking import Looker
from sessions.session import hold_workspace
from tests.cli.deck import configured


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
