"""A trial's tree out of what an earlier trial left of its own, instead of thousands of new links.

What was left is not believed. What does not belong goes; a folder that is not as it would be made new is a
reason to lay out everything new; and a file stays only when it is the kept content itself (`agent_tree`).
Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.targets.remove_tree import remove_tree
else:
    from remove_tree import remove_tree


def names_inside(files: list[str], folders: list[str]) -> dict[str, set[str]]:
    """Of each folder of a tree ("" is the tree itself) the names in it."""
    inside: dict[str, set[str]] = {"": set()}

    def add(path: str) -> None:
        parent, _, name = path.rpartition("/")
        if parent not in inside:
            inside[parent] = set()
            add(parent)
        inside[parent].add(name)

    for folder in folders:
        inside.setdefault(folder, set())
        add(folder)
    for path in files:
        add(path)
    return inside


def files_kept(root: str, inside: dict[str, set[str]]) -> dict[str, tuple[int, int]] | None:
    """Remove from below `root` what does not belong; device and inode of each file that is left, by name.

    None when a folder is missing, or is not as it would be made new; files may be missing.
    """
    umask = os.umask(0)
    os.umask(umask)
    kept: dict[str, tuple[int, int]] = {}
    try:
        for folder in sorted(inside):  # parents first: nothing is removed through a link
            place = f"{root}/{folder}" if folder else root
            if not _as_made(place, 0o777 & ~umask):
                return None
            for name, status in _entries(place):
                path = f"{folder}/{name}" if folder else name
                is_folder = stat.S_ISDIR(status.st_mode)
                if name not in inside[folder] or (is_folder and path not in inside):
                    remove_tree(Path(f"{place}/{name}"))
                elif not is_folder:
                    kept[path] = (status.st_dev, status.st_ino)
    except OSError:
        return None
    return kept


def _entries(place: str) -> list[tuple[str, os.stat_result]]:
    with os.scandir(place) as entries:
        return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]


def _as_made(place: str, mode: int) -> bool:
    """Whether this is a folder of ours with these rights and no others, on lists or by attributes."""
    status = os.lstat(place)
    plain = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return plain and status.st_mode & 0o5777 == mode and not _attributes(place)


def _attributes(place: str) -> list[str]:
    listed: list[str] = []
    if hasattr(os, "listxattr"):
        with suppress(OSError):  # a file system without any
            listed = os.listxattr(place, follow_symlinks=False)
    return [name for name in listed if name != "security.selinux"]
