"""What starting costs: the modules that a command loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.deck import Deck, environment

HEAVY = {"numpy", "scipy", "rich", "textual", "asyncssh", "pydantic", "sqlite3", "asyncio", "torch", "triton"}


def loaded(deck: Deck, *words: str) -> set[str]:
    """Top names of all modules that a command imported."""
    command = [sys.executable, "-X", "importtime", "-m", "kerneldeck", *words]
    done = subprocess.run(command, cwd=deck.root, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize("words", [["--help"], ["verify", "--help"], ["--version"], ["completion", "zsh"]])
def test_help_loads_nothing_heavy(deck: Deck, words: list[str]) -> None:
    assert loaded(deck, *words) & HEAVY == set()


def test_looking_loads_neither_numpy_nor_scipy(deck: Deck) -> None:
    deck.run("verify")
    for words in (["inspect", "--json"], ["rank", "--json"], ["inspect"]):
        assert loaded(deck, *words) & {"numpy", "scipy", "textual", "asyncssh", "pydantic", "torch"} == set()
