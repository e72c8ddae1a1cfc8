"""Whether the user's ssh configuration has a block for a name; read without the ssh library."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from core.targets.regular_file import read_regular
from core.targets.ssh.home import expanded

_MOST_BYTES = 1 << 20
_DEEPEST_INCLUDE = 4


def has_host_block(name: str) -> bool:
    """Whether a Host line of ~/.ssh/config, or of what it includes, means `name`; one for all does not."""
    try:
        path = expanded("~/.ssh/config")
    except ValueError:
        return False
    return any(
        pattern.strip("*") and fnmatchcase(name.lower(), pattern.lower()) for pattern in _patterns(path)
    )


def _patterns(path: Path, depth: int = 0) -> Iterator[str]:
    try:
        content = read_regular(Path(os.path.realpath(path)), _MOST_BYTES)
    except (OSError, ValueError):
        return
    for line in content.decode("utf-8", "replace").splitlines():
        keyword, *words = line.strip().replace("=", " ", 1).replace('"', " ").split() or [""]
        if keyword.lower() == "host":
            yield from words
        elif keyword.lower() == "include" and depth < _DEEPEST_INCLUDE:
            for word in words:
                yield from _included(path, word, depth + 1)


def _included(path: Path, word: str, depth: int) -> Iterator[str]:
    try:
        named = expanded(word)
    except ValueError:
        return
    folder, pattern = (Path("/"), str(named)[1:]) if named.is_absolute() else (path.parent, word)
    for found in sorted(folder.glob(pattern)):
        yield from _patterns(found, depth)
