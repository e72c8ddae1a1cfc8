"""Shared by the tests of the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deck import configured
from tests.tui.seeding import History, opened


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = opened(tmp_path / "w")
    yield made
    made.store.close()
    made.reader.store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a config file and two knobs, called sums."""
    return configured(tmp_path / "sums").root
