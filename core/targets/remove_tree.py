"""Removing what a trial left, whatever it did to its permissions and however deep it nested folders."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a file or a folder with all in it. Links are removed, never followed. OSError when some stays.

    Folders inside folders are first moved up, so that neither recursion nor a path's length sets a limit.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    _open_up(path)
    while folders := _emptied_of_files(path):
        for folder in folders:
            _open_up(folder)
            for inner in _emptied_of_files(folder):
                _open_up(inner)
                inner.rename(path / secrets.token_hex(16))
            folder.rmdir()
    path.rmdir()


def _emptied_of_files(folder: Path) -> list[Path]:
    """Remove all but the folders in `folder`; those."""
    with os.scandir(folder) as entries:
        found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
    for path, is_folder in found:
        if not is_folder:
            path.unlink(missing_ok=True)
    return [path for path, is_folder in found if is_folder]


def _open_up(folder: Path) -> None:
    mode = stat.S_IMODE(folder.lstat().st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(mode | stat.S_IRWXU)
