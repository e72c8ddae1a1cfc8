"""Removing what a trial left, whatever it did to its permissions."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all in it, even where a benchmark took its own permissions away.

    Symbolic links are removed, never followed. OSError when something stays.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    closed = [path]
    while closed:
        folder = closed.pop()
        mode = stat.S_IMODE(folder.lstat().st_mode)
        if mode & 0o700 != 0o700:
            folder.chmod(mode | 0o700)
        with os.scandir(folder) as entries:
            closed += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    shutil.rmtree(path)
