"""Workspaces for the guard's tests, made and run as in those of the command line."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from tests.cli.deck import Deck, plain


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """A workspace whose kernel scores 100 ms, deterministic."""
    return plain(tmp_path / "sums")


@pytest.fixture(scope="session")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Such a workspace after its first verification, to be copied."""
    deck = plain(tmp_path_factory.mktemp("verified") / "sums")
    deck.run("verify")
    return deck.root


@pytest.fixture
def standing(verified: Path, tmp_path: Path) -> Deck:
    """The same with a best: 100 ms."""
    return Deck(Path(shutil.copytree(verified, tmp_path / "sums")))
