"""What the app reads of the state of record."""

from __future__ import annotations

from pathlib import Path

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
