"""Workspaces whose hosts stay until the test ends them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deck import Deck, configured, environment, plain
from tests.host.hosting import STAYS, end_host


@pytest.fixture(autouse=True)
def as_a_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process's environment is a user's, and a host started from it stays."""
    import os

    wanted = environment(STAYS)
    for name in set(os.environ) - set(wanted) - {"PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    with tempfile.TemporaryDirectory(prefix="kd-run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


def patient(deck: Deck) -> Deck:
    """Its trials may wait for what a test does meanwhile."""
    deck.bounded(120)
    return deck


@pytest.fixture
def deck(tmp_path: Path) -> Iterator[Deck]:
    made = patient(plain(tmp_path / "sums"))
    yield made
    end_host(made.root)


@pytest.fixture
def knobbed(tmp_path: Path) -> Iterator[Deck]:
    made = patient(configured(tmp_path / "knobs"))
    yield made
    end_host(made.root)
