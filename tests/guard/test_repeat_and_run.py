"""`run` and `repeat`: what their exit codes say, and that only a candidate's own fault is a regression."""

from __future__ import annotations

import pytest

from tests.cli.deck import Deck


@pytest.mark.parametrize(
    ("snippet", "status", "code"),
    [
        ("score=5", "ok", 0),
        ("score=5; status=incorrect", "incorrect", 1),
        ("score=5; status=invalid", "invalid", 1),
        ("score=5; status=compile_error", "compile_error", 1),
        ("score=5; status=oom", "oom", 1),
        ("kill -9 $$", "crash", 1),
        ("score=5; echo x >> verifier.sh", "tampered", 1),
        ('score=5; status=infra; extra=\', "stage": "gpu"\'', "infra", 3),
        ("sleep 60", "timeout", 4),
        ("score=5; status=unstable", "unstable", 5),
    ],
)
def test_the_exit_code_of_a_run_tells_its_status(deck: Deck, snippet: str, status: str, code: int) -> None:
    deck.bounded(2)
    deck.kernel(snippet)
    before = deck.files()
    done = deck.run("run", code=code)
    assert f"trial #1  dev benchmark  {status}" in done.out
    assert ("its output: " in done.out) == (status not in ("ok", "infra"))
    assert deck.files() == before, "a run restores nothing"


def test_infrastructure_in_between_is_no_regression(standing: Deck) -> None:
    standing.kernel("score=100; status=infra")
    answer = standing.json("repeat", "--runs", "2", "--restore-on-regression", code=3)
    assert not answer["regressed"] and answer["reason"].startswith("infra")
    assert "guarded_verification" not in answer
    assert "infra" in standing.read("kernel.sh")


def test_a_failed_run_among_them_is_a_regression(standing: Deck) -> None:
    count = standing.root.parent / "count"
    standing.kernel(f"echo >> {count}; [ $(wc -l < {count}) = 2 ] && status=incorrect; score=100")
    answer = standing.json("repeat", "--runs", "3", code=1)
    assert (answer["runs"], answer["passed"], answer["regressed"]) == (3, 2, True)
    assert answer["reason"].startswith("incorrect")


def test_a_regression_goes_on_to_a_guarded_verification_when_asked(standing: Deck) -> None:
    standing.kernel("score=130")
    limit = ["--max-score", "110", "--runs", "2"]
    assert standing.json("repeat", *limit, code=1)["reason"] == "the median 130 is worse than max_score 110"
    assert standing.read("kernel.sh") == "score=130\n"
    answer = standing.json("repeat", *limit, "--restore-on-regression", code=1)
    assert answer["guarded_verification"]["outcome"] == "restored"
    assert standing.read("kernel.sh") == "score=100\n"


def test_repeat_verifies_in_final_and_times_in_dev_unless_told(standing: Deck) -> None:
    assert all(trial["verifier"] for trial in standing.json("repeat", "--runs", "2")["trials"])
    dev = standing.json("repeat", "--runs", "2", "--mode", "dev")
    assert not any(trial["verifier"] for trial in dev["trials"]) and dev["trials"][0]["mode"] == "dev"
    told = standing.json("repeat", "--runs", "1", "--no-verifier")
    assert not told["trials"][0]["verifier"] and told["trials"][0]["mode"] == "final"


def test_dev_and_final_are_ranked_apart(standing: Deck) -> None:
    standing.kernel("[ $mode = dev ] && score=1 || score=200")
    standing.run("run")
    standing.run("run", "--mode", "final")
    final, dev = (standing.json("rank", *words)["rows"] for words in ([], ["--mode", "dev"]))
    assert [row["median_score"] for row in final] == [100, 200]
    assert [row["median_score"] for row in dev] == [1]


def test_failed_runs_have_no_rank(standing: Deck) -> None:
    standing.kernel("score=1; status=incorrect")
    standing.run("run", "--mode", "final", code=1)
    assert [row["median_score"] for row in standing.json("rank")["rows"]] == [100]


def test_another_workspaces_history_can_be_ranked(standing: Deck, tmp_path) -> None:
    elsewhere = Deck(tmp_path)
    state = standing.root / ".kerneldeck/state.sqlite3"
    for path in (standing.root, state):
        answer = standing.json("rank", "--history-path", str(path))
        assert answer["rows"][0]["median_score"] == 100
    assert "does not exist" in standing.fault("rank", "--history-path", "/no/such/place")
    assert "is no workspace" in standing.fault("rank", "--history-path", str(elsewhere.root))
