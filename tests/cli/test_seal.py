"""Protected files are sealed; only a person renews the seal, and contracts stay apart."""

from __future__ import annotations

import pytest

from tests.cli.deck import TOML, Deck


@pytest.fixture
def sealed(deck: Deck) -> Deck:
    deck.run("verify")
    return deck


def stricter(deck: Deck) -> None:
    """A benchmark that somebody changed: it now takes ten times as long."""
    deck.write(
        "benchmark.sh", deck.read("benchmark.sh").replace(". ./kernel.sh", ". ./kernel.sh\nscore=${score}0")
    )


def test_changed_protected_files_stop_every_command_that_runs_or_writes(sealed: Deck) -> None:
    stricter(sealed)
    before = sealed.files()
    for words in (["run"], ["verify"], ["repeat"], ["restore"], ["apply", "--trial", "1"], ["result"]):
        fault = sealed.fault(*words)
        assert "protected files differ from the seal: benchmark.sh" in fault
        assert "put them back, or accept the change and measure again: kerneldeck reseal" in fault
    assert sealed.files() == before
    seen = sealed.json("inspect")
    assert [file["name"] for file in seen["files"]["protected"] if not file["sealed"]] == ["benchmark.sh"]
    assert seen["next"] == ["kerneldeck reseal"]
    assert "differs from the seal" in sealed.run("inspect").out


def test_a_dry_run_of_reseal_shows_the_difference_and_changes_nothing(sealed: Deck) -> None:
    stricter(sealed)
    done = sealed.run("reseal", "--dry-run")
    assert "+score=${score}0" in done.out and "dry run: the seal stays" in done.out
    sealed.fault("run")


def test_reseal_makes_a_new_contract_and_measures_the_old_best_in_it(sealed: Deck) -> None:
    old = sealed.seen()
    stricter(sealed)
    sealed.kernel("score=7")
    answer = sealed.json("reseal")
    assert answer["outcome"] == "resealed" and answer["contract"] != old["contract"]
    assert answer["measured_again"]["score"] == 1000, "the old best, not what lies there now"
    assert answer["best"] == old["best"]["checkpoint"]
    assert sealed.read("kernel.sh") == "score=7\n"
    now = sealed.seen()
    assert now["best"]["score"] == 1000 and now["contract"] == answer["contract"]
    assert sealed.json("verify")["outcome"] == "kept"
    assert [row["median_score"] for row in sealed.json("rank")["rows"]] == [70, 1000], "of this contract only"
    assert now["other_contracts"] == [], "there the same checkpoint stands"
    (other,) = sealed.seen()["other_contracts"]
    assert other["score"] == 100 and other["differs"] == ["protected"]


def test_an_old_best_that_fails_under_the_new_seal_is_offered_not_kept(sealed: Deck) -> None:
    sealed.write("benchmark.sh", sealed.read("benchmark.sh").replace("status=passed", "status=incorrect"))
    answer = sealed.json("reseal", code=1)
    assert answer["best"] is None and answer["measured_again"]["status"] == "incorrect"
    done = sealed.run("inspect")
    assert "best: none yet" in done.out
    assert "another contract's best" in done.out and "kerneldeck restore --checkpoint" in done.out


def test_going_back_to_the_old_files_finds_the_old_best_again(sealed: Deck) -> None:
    before, old = sealed.read("benchmark.sh"), sealed.seen()["best"]
    stricter(sealed)
    sealed.run("reseal")
    sealed.write("benchmark.sh", before)
    answer = sealed.json("reseal")
    assert "measured_again" not in answer
    assert sealed.seen()["best"]["checkpoint"] == old["checkpoint"]


def test_files_as_sealed_need_no_reseal(sealed: Deck) -> None:
    assert "the protected files are as sealed" in sealed.run("reseal").out


@pytest.mark.parametrize("words", [["inspect"], ["run"], ["reseal"]])
def test_a_missing_protected_file_is_named(sealed: Deck, words: list[str]) -> None:
    (sealed.root / "verifier.sh").unlink()
    fault = sealed.fault(*words)
    assert "the protected file verifier.sh is missing" in fault and "put it back" in fault


def test_another_command_or_objective_is_another_contract_and_the_old_best_is_offered(sealed: Deck) -> None:
    old = sealed.seen()["best"]["checkpoint"]
    sealed.write(
        "kerneldeck.toml", TOML.replace('"./benchmark.sh", "final"', '"sh", "benchmark.sh", "final"')
    )
    seen = sealed.seen()
    assert seen["best"] is None
    assert seen["other_contracts"][0]["checkpoint"] == old
    assert seen["other_contracts"][0]["differs"] == ["modes"]
    hint = sealed.fault("restore", code=1)
    assert "no best stands for this contract yet" in hint and "--checkpoint" in hint
    assert sealed.json("restore", "--checkpoint", old)["outcome"] == "unchanged"
    assert sealed.json("verify")["outcome"] == "first_best"


def test_protecting_one_more_file_asks_for_a_new_seal(sealed: Deck) -> None:
    sealed.write("cases.txt", "1 2 3\n")
    sealed.write("kerneldeck.toml", TOML.replace('"verifier.sh"]', '"verifier.sh", "cases.txt"]'))
    assert "protected files differ from the seal: cases.txt" in sealed.fault("run")
    assert "+1 2 3" in sealed.run("reseal").out
    assert sealed.json("verify")["outcome"] == "confirmed"
