"""Workspaces for the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.deck import Deck, configured, plain


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """A workspace whose kernel scores 100 ms, deterministic, with modes dev and final."""
    return plain(tmp_path / "sums")


@pytest.fixture
def knobbed(tmp_path: Path) -> Deck:
    """A workspace with a config file and two knobs."""
    return configured(tmp_path / "knobs")
