"""`max_score`, and modes that do not decide."""

from __future__ import annotations

from tests.cli.deck import TOML, Deck


def test_a_score_within_max_score_goes_on_to_the_gate(standing: Deck) -> None:
    standing.kernel("score=99")
    assert standing.json("verify", "--max-score", "99")["outcome"] == "kept"


def test_a_score_beyond_max_score_puts_the_best_back(standing: Deck) -> None:
    standing.kernel("score=101")
    answer = standing.json("verify", "--max-score", "100.5", code=1)
    assert answer["outcome"] == "restored" and answer["gate"]["verdict"] == "slower"
    assert answer["reason"] == "the score 101 is worse than max_score 100.5"
    assert standing.read("kernel.sh") == "score=100\n"


def test_a_better_one_beyond_max_score_is_neither_kept_nor_thrown_away(standing: Deck) -> None:
    standing.kernel("score=99")
    answer = standing.json("verify", "--max-score", "98.5", code=1)
    assert answer["outcome"] == "regressed" and answer["gate"]["verdict"] == "faster"
    assert "better than the best, so nothing was put back or kept" in answer["reason"]
    assert standing.read("kernel.sh") == "score=99\n"
    assert standing.seen()["best"]["score"] == 100


def test_the_best_beyond_max_score_has_nothing_to_be_replaced_by(standing: Deck) -> None:
    answer = standing.json("verify", "--max-score", "50", code=1)
    assert answer["outcome"] == "regressed" and answer["restored_files"] == []
    assert "the workspace holds the best, so there is nothing to restore" in answer["reason"]


def test_a_first_one_beyond_max_score_does_not_become_the_best(deck: Deck) -> None:
    answer = deck.json("verify", "--max-score", "50", code=1)
    assert answer["outcome"] == "regressed" and "no best stands to go back to" in answer["reason"]
    assert deck.seen()["best"] is None


def test_one_unlucky_run_of_a_noisy_kernel_is_not_beyond_max_score(standing: Deck) -> None:
    noisy = standing.read("kerneldeck.toml").replace("deterministic = true\n", "")
    standing.write("kerneldeck.toml", noisy)
    flag = standing.root.parent / "flag"
    standing.kernel(f"score=100; [ -e {flag} ] || {{ touch {flag}; score=150; }}")
    assert standing.json("verify", "--max-score", "110")["outcome"] == "first_best"
    standing.kernel("score=150")
    answer = standing.json("verify", "--max-score", "110", code=1)
    assert answer["reason"] == "the score 150, median of 3 runs is worse than max_score 110"
    assert answer["outcome"] == "restored"


def test_dev_never_makes_a_best(deck: Deck) -> None:
    answer = deck.json("verify", "--mode", "dev")
    assert answer["outcome"] == "not_better" and answer["best"] is None
    assert answer["reason"].startswith("dev passed; only final decides")
    assert deck.seen()["best"] is None


def test_dev_never_moves_the_best_or_its_anchor(standing: Deck) -> None:
    standing.kernel("[ $mode = dev ] && score=1 || score=100")
    assert standing.json("verify", "--mode", "dev")["outcome"] == "not_better"
    assert standing.json("verify")["gate"]["verdict"] == "same"
    assert standing.seen()["best"]["score"] == 100


def test_a_wrong_result_in_dev_is_restored_too(standing: Deck) -> None:
    standing.kernel("[ $mode = dev ] && status=incorrect; score=90")
    assert standing.json("verify", "--mode", "dev", code=1)["outcome"] == "restored"


def test_a_mode_that_does_not_exist_names_those_that_do(deck: Deck) -> None:
    fault = deck.fault("verify", "--mode", "nightly")
    assert "there is no mode 'nightly'" in fault and "modes: dev, final" in fault


def test_final_and_dev_mean_the_deciding_mode_and_the_other_whatever_they_are_called(deck: Deck) -> None:
    text = TOML.replace("modes.dev", "modes.quick").replace("modes.final", "modes.whole")
    deck.write("kerneldeck.toml", text.replace("[objective]", '[objective]\ndecide = "whole"'))
    deck.kernel("mode=; score=100")
    deck.write(
        "benchmark.sh", deck.read("benchmark.sh").replace('"mode": "%s", ', "").replace('"$mode" ', "")
    )
    assert deck.json("run")["mode"] == "quick"
    assert deck.json("verify")["final"]["mode"] == "whole"
    assert deck.json("rank")["mode"] == "whole"


def test_a_verifier_that_gives_no_score_is_followed_by_the_benchmark(deck: Deck) -> None:
    deck.write("verifier.sh", '#!/bin/sh\necho \'{"status": "passed", "verified": true}\'\n')
    answer = deck.json("verify")
    assert answer["outcome"] == "first_best"
    assert answer["final"]["score"] == 100 and not answer["final"]["verifier"]
    assert deck.seen()["history"] == {"ok": 2}


def test_a_verifier_that_says_not_verified_fails_what_the_benchmark_passed(standing: Deck) -> None:
    standing.kernel("score=90; extra=', \"verified\": false'")
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "restored" and answer["final"]["status"] == "incorrect"


def test_a_mode_without_verifier_is_verified_by_its_benchmark(deck: Deck) -> None:
    deck.write("kerneldeck.toml", TOML.replace('verifier = ["./verifier.sh", "final"]\n', ""))
    assert deck.json("verify")["outcome"] == "first_best"
    assert "mode final has no verifier" in deck.fault("run", "--verifier", "--mode", "final")


CASES = """#!/bin/sh
. ./kernel.sh
echo "{\\"status\\": \\"passed\\", \\"mode\\": \\"$1\\", \\"total_ms\\": $score, \\"cases\\": $cases}"
"""


def test_results_with_different_cases_are_no_comparison(deck: Deck) -> None:
    """A candidate that leaves a case out would win by what it did not do."""
    deck.write("benchmark.sh", CASES)
    deck.kernel('score=290; cases=\'[{"case":"a"},{"case":"b"}]\'')
    deck.run("verify")
    for cases in ('[{"case":"a"}]', "[]", '[{"case":"a"},{"case":"a"}]'):
        deck.kernel(f"score=100; cases='{cases}'")
        answer = deck.json("verify", code=5)
        assert answer["outcome"] == "pending" and "name different cases" in answer["reason"]
