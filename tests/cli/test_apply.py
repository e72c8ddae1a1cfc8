"""`kerneldeck apply`: never past the final verification and the gate."""

from __future__ import annotations

import json

import pytest

from tests.cli.deck import Deck, wait_until


@pytest.fixture
def swept(knobbed: Deck) -> Deck:
    """With a best (block 2: 121) and trials of block 4 (better), 8 (worse) and 1 (wrong in final)."""
    knobbed.kernel('[ "$mode$block" = final1 ] && status=incorrect')
    knobbed.config(block=2, warps=1)
    knobbed.json("sweep", "config", "--set", "block=1,4,8")
    return knobbed


def trial_of(deck: Deck, block: int) -> str:
    rows = deck.json("rank", "--mode", "dev")["rows"]
    return next(str(row["trial"]) for row in rows if row["config"].get("block") == block)


def test_without_being_told_otherwise_it_only_says_what_it_would_do(swept: Deck) -> None:
    before = swept.files()
    history = swept.seen()["history"]
    done = swept.run("apply", "--trial", trial_of(swept, 4))
    assert "dry run: would verify candidate" in done.out and "write config.json" in done.out
    assert "to do it: the same with --no-dry-run" in done.out
    assert swept.files() == before and swept.seen()["history"] == history


def test_a_better_candidate_is_applied_and_the_best_now(swept: Deck) -> None:
    done = swept.run("apply", "--trial", trial_of(swept, 4), "--no-dry-run")
    assert "faster by" in done.out and "wrote config.json" in done.out
    assert json.loads(swept.read("config.json")) == {"block": 4, "warps": 1}
    assert swept.seen()["best"]["score"] == 101
    assert swept.json("apply", "--trial", trial_of(swept, 4), "--no-dry-run")["files"] == []


def test_knobs_are_set_on_the_best(swept: Deck) -> None:
    swept.config(block=8, warps=2)
    answer = swept.json("apply", "--config", '{"block": 4}', "--no-dry-run")
    assert answer["outcome"] == "applied"
    assert json.loads(swept.read("config.json")) == {"block": 4, "warps": 1}


def test_a_slower_candidate_is_refused_whatever_is_asked(swept: Deck) -> None:
    before = swept.read("config.json")
    words = ["apply", "--trial", trial_of(swept, 8), "--no-dry-run"]
    assert "does not call it faster" in swept.json(*words, code=1)["reason"]
    assert "calls it slower" in swept.json(*words, "--no-require-improvement", code=1)["reason"]
    assert swept.read("config.json") == before


def test_an_equal_candidate_is_written_when_no_gain_is_required_and_is_not_the_best(swept: Deck) -> None:
    best = swept.seen()["best"]["checkpoint"]
    swept.kernel(swept.read("kernel.sh").strip() + " # as quick")
    swept.run("run")
    trial = str(swept.seen()["latest"][0]["trial"])
    swept.run("restore")
    assert swept.json("apply", "--trial", trial, "--no-dry-run", code=1)["gate"]["verdict"] == "same"
    answer = swept.json("apply", "--trial", trial, "--no-dry-run", "--no-require-improvement")
    assert answer["outcome"] == "applied" and "as quick" in swept.read("kernel.sh")
    assert swept.seen()["best"]["checkpoint"] == best


def test_a_wrong_candidate_is_refused_with_the_code_of_its_failure(swept: Deck) -> None:
    answer = swept.json("apply", "--trial", trial_of(swept, 1), "--no-dry-run", code=1)
    assert answer["outcome"] == "refused"
    assert answer["reason"].startswith("the final verification ended incorrect")
    assert answer["final"]["status"] == "incorrect"


def test_a_candidate_is_named_in_exactly_one_way(swept: Deck) -> None:
    assert "exactly one of config, trial, candidate" in swept.fault("apply")
    assert "exactly one of" in swept.fault("apply", "--trial", "1", "--candidate", "abcd")
    assert "there is no trial #999" in swept.fault("apply", "--trial", "999")
    assert "trial: 99999999999999999999 is not at most" in swept.fault("apply", "--trial", "9" * 20)
    assert "no candidate begins with 'ffffffff'" in swept.fault("apply", "--candidate", "ffffffff")
    assert "no beginning of an id" in swept.fault("apply", "--candidate", "a' OR 1")
    assert "block: 3 is not one of" in swept.fault("apply", "--config", '{"block": 3}')


def test_the_candidate_of_a_checkpoint_can_be_named_by_its_beginning(swept: Deck) -> None:
    best = swept.seen()["best"]["checkpoint"]
    swept.config(block=8, warps=2)
    answer = swept.json("apply", "--candidate", best[:10], "--no-dry-run")
    assert answer["outcome"] == "applied" and answer["gate"] is None
    assert json.loads(swept.read("config.json")) == {"block": 2, "warps": 1}


def test_a_first_candidate_needs_no_gate(knobbed: Deck) -> None:
    answer = knobbed.json("apply", "--config", '{"block": 4}', "--no-dry-run")
    assert answer["outcome"] == "applied" and answer["gate"] is None
    assert knobbed.seen()["best"]["score"] == 101


def test_an_edit_meanwhile_is_not_overwritten_and_the_candidate_is_kept(knobbed: Deck) -> None:
    reached, go_on = knobbed.root.parent / "reached", knobbed.root.parent / "go-on"
    knobbed.kernel(f"touch {reached}; while [ ! -e {go_on} ]; do sleep 0.01; done")
    command = knobbed.start("apply", "--config", '{"block": 4}', "--no-dry-run")
    wait_until(reached.exists, "the final verification")
    knobbed.config(block=2, warps=2)
    edited = knobbed.read("config.json")
    go_on.touch()
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 1
    assert "not applied: config.json changed meanwhile" in out.decode()
    assert "is the best now, but was not written" in out.decode()
    assert knobbed.read("config.json") == edited
    assert knobbed.seen()["best"]["score"] == 101
