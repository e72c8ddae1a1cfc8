"""Workspaces for the app in a real terminal; their hosts stay until the test ends them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.deck import REPO, Deck, configured, environment
from tests.host.hosting import STAYS, end_host
from tests.terminal.tmux import Pane


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A user's environment with 256 colours, whose socket and settings are the test's own."""
    with tempfile.TemporaryDirectory(prefix="kd-run-") as folder:
        given = {
            **STAYS, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": str(tmp_path / "settings"),
            "TERM": "tmux-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(REPO),
            "COLORTERM": None, "SSH_CONNECTION": None, "NO_COLOR": None, "TMUX": None, "LC_ALL": None,
        }  # fmt: skip
        for name, value in given.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        yield environment(given)


@pytest.fixture
def deck(tmp_path: Path, surroundings: dict[str, str]) -> Iterator[Deck]:
    made = configured(tmp_path / "knobs")
    made.bounded(120)
    yield made
    end_host(made.root)


@pytest.fixture
def pane(deck: Deck, surroundings: dict[str, str]) -> Iterator[Callable[..., Pane]]:
    """Opens panes in the workspace: with other variables, another size."""
    with ExitStack() as opened:

        def open_pane(size: tuple[int, int] = (80, 24), cwd: Path | None = None, **changes: str) -> Pane:
            return opened.enter_context(Pane(cwd or deck.root, {**surroundings, **changes}, size))

        yield open_pane
