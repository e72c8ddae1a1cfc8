"""What tests of the app share: its processes, and a sweep that waits for a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.deck import Deck, processes_with, wait_until
from tests.host.hosting import gated
from tests.terminal.tmux import Pane

PaneMaker = Callable[..., Pane]


def app_pids(deck: Deck) -> list[int]:
    """The app's processes, the one that guards the terminal first."""
    found = []
    for pid in processes_with(str(deck.root)):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"tui" in words:
            found.append(pid)
    return sorted(found)


def waiting_sweep(deck: Deck) -> tuple[Path, Path]:
    """From the third trial on, trials say so by the first file, and go on once the second is there."""
    seen = deck.root.parent / "seen"
    return gated(deck, f'[ "$(cat {seen} 2>/dev/null | wc -l)" -ge 2 ] || {{ echo >> {seen}; false; }}')


def sweep_that_waits(deck: Deck) -> Path:
    """A detached sweep in whose third trial nothing happens until the file is there."""
    reached, go_on = waiting_sweep(deck)
    deck.run("sweep", "config", "--detach")
    wait_until(reached.exists, "the trial that waits")
    return go_on
