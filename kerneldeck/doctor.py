"""`kerneldeck doctor`: written below."""

from __future__ import annotations

from pathlib import Path


def examine(start: Path, as_json: bool) -> int:
    return 0
