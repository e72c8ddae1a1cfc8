"""What a restore writes, what it leaves, and what it says."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.deck import Deck, configured, plain, wait_until


@pytest.fixture
def two_files(tmp_path) -> Deck:
    """A best of two files: kernel.sh and config.json, 101 ms."""
    deck = configured(tmp_path / "two")
    deck.config(block=4, warps=1)
    deck.run("verify")
    return deck


def test_without_restore_the_files_stay_and_the_exit_code_tells(standing: Deck) -> None:
    standing.kernel("score=120")
    done = standing.run("verify", "--no-restore-on-regression", code=1)
    assert "regressed, not restored: slower than the best; no restore was asked for" in done.out
    assert standing.read("kernel.sh") == "score=120\n"
    assert standing.seen()["best"]["score"] == 100


def test_only_the_named_files_are_restored(two_files: Deck) -> None:
    two_files.config(block=8, warps=1)
    two_files.kernel(": # a note that may stay")
    answer = two_files.json("verify", "--restore-files", "config.json", code=1)
    assert answer["outcome"] == "restored" and answer["restored_files"] == ["config.json"]
    assert '"block": 4' in two_files.read("config.json")
    assert "may stay" in two_files.read("kernel.sh")


def test_named_files_that_are_the_bests_already_are_no_restore(two_files: Deck) -> None:
    two_files.config(block=8, warps=1)
    answer = two_files.json("verify", "--restore-files", "kernel.sh", code=1)
    assert answer["outcome"] == "regressed"
    assert "those files are the best's, so there is nothing to restore" in answer["reason"]


def test_a_file_to_restore_that_is_none_is_refused_before_anything_runs(two_files: Deck) -> None:
    before = two_files.seen()["history"]
    fault = two_files.fault("verify", "--restore-files", "benchmark.sh")
    assert "benchmark.sh is no mutable file" in fault and "mutable files: config.json, kernel.sh" in fault
    assert two_files.seen()["history"] == before


def test_a_deleted_file_comes_back(two_files: Deck) -> None:
    (two_files.root / "config.json").unlink()
    answer = two_files.json("verify", code=1)
    assert answer["outcome"] == "restored" and answer["restored_files"] == ["config.json"]
    assert '"block": 4' in two_files.read("config.json")


def test_restore_by_hand_shows_what_it_would_write_and_keeps_what_it_replaces(two_files: Deck) -> None:
    two_files.config(block=8, warps=2)
    edited = two_files.read("config.json")
    assert "would restore config.json" in two_files.run("restore", "--dry-run").out
    assert two_files.read("config.json") == edited
    assert "restored config.json" in two_files.run("restore").out
    assert '"block": 4' in two_files.read("config.json")
    kept = [path.read_text() for path in (two_files.root / ".kerneldeck/blobs").rglob("*") if path.is_file()]
    assert edited in kept
    assert "already" in two_files.run("restore").out


def test_a_mode_of_the_file_is_part_of_the_best(standing: Deck) -> None:
    path = standing.root / "kernel.sh"
    path.chmod(0o755)
    assert standing.json("restore")["files"] == ["kernel.sh"]
    assert path.stat().st_mode & 0o111 == 0


def test_without_a_best_there_is_nothing_to_restore(deck: Deck) -> None:
    assert "no best stands for this contract yet" in deck.fault("restore", code=1)


def test_another_checkpoint_is_named_by_the_beginning_of_its_id(standing: Deck) -> None:
    first = standing.seen()["best"]["checkpoint"]
    standing.kernel("score=90")
    standing.run("verify")
    assert standing.json("restore", "--checkpoint", first[:8])["outcome"] == "restored"
    assert standing.read("kernel.sh") == "score=100\n"
    assert "no checkpoint or candidate begins with" in standing.fault("restore", "--checkpoint", "00000000")
    assert "no beginning of an id" in standing.fault("restore", "--checkpoint", "abc")
    assert "no beginning of an id" in standing.fault("restore", "--checkpoint", "%%%%%")


def edit_while_measured(deck: Deck, snippet: str, later: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a command whose first trial waits, edit kernel.sh meanwhile, and let the trial go on."""
    reached, go_on = deck.root.parent / "reached", deck.root.parent / "go-on"
    deck.kernel(f"touch {reached}; while [ ! -e {go_on} ]; do sleep 0.01; done; {snippet}")
    command = deck.start(*words)
    wait_until(reached.exists, "the trial")
    deck.kernel(later)
    go_on.touch()
    return command


def test_an_edit_by_hand_while_measuring_is_never_overwritten(standing: Deck) -> None:
    command = edit_while_measured(standing, "score=120", "score=95", "verify")
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 1
    assert "regressed, not restored: slower than the best; kernel.sh changed meanwhile" in out.decode()
    assert standing.read("kernel.sh") == "score=95\n"


def test_an_edit_while_a_better_one_is_measured_stays_and_is_mentioned(standing: Deck) -> None:
    command = edit_while_measured(standing, "score=80", "score=85", "verify")
    out, _ = command.communicate(timeout=60)
    assert command.returncode == 0
    assert "kept: better than the best" in out.decode() and "edited meanwhile" in out.decode()
    assert standing.read("kernel.sh") == "score=85\n"
    assert standing.seen()["best"]["score"] == 80


def test_a_best_of_an_earlier_verification_survives_a_failed_one(standing: Deck) -> None:
    for snippet in ("status=incorrect; score=1", "score=200", "status=invalid; score=1"):
        standing.kernel(snippet)
        standing.run("verify", code=1)
    assert standing.read("kernel.sh") == "score=100\n"
    assert standing.seen()["best"]["score"] == 100


def test_a_dry_run_runs_and_writes_nothing(deck: Deck) -> None:
    assert "it would be the first, if it passes" in deck.run("verify", "--dry-run").out
    deck.run("verify")
    deck.kernel("score=120")
    before = deck.seen()["history"]
    answer = deck.json("verify", "--dry-run")
    assert answer["would_compare_with_best"] and answer["would_restore_on_regression"]
    assert deck.seen()["history"] == before
    assert deck.read("kernel.sh") == "score=120\n"


def test_the_story_tells_what_was_written_and_why(standing: Deck) -> None:
    standing.kernel("score=120")
    standing.run("verify", code=1)
    story = "\n".join(standing.seen()["story"])
    assert "slower by 20.0 %" in story
    assert "wrote kernel.sh (done): slower than the best" in story
    assert "cli called guarded_final_verify: exit 1" in story


def test_a_workspace_may_be_named_from_anywhere(tmp_path, standing: Deck) -> None:
    inner = standing.root / "deep" / "er"
    inner.mkdir(parents=True)
    assert plain(tmp_path / "other").json("verify", "-C", str(inner))["outcome"] == "confirmed"


def test_an_edit_that_was_replaced_can_be_had_back(standing: Deck) -> None:
    standing.kernel("score=120")
    answer = standing.json("verify", code=1)
    assert answer["outcome"] == "restored" and standing.read("kernel.sh") == "score=100\n"
    standing.run("restore", "--checkpoint", answer["candidate"][:12])
    assert standing.read("kernel.sh") == "score=120\n"
    assert standing.json("inspect")["best"]["score"] == 100, "the best stays what it was"
