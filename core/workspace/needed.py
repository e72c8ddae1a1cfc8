"""Which files of a workspace a trial needs."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.errors import ConfigFault

_NEVER = frozenset(
    {".git", ".kerneldeck", ".venv", "venv", "env", "node_modules", "__pycache__", ".hg", ".svn",
     ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints"}
)  # fmt: skip


def needed_files(root: Path, globs: tuple[str, ...] = ()) -> list[str]:
    """Sorted paths (relative, forward slashes) of the regular files that trials lay out.

    With `globs` the files they match; otherwise what git tracks or would track, and outside a git
    checkout every file. Version control, state, virtual environments and caches never count. A symbolic
    link that leads out of `root` is refused (ConfigFault), since a trial could then write through it.
    """
    names = _matching(root, globs) if globs else _by_git(root) or _walk(root)
    return sorted({name for name in names if not _NEVER & set(name.split("/")) and _is_file(root, name)})


def _matching(root: Path, globs: tuple[str, ...]) -> Iterator[str]:
    for pattern in globs:
        found = [path for path in root.glob(pattern) if not path.is_dir()]
        if not found:
            raise ConfigFault(
                f"files.needed: {pattern!r} matches nothing in {root}", "correct it or take it out"
            )
        yield from (path.relative_to(root).as_posix() for path in found)


def _by_git(root: Path) -> list[str]:
    """What git keeps; empty outside a checkout, without git, and in a folder that git ignores."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else []


def _walk(root: Path) -> Iterator[str]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [
            name for name in subfolders if name not in _NEVER and not _is_environment(folder, name)
        ]
        for name in names:
            yield Path(folder, name).relative_to(root).as_posix()


def _is_environment(folder: str, name: str) -> bool:
    return Path(folder, name, "pyvenv.cfg").exists()


def _is_file(root: Path, name: str) -> bool:
    path = root / name
    refuse_escape(root, name)
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False  # tracked but deleted, or a dangling link


def refuse_escape(root: Path, name: str) -> None:
    """ConfigFault when `name`, links followed, is not inside `root`."""
    real = (root / name).resolve()
    if not real.is_relative_to(root.resolve()):
        raise ConfigFault(
            f"{name} leads out of the workspace, to {real}",
            "replace the link by the file, or leave it out with files.needed",
        )


def total_bytes(root: Path, names: Iterable[str]) -> int:
    """Sum of the files' sizes in bytes."""
    return sum((root / name).stat().st_size for name in names)
