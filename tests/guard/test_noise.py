"""Noise is never a win and never a loss; a real difference is found, in either direction.

The noise of every run and, by the seed, the order of the arms are fixed: one in twenty orders would show
an equal candidate as faster, as the gate promises no better.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.deck import Deck
from tests.guard.noisy import noisy


@pytest.fixture
def shaky(tmp_path: Path) -> Deck:
    """Noise of 1 % a run, with a best."""
    deck = noisy(tmp_path / "shaky", sigma=0.01, seed=7)
    deck.run("verify")
    return deck


def test_an_equal_candidate_is_neither_kept_nor_restored(shaky: Deck) -> None:
    best = shaky.seen()["best"]["checkpoint"]
    for number in range(3):
        shaky.kernel(f"base=100 # {number}")
        answer = shaky.json("verify", "--seed", str(number), code=None)
        assert answer["outcome"] in ("not_better", "unclear"), answer["reason"]
        assert answer["exit_code"] == {"not_better": 0, "unclear": 5}[answer["outcome"]]
        assert shaky.read("kernel.sh") == f"base=100 # {number}\n"
    assert shaky.seen()["best"]["checkpoint"] == best


def test_a_clearly_slower_candidate_is_restored(shaky: Deck) -> None:
    shaky.kernel("base=108")
    answer = shaky.json("verify", "--seed", "1", code=1)
    assert answer["outcome"] == "restored" and answer["gate"]["verdict"] == "slower"
    low, high = answer["gate"]["interval"]
    assert low < -0.08 < high and not answer["gate"]["exact"]
    assert shaky.read("kernel.sh") == "base=100\n"


def test_a_clearly_faster_candidate_is_kept(shaky: Deck) -> None:
    shaky.kernel("base=92")
    answer = shaky.json("verify", "--seed", "1")
    assert answer["outcome"] == "kept" and answer["gate"]["at_least"] > 0.02
    assert answer["gate"]["interval"][0] < 0.08 < answer["gate"]["interval"][1]


def test_one_lucky_run_is_no_win(shaky: Deck) -> None:
    lucky = shaky.root.parent / "lucky"
    shaky.kernel(f"base=100; [ -e {lucky} ] || {{ touch {lucky}; unlucky=0.5; }}")
    answer = shaky.json("verify", "--seed", "1", code=None)
    assert answer["final"]["score"] < 60
    assert answer["outcome"] in ("not_better", "unclear")


def test_one_unlucky_run_is_no_loss(shaky: Deck) -> None:
    flag = shaky.root.parent / "unlucky"
    shaky.kernel(f"base=100; [ -e {flag} ] || {{ touch {flag}; unlucky=3; }}")
    answer = shaky.json("verify", "--seed", "1", code=None)
    assert answer["final"]["score"] > 200
    assert answer["outcome"] in ("not_better", "unclear")


def test_a_very_noisy_machine_says_so_and_decides_nothing(tmp_path: Path) -> None:
    deck = noisy(tmp_path / "wild", sigma=0.2, seed=3)
    deck.run("verify")
    deck.kernel("base=99")
    answer = deck.json("verify", "--seed", "2", code=None)
    assert answer["outcome"] in ("unclear", "not_better")
    assert "noise is" in answer["gate"]["warning"] and "above 2.0 %" in answer["gate"]["warning"]
    assert deck.read("kernel.sh") == "base=99\n"


def test_a_least_gain_from_the_toml_holds(tmp_path: Path) -> None:
    deck = noisy(tmp_path / "gate", sigma=0.001, seed=5)
    deck.write("kerneldeck.toml", deck.read("kerneldeck.toml") + "\n[gate]\nmin_gain = 0.1\n")
    deck.run("verify")
    deck.kernel("base=103")
    assert deck.json("verify", "--seed", "1", code=None)["outcome"] in ("not_better", "unclear")
    deck.kernel("base=120")
    assert deck.json("verify", "--seed", "1", code=1)["outcome"] == "restored"


@pytest.fixture
def rising(tmp_path: Path) -> Deck:
    """Higher is better, 1 % noise, with a best of 100 tflops."""
    deck = noisy(tmp_path / "rising", sigma=0.01, seed=11, metric="tflops", direction="higher")
    deck.run("verify")
    return deck


def test_where_higher_is_better_a_lower_score_is_restored(rising: Deck) -> None:
    rising.kernel("base=90")
    answer = rising.json("verify", "--seed", "1", code=1)
    assert answer["outcome"] == "restored" and answer["gate"]["gain"] < 0
    assert rising.read("kernel.sh") == "base=100\n"


def test_where_higher_is_better_a_higher_score_is_kept_and_ranks_first(rising: Deck) -> None:
    rising.kernel("base=110")
    answer = rising.json("verify", "--seed", "1")
    assert answer["outcome"] == "kept" and answer["gate"]["gain"] > 0.05
    rows = rising.json("rank")["rows"]
    assert rows[0]["is_best"] and rows[0]["median_score"] > rows[1]["median_score"] > 90


def test_where_higher_is_better_max_score_is_the_least(rising: Deck) -> None:
    rising.kernel("base=95")
    answer = rising.json("verify", "--seed", "1", "--max-score", "150", code=1)
    assert answer["outcome"] == "restored" and "is worse than max_score 150" in answer["reason"]
    assert rising.json("verify", "--seed", "1", "--max-score", "50")["outcome"] == "confirmed"


def test_repeat_shows_the_spread_and_judges_by_the_median(rising: Deck) -> None:
    answer = rising.json("repeat", "--runs", "5", "--max-score", "50")
    assert answer["runs"] == answer["passed"] == 5
    assert answer["min_score"] < answer["median_score"] < answer["max_score_seen"]
    assert answer["score_spread"] == pytest.approx(answer["max_score_seen"] - answer["min_score"])
    assert not answer["regressed"]
    # The luckiest of the five would pass this limit; the median does not.
    limit = f"{(answer['median_score'] + answer['max_score_seen']) / 2:.6f}"
    done = rising.json("repeat", "--runs", "5", "--max-score", limit, code=None)
    assert done["regressed"] == (done["median_score"] < float(limit))


def test_the_luckiest_of_many_equal_configurations_is_not_kept(shaky: Deck) -> None:
    """Ten configurations that change nothing: one looks best in the screen, and the gate sees through it."""
    text = shaky.read("kerneldeck.toml").replace(
        'mutable = ["kernel.sh"]', 'mutable = ["kernel.sh", "c.json"]'
    )
    shaky.write(
        "kerneldeck.toml", f'{text}\n[config]\nfile = "c.json"\n[knobs]\nn = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n'
    )
    shaky.write("c.json", '{"n": 0}\n')
    before = shaky.files()
    answer = shaky.json("sweep", "config", "--keep-best", "--seed", "1")
    scores = [row["score"] for row in answer["leaders"]]
    assert scores[0] < 0.99 * max(scores), "the screen alone would have named a winner"
    assert answer["winner"] is None and not answer["kept"]
    assert len(answer["confirmations"]) == 3
    assert shaky.files() == before
