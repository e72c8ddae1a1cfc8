"""A baseline, notes and tags: what they show, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ArgumentFault
from sessions.annotations import LONGEST_NOTE, MOST_TAGS, note_text, tag_word, with_tags
from tests.cli.deck import Deck, configured
from tests.host.hosting import rows


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """Trial 1 scores 131 in dev (block 1), trial 2 crashes, trial 3 scores 101 in dev (block 4)."""
    made = configured(tmp_path / "knobs")
    made.config(block=1, warps=1)
    made.run("run")
    made.kernel("exit 3")
    made.run("run", code=None)
    made.kernel("")
    made.config(block=4, warps=1)
    made.run("run")
    return made


def test_a_baseline_is_shown_beside_the_best_in_its_mode_only(deck: Deck) -> None:
    assert "no baseline is set" in deck.run("baseline").out
    assert "the baseline is now trial #1 (" in deck.run("baseline", "1").out
    assert deck.json("baseline")["baseline"]["scores"] == {"dev": 131.0}
    ranked = deck.json("rank", "--mode", "dev")["rows"]
    assert [(row["trial"], row["is_baseline"]) for row in ranked] == [(3, False), (1, True)]
    assert ranked[0]["against_baseline"] == pytest.approx(101 / 131 - 1)
    assert ranked[0]["change"] is None  # there is no best yet
    assert "to baseline" in deck.run("rank", "--mode", "dev").out
    deck.run("verify")
    told = deck.run("inspect").out
    assert "baseline: #1" in told and "baseline #1 has no score in final, only in dev" in told
    assert "baseline #1 has no score in final, only in dev" in deck.run("rank").out
    deck.run("baseline", deck.seen()["best"]["checkpoint"][:8])
    baseline = deck.seen()["baseline"]
    assert baseline["mode"] == "final" and baseline["best_change"] == 0.0
    assert deck.json("baseline", "--clear")["outcome"] == "cleared"
    assert deck.seen()["baseline"] is None
    assert deck.json("baseline", "--clear")["outcome"] == "none"


def test_what_cannot_be_a_baseline_is_refused(deck: Deck) -> None:
    assert "trial #2 has no score: it ended as crash" in deck.fault("baseline", "2")
    assert "there is no trial #77" in deck.fault("baseline", "77")
    assert "no candidate that begins with abcdabcdabcd has a score" in deck.fault("baseline", "abcdabcdabcd")
    assert "neither a trial's number nor the beginning" in deck.fault("baseline", "kernel.py")
    assert "contradict" in deck.fault("baseline", "1", "--clear")
    assert rows(deck.root, "SELECT COUNT(*) FROM baselines") == [(0,)]


def test_a_baseline_of_another_contract_says_that_it_does_not_compare(deck: Deck) -> None:
    deck.write("benchmark.sh", deck.read("benchmark.sh") + "# changed\n")
    deck.run("reseal")
    said = deck.run("baseline", "1").out
    assert "it is of contract" in said and "compares with that one's records only" in said
    assert deck.json("baseline")["outcome"] == "none"
    assert deck.json("rank", "--mode", "dev")["baseline"] is None


def test_a_note_and_tags_are_kept_added_to_and_taken_away(deck: Deck) -> None:
    first = deck.json("note", "1", "as it came", "--tag", "start", "--tag", "fp8")
    assert (first["outcome"], first["note"], first["tags"]) == ("noted", "as it came", ["start", "fp8"])
    assert deck.run("note", "1", "--untag", "start", "--tag", "again").code == 0
    assert deck.run("note", "1").out == "trial #1: [fp8 again] as it came\n"
    assert "#1 run dev ok 131  [fp8 again] as it came" in deck.run("inspect").out
    assert deck.json("note", "1", "--tag", "fp8")["outcome"] == "unchanged"
    assert deck.json("note", "1", "")["note"] == ""
    assert deck.json("note", "1", "--clear")["tags"] == []
    assert deck.run("note", "2", "crashes with 3 stages").code == 0
    assert "there is no trial #9" in deck.fault("note", "9", "x")
    assert "no trial is named" in deck.fault("note")
    assert "printable" in deck.fault("note", "1", "two\nlines")


def test_looking_changes_nothing_and_needs_no_host(deck: Deck) -> None:
    before = rows(deck.root, "SELECT COUNT(*) FROM operations")
    deck.run("baseline")
    deck.run("note", "1")
    assert rows(deck.root, "SELECT COUNT(*) FROM operations") == before
    deck.run("note", "1", "--tag", "seen")
    (row,) = rows(deck.root, "SELECT operation, outcome, exit_code FROM operations ORDER BY id DESC LIMIT 1")
    assert row == ("note_trial", "done", 0)


@pytest.mark.parametrize(
    "text", ["a\nb", "a\x1b[31m", "a\0", "right\u202eleft", "\ud800", "x" * (LONGEST_NOTE + 1)]
)
def test_a_note_is_one_printable_line_of_bounded_length(text: str) -> None:
    with pytest.raises(ArgumentFault):
        note_text(text)


def test_a_note_may_hold_brackets_and_wide_characters() -> None:
    assert note_text("  [red]結果 50 % faster  ") == "[red]結果 50 % faster"


@pytest.mark.parametrize("word", ["", "two words", "a,b", "a\tb", "\x1b[0m", "\u202e", "x" * 33])
def test_a_tag_is_one_printable_word(word: str) -> None:
    with pytest.raises(ArgumentFault):
        tag_word(word)


def test_tags_are_kept_in_order_once_each_and_no_more_than_some() -> None:
    assert with_tags(("b", "a"), ("c", "a"), ("b",)) == ("a", "c")
    full = tuple(str(number) for number in range(MOST_TAGS))
    assert with_tags(full, ("0",), ()) == full
    with pytest.raises(ArgumentFault, match=f"at most {MOST_TAGS} tags"):
        with_tags(full, ("one-more",), ())
