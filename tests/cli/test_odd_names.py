"""Files and folders with names that no shell likes, long paths, and links."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.cli.deck import TOML, Deck, plain

ODD = [
    "my kernel.sh",
    "it's.sh",
    'say "hi".sh',
    "-rf",
    "--json",
    "new\nline.sh",
    "ünï☃.sh",
    "$(x)`y`;z.sh",
    "a*b?.sh",
]


@pytest.fixture
def odd(deck: Deck) -> Deck:
    """Every file of these names must be there, and the first line of one is the score."""
    names = ", ".join(json.dumps(name) for name in ODD)
    deck.write("kerneldeck.toml", TOML.replace('mutable = ["kernel.sh"]', f"mutable = [{names}]"))
    reads = "\n".join(f"cat {shlex.quote(f'./{name}')} || exit 1" for name in ODD)
    result = '{\\"status\\": \\"passed\\", \\"total_ms\\": $score}'
    deck.write("benchmark.sh", f'#!/bin/sh\nscore=$({{ {reads}\n}} | head -n 1)\necho "{result}"\n')
    for name in ODD:
        deck.write(name, "100\n")
    return deck


def test_odd_file_names_go_through_the_whole_job(odd: Deck) -> None:
    odd.run("verify")
    before = odd.files()
    for name in ODD:
        odd.write(name, "120\n")
    odd.run("inspect")
    answer = odd.json("verify", code=1)
    assert answer["outcome"] == "restored", answer["reason"]
    assert sorted(answer["restored_files"]) == sorted(ODD)
    assert odd.files() == before
    odd.write("-rf", "1\n")
    odd.write("--json", "2\n")
    assert "restored --json" in odd.run("restore", "--files", "--json").out
    assert "restored -rf" in odd.run("restore", "--files=-rf").out
    assert odd.files() == before


@pytest.mark.parametrize("name", ["it's two\" words", "-C", "new\nline", "ünï☃$(x)`y`;z"])
def test_a_workspace_may_lie_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    deck = plain(tmp_path / name)
    assert deck.json("verify")["outcome"] == "first_best"
    assert deck.run("inspect").out
    outside = Deck(tmp_path)
    assert outside.json("verify", "-C", name)["outcome"] == "confirmed"


def test_a_path_of_300_characters_and_more_works(tmp_path: Path) -> None:
    folder = tmp_path / "/".join(["d" * 50] * 6)
    deck = plain(folder)
    assert len(str(folder)) > 300
    deck.run("verify")
    deck.kernel("score=120")
    assert deck.json("verify", code=1)["outcome"] == "restored"


def test_a_name_longer_than_any_file_system_takes_is_a_sentence(deck: Deck) -> None:
    assert "File name too long" in deck.fault("run", "-C", "x" * 300)


def test_a_mutable_link_that_leads_out_is_refused(deck: Deck) -> None:
    outside = deck.root.parent / "outside.sh"
    outside.write_text("score=1\n")
    (deck.root / "kernel.sh").unlink()
    (deck.root / "kernel.sh").symlink_to(outside)
    for words in (["run"], ["verify"]):
        fault = deck.fault(*words)
        assert "kernel.sh" in fault and "leads out of the workspace" in fault
    assert outside.read_text() == "score=1\n"


def test_any_link_that_leads_out_is_refused_with_the_remedy(deck: Deck) -> None:
    (deck.root / "linked.txt").symlink_to("/etc/hostname")
    assert "leave it out with files.needed" in deck.fault("run")
    deck.write("kerneldeck.toml", TOML.replace("protected =", 'needed = ["*.sh"]\nprotected ='))
    assert deck.json("run")["status"] == "ok"


def test_links_inside_the_workspace_stand_for_their_files(deck: Deck) -> None:
    (deck.root / "kernel.sh").rename(deck.root / "real.sh")
    (deck.root / "kernel.sh").symlink_to("real.sh")
    deck.run("verify")
    deck.write("real.sh", "score=120\n")
    assert deck.json("verify", code=1)["outcome"] == "restored"
    assert (deck.root / "kernel.sh").is_symlink() and deck.read("real.sh") == "score=100\n"


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link", "loop of links"])
def test_something_else_in_the_place_of_a_mutable_file_is_a_sentence(deck: Deck, kind: str) -> None:
    deck.run("verify")
    path = deck.root / "kernel.sh"
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("kernel.sh" if kind == "loop of links" else "nowhere.sh")
    done = deck.run("verify", code=None)
    assert done.code in (1, 2) and done.said.strip()
    if kind == "dangling link":
        assert "restored" in done.out and path.read_text() == "score=100\n"
    else:
        assert "kernel.sh" in done.err
    assert deck.json("inspect", code=None)


def test_the_folder_one_stands_in_may_be_gone(deck: Deck) -> None:
    gone = deck.root / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    fault = deck.fault("inspect", before=("sh", "-c", script, "sh"))
    assert "cannot be looked into" in fault


def test_no_workspace_is_a_sentence_with_the_way_to_one(tmp_path: Path) -> None:
    deck = Deck(tmp_path)
    for words in (["run"], ["inspect"], ["rank"], ["sweep", "config"]):
        fault = deck.fault(*words)
        assert "is no workspace" in fault and "make one with: kerneldeck init" in fault
    assert "does not exist" in deck.fault("run", "-C", "nowhere")
    assert list(tmp_path.iterdir()) == []
