"""State that cannot be written or read: a sentence, nothing lost, and going on afterwards."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.deck import Deck, environment

# Root may write everywhere; without its capabilities it is held to permissions like anybody.
UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
NO_ROOM = ("sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
LITTLE_ROOM = ("sh", "-c", 'ulimit -f 150; exec "$@"', "sh")


@pytest.fixture
def best(deck: Deck) -> Deck:
    deck.run("verify")
    deck.kernel("score=120")
    return deck


def whole(deck: Deck) -> None:
    """The workspace goes on as if nothing had been."""
    assert deck.json("verify", code=1)["outcome"] == "restored"
    assert deck.read("kernel.sh") == "score=100\n"
    assert not list(deck.root.glob(".kerneldeck-*")), "a temporary file was left"


def test_a_full_disk_is_a_sentence_and_loses_nothing(best: Deck) -> None:
    before = best.files()
    for words in (["verify"], ["restore"], ["run"], ["sweep", "config"], ["result"]):
        done = best.run(*words, before=NO_ROOM, code=None)
        assert done.code in (1, 2, 3) and done.said.strip()
        assert best.files() == before, words
    assert "free space there" in best.fault("run", before=NO_ROOM, code=1)
    whole(best)


def test_little_room_is_a_sentence_and_loses_nothing(best: Deck) -> None:
    """The state fits no more, other files do: whatever a command got done is done, and whole."""
    for _ in range(3):
        best.run("verify", before=LITTLE_ROOM, code=None)
        assert best.read("kernel.sh") in ("score=100\n", "score=120\n")
    best.kernel("score=120")
    whole(best)


FILLED = """
set -e
mount -t tmpfs -o size=800k tmpfs "$1"
cp -r "$2" "$1/sums"
cd "$1/sums"
cat /dev/zero > ../filler 2>/dev/null || true
set +e
for words in verify restore run; do
  "$3" -m kerneldeck $words > ../../said 2>&1; echo "$words $?"; cat ../../said; cat kernel.sh
done
rm ../filler
"$3" -m kerneldeck verify; echo "afterwards $?"; cat kernel.sh
"""


def test_a_disk_that_is_really_full(best: Deck, tmp_path: Path) -> None:
    """On a small file system of its own, where this machine lets us have one; else as above, by a limit."""
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    words = ["sh", "-c", FILLED, "sh", str(mounted), str(best.root), sys.executable]
    for namespace in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        trial = [*namespace, "mount", "-t", "tmpfs", "x", str(mounted)]
        if subprocess.run(trial, capture_output=True).returncode == 0:
            done = subprocess.run([*namespace, *words], capture_output=True, text=True, env=environment())
            assert "Traceback" not in done.stdout + done.stderr
            assert "verify 1" in done.stdout and "free space there" in done.stdout
            assert done.stdout.count("score=120\n") == 3, "while it is full nothing is touched"
            assert "afterwards 1" in done.stdout and done.stdout.endswith("score=100\n")
            return
    test_a_full_disk_is_a_sentence_and_loses_nothing(best)


def test_a_workspace_that_may_not_be_written_can_be_looked_at(best: Deck) -> None:
    folders = [best.root, *(path for path in best.root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        seen = best.json("inspect", before=UNPRIVILEGED)
        assert seen["best"]["score"] == 100
        assert best.json("rank", before=UNPRIVILEGED)["rows"]
        fault = best.fault("verify", before=UNPRIVILEGED, code=1)
        assert "no permission" in fault or "read-only" in fault or "cannot be opened" in fault
        assert "state_dir" in fault and "KERNELDECK_STATE_DIR" in fault
    finally:
        for folder in folders:
            folder.chmod(0o755)
    whole(best)


def test_files_that_may_not_be_written_are_not_restored_and_that_is_said(best: Deck, tmp_path: Path) -> None:
    best.root.chmod(0o555)
    try:
        done = best.run("verify", before=UNPRIVILEGED, code=1)
        assert "regressed, not restored: slower than the best; cannot write kernel.sh" in done.out
    finally:
        best.root.chmod(0o755)
    whole(best)


def test_a_folder_that_may_not_be_entered_is_a_sentence(best: Deck) -> None:
    best.root.chmod(0o000)
    try:
        done = Deck(best.root.parent).run("run", "-C", "sums", before=UNPRIVILEGED, code=2)
        assert "cannot be looked into: Permission denied" in done.err
    finally:
        best.root.chmod(0o755)


def test_a_file_that_may_not_be_read_is_named(best: Deck) -> None:
    (best.root / "kernel.sh").chmod(0o000)
    fault = best.fault("verify", before=UNPRIVILEGED)
    assert "kernel.sh: cannot be read: Permission denied" in fault
    (best.root / "kernel.sh").chmod(0o644)
    whole(best)


def test_the_state_may_lie_elsewhere(best: Deck, tmp_path: Path) -> None:
    elsewhere = {"KERNELDECK_STATE_DIR": str(tmp_path / "state")}
    assert best.json("inspect", env=elsewhere)["best"] is None
    assert best.json("verify", env=elsewhere)["outcome"] == "first_best"
    assert list((tmp_path / "state").rglob("state.sqlite3"))


def test_a_newer_state_is_refused_and_left_alone(best: Deck) -> None:
    path = best.root / ".kerneldeck/state.sqlite3"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 999")
    database.close()
    content = path.read_bytes()
    for words in (["inspect"], ["verify"], ["rank"]):
        fault = best.fault(*words)
        assert "newer" in fault
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"my own notes", b"x", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_somebody_elses_file_in_its_place_is_refused_and_left_alone(deck: Deck, content: bytes) -> None:
    deck.write(".kerneldeck/state.sqlite3", content)
    for words in (["inspect"], ["verify"]):
        fault = deck.fault(*words, code=1)
        assert "state.sqlite3" in fault and "move that file away" in fault
    assert (deck.root / ".kerneldeck/state.sqlite3").read_bytes() == content


def test_a_foreign_database_is_refused_and_left_alone(deck: Deck) -> None:
    path = deck.root / ".kerneldeck/state.sqlite3"
    path.parent.mkdir()
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE songs (title TEXT)")
    database.commit()
    database.close()
    content = path.read_bytes()
    assert deck.fault("inspect", code=None) and deck.fault("verify", code=None)
    assert path.read_bytes() == content


def test_without_room_for_temporary_files_a_fault_is_still_a_sentence(best: Deck) -> None:
    best.run("verify", env={"TMPDIR": "/nonexistent"}, code=1)
    assert best.read("kernel.sh") == "score=100\n"


def test_contents_that_were_lost_are_kept_again_where_the_files_still_have_them(deck: Deck) -> None:
    deck.run("verify")
    shutil.rmtree(deck.root / ".kerneldeck/blobs")
    assert deck.json("verify")["outcome"] == "confirmed"
    deck.kernel("score=120")
    assert deck.json("verify", code=1)["outcome"] == "restored"


def test_a_best_whose_contents_are_lost_is_said_to_be_and_nothing_is_touched(best: Deck) -> None:
    shutil.rmtree(best.root / ".kerneldeck/blobs")
    assert "is not kept (any more)" in best.fault("restore", code=1)
    best.run("verify", code=None)
    assert best.read("kernel.sh") == "score=120\n"
