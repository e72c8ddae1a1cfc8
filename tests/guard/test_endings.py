"""`kerneldeck verify` to each of its endings."""

from __future__ import annotations

import pytest

from tests.cli.deck import Deck


def test_the_first_that_passes_is_the_first_best(deck: Deck) -> None:
    answer = deck.json("verify")
    assert answer["outcome"] == "first_best"
    assert answer["best"] == answer["candidate"]
    assert answer["final"]["score"] == 100 and answer["final"]["verifier"]
    assert deck.seen()["best"]["checkpoint"] == answer["candidate"]


def test_the_best_itself_is_confirmed(standing: Deck) -> None:
    done = standing.run("verify")
    assert "verified: the workspace holds the best, and it passed again" in done.out


def test_a_better_one_is_kept_and_the_best_now(standing: Deck) -> None:
    standing.kernel("score=99.9")
    answer = standing.json("verify")
    assert answer["outcome"] == "kept" and answer["best"] == answer["candidate"]
    assert answer["gate"]["verdict"] == "faster" and answer["gate"]["exact"]
    assert standing.seen()["best"]["score"] == 99.9
    assert standing.read("kernel.sh") == "score=99.9\n"


def test_an_equal_one_is_not_better_and_stays_as_it_is(standing: Deck) -> None:
    standing.kernel("score=100 # written in another way")
    answer = standing.json("verify")
    assert answer["outcome"] == "not_better" and answer["gate"]["verdict"] == "same"
    assert answer["best"] != answer["candidate"]
    assert "another way" in standing.read("kernel.sh")


def test_a_slower_one_is_restored_and_verified(standing: Deck) -> None:
    standing.kernel("score=101")
    done = standing.run("verify", code=1)
    assert "regressed, restored and verified: slower than the best" in done.out
    assert standing.read("kernel.sh") == "score=100\n"
    latest = standing.seen()["latest"][0]
    assert (latest["purpose"], latest["status"]) == ("restore", "ok")


@pytest.mark.parametrize(
    ("snippet", "status"),
    [
        ("status=incorrect; score=1", "incorrect"),
        ("score=1; echo cheat >> benchmark.sh", "tampered"),
        ("status=compile_error; score=1", "compile_error"),
        ("status=invalid; score=1", "invalid"),
        ('status=failed; score=1; extra=\', "errors": ["block 3 is not legal"]\'', "invalid"),
    ],
)
def test_a_wrong_result_is_restored_at_once(standing: Deck, snippet: str, status: str) -> None:
    standing.kernel(snippet)
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "restored"
    assert answer["final"]["status"] == status
    assert answer["restored_files"] == ["kernel.sh"]
    assert standing.read("kernel.sh") == "score=100\n"
    assert standing.seen()["history"][status] == 1, "one such run is enough"


@pytest.mark.parametrize(
    ("snippet", "status"),
    [
        ("kill -9 $$", "crash"),
        ("exit 0", "crash"),
        ("score=nonsense", "crash"),
        ("echo 'out of memory' >&2; exit 1", "oom"),
        ("[ $mode = final ] && sleep 60; score=1", "timeout"),
    ],
)
def test_a_crash_or_timeout_is_restored_when_it_happens_twice(
    standing: Deck, snippet: str, status: str
) -> None:
    standing.bounded(0.5)
    standing.kernel(snippet)
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "restored", answer["reason"]
    assert answer["reason"].endswith("twice")
    assert standing.read("kernel.sh") == "score=100\n"
    counts = standing.seen()["history"]
    assert counts[status] == 2
    assert counts["ok"] == 3, "the best at first, the best in between, and again after the restore"


def test_a_crash_that_does_not_happen_again_decides_nothing(standing: Deck) -> None:
    flag = standing.root.parent / "crashed"
    standing.kernel(f"[ -e {flag} ] || {{ touch {flag}; kill -9 $$; }}; score=90")
    answer = standing.json("verify", code=5)
    assert answer["outcome"] == "pending" and "did not happen again" in answer["reason"]
    assert "score=90" in standing.read("kernel.sh")


def test_a_crash_while_the_best_crashes_too_puts_the_machine_in_doubt(standing: Deck) -> None:
    broken = standing.root.parent / "broken"
    standing.kernel(f"[ -e {broken} ] && kill -9 $$; score=90")
    standing.run("verify")
    broken.touch()
    standing.kernel("kill -9 $$")
    answer = standing.json("verify", code=5)
    assert answer["outcome"] == "pending" and "the machine is in doubt" in answer["reason"]
    assert standing.read("kernel.sh") == "kill -9 $$\n"


@pytest.mark.parametrize(("status", "code"), [("infra", 3), ("unstable", 5)])
def test_infrastructure_and_noise_are_never_a_regression(standing: Deck, status: str, code: int) -> None:
    standing.kernel(f"status={status}; score=500")
    done = standing.run("verify", code=code)
    assert "pending, nothing was decided and nothing touched" in done.out
    assert "score=500" in standing.read("kernel.sh")


def test_a_failing_first_one_has_nothing_to_go_back_to(deck: Deck) -> None:
    deck.kernel("status=incorrect; score=1")
    answer = deck.json("verify", code=1)
    assert answer["outcome"] == "failed" and "no best stands" in answer["reason"]
    assert answer["best"] is None


def test_the_best_that_fails_is_said_to_be_the_best(standing: Deck) -> None:
    broken = standing.root.parent / "broken"
    standing.kernel(f"score=90; [ -e {broken} ] && status=incorrect")
    standing.run("verify")
    broken.touch()
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "failed" and "this is the best itself" in answer["reason"]


def test_a_restored_best_that_fails_is_not_called_verified(standing: Deck) -> None:
    broken = standing.root.parent / "broken"
    best = f"score=90; [ -e {broken} ] && status=incorrect"
    standing.kernel(best)
    standing.run("verify")
    standing.kernel(f"touch {broken}; status=incorrect; score=1")
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "restored_unverified"
    assert "verified again: incorrect" in answer["reason"]
    assert standing.read("kernel.sh") == best + "\n"


def test_a_timeout_without_a_best_ends_with_the_code_of_one(deck: Deck) -> None:
    deck.bounded(0.3)
    deck.kernel("sleep 60")
    assert deck.json("verify", code=4)["outcome"] == "failed"
