"""`kerneldeck result`: score, verification and notes in a file that others read."""

from __future__ import annotations

import json

import pytest

from tests.cli.deck import Deck


def test_the_best_is_written_under_the_metric_and_score(deck: Deck) -> None:
    deck.run("verify")
    assert "wrote " in deck.run("result").out
    assert json.loads(deck.read("result.json")) == {
        "metrics": {"total_ms": 100.0, "score": 100.0},
        "verified": True,
    }


def test_what_the_file_holds_besides_stays(deck: Deck) -> None:
    deck.write("out.json", '{"task": 7, "metrics": {"watts": 5}, "verification": {"by": "ann"}, '
               '"used_harness_tools": ["a"]}')  # fmt: skip
    deck.run(
        "result", "out.json", "--score", "90", "--status", "passed", "--summary", "quick",
        "--verification", '{"runs": 3}', "--used-tool", "b", "--used-tool", "a",
    )  # fmt: skip
    assert json.loads(deck.read("out.json")) == {
        "task": 7,
        "metrics": {"watts": 5, "total_ms": 90.0, "score": 90.0},
        "verification": {"by": "ann", "runs": 3},
        "used_harness_tools": ["a", "b"],
        "status": "passed",
        "verified": False,
        "summary": "quick",
    }


def test_best_us_sets_the_score_too(deck: Deck) -> None:
    deck.run("result", "--best-us", "12.5", "--verified")
    content = json.loads(deck.read("result.json"))
    assert content["metrics"]["score"] == 12.5 and content["verified"] is True


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[1]", "holds no JSON object"),
        ("{", "cannot be read as JSON"),
        ('{"metrics": 5}', "metrics is no object"),
        ('{"metrics": {}, "verification": "yes"}', "verification is no object"),
    ],
)
def test_a_file_in_another_form_is_left_alone(deck: Deck, content: str, said: str) -> None:
    deck.write("result.json", content)
    assert said in deck.fault("result", "--score", "1", "--verification", "{}")
    assert deck.read("result.json") == content


def test_files_of_the_workspace_are_no_results(deck: Deck) -> None:
    for name in ("kernel.sh", "benchmark.sh", "./kernel.sh"):
        assert "is a file of the workspace, not a result" in deck.fault("result", name)


def test_a_place_that_cannot_be_written_is_a_sentence(deck: Deck) -> None:
    assert "cannot be written" in deck.fault("result", "no/such/folder/x.json", code=1)
    (deck.root / "folder").mkdir()
    assert "folder" in deck.fault("result", "folder", code=None)
