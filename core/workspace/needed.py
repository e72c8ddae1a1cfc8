"""Which files of a workspace a trial needs."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from core.errors import ConfigFault

_NEVER = frozenset(
    {".git", ".kerneldeck", ".venv", "node_modules", "__pycache__", ".hg", ".svn", ".pytest_cache",
     ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".ipynb_checkpoints"}
)  # fmt: skip
_MARKS = ("pyvenv.cfg", "conda-meta", "state.sqlite3")  # of virtual environments, and of our own state
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_GIT_WITHIN_S = 60


def needed_files(root: Path, globs: tuple[str, ...] = ()) -> list[str]:
    """Sorted paths (relative, forward slashes) of the regular files that trials lay out.

    With `globs` the files they match, a folder named without wildcards standing for all in it; otherwise
    what git tracks or would track, and outside a git checkout every file, but for folders whose own
    `.gitignore` is `*`. Links inside the workspace count as what they lead to. Version control, state,
    virtual environments and caches never count. ConfigFault for a link that leads out of `root`, since a
    trial could then write through it, and for what cannot be read.
    """
    folder = _Folder(root)
    names = _matching(root, globs) if globs else _by_git(root) or folder.below("", ignoring=True)
    return sorted({file for name in names for file in folder.expanded(name)})


class _Folder:
    """A workspace's folder as it is looked through; each folder in it is judged once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._left_out: dict[PurePosixPath, bool] = {PurePosixPath("."): False}

    def expanded(self, name: str) -> Iterator[str]:
        """The regular file itself; of a folder (a link to one, a repository inside) all files in it."""
        path = PurePosixPath(name)
        if path.name in _NEVER or self._never(path.parent):
            return
        kind = self._kind(name)
        if kind == stat.S_IFREG:
            yield name
        elif kind == stat.S_IFDIR and not self._never(path):
            yield from self.below(name, chain=tuple(self._real(parent) for parent in path.parents))

    def below(self, name: str, ignoring: bool = False, chain: tuple[str, ...] = ()) -> Iterator[str]:
        """The regular files below a folder; `chain` are the real folders that led here."""
        real = self._real(name)
        if real in chain:
            return  # a link back to where we came from
        for entry in self._entries(name):
            inner = f"{name}/{entry}" if name else entry
            kind = 0 if entry in _NEVER else self._kind(inner)
            if kind == stat.S_IFREG:
                yield inner
            elif kind == stat.S_IFDIR and not self._passed_over(inner, ignoring):
                yield from self.below(inner, ignoring, (*chain, real))

    def _passed_over(self, name: str, ignoring: bool) -> bool:
        return self._never(PurePosixPath(name)) or (ignoring and self._ignores_itself(name))

    def _real(self, name: str | PurePosixPath) -> str:
        return os.path.realpath(self.root / name)

    def _entries(self, name: str) -> list[str]:
        try:
            return [path.name for path in (self.root / name).iterdir()]
        except OSError as error:
            raise _unreadable(name or ".", error) from None

    def _never(self, path: PurePosixPath) -> bool:
        """Whether a folder is, or lies in, what never counts."""
        known = self._left_out.get(path)
        if known is None:
            known = path.name in _NEVER or self._never(path.parent) or self._marked(path)
            self._left_out[path] = known
        return known

    def _marked(self, path: PurePosixPath) -> bool:
        try:
            return any((self.root / path / mark).exists() for mark in _MARKS)
        except OSError:
            return False

    def _kind(self, name: str) -> int:
        """What stands there, links followed, as `stat.S_IFREG` or another; 0 for nothing."""
        path = self.root / name
        try:
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                refuse_escape(self.root, name)
                mode = path.stat().st_mode
        except OSError as error:
            if error.errno in _ABSENT:  # tracked but deleted, or a link to nothing
                return 0
            raise _unreadable(name, error) from None
        return stat.S_IFMT(mode)

    def _ignores_itself(self, name: str) -> bool:
        try:
            lines = (self.root / name / ".gitignore").read_bytes().splitlines()
        except OSError:
            return False
        return [line.strip() for line in lines if line.strip() and not line.startswith(b"#")] == [b"*"]


def _matching(root: Path, globs: tuple[str, ...]) -> Iterator[str]:
    for pattern in globs:
        found = list(_matches(root, pattern))
        if not found:
            raise ConfigFault(
                f"files.needed: {pattern!r} matches nothing in {root}", "correct it or take it out"
            )
        for path in found:
            name = os.path.normpath(path.relative_to(root))
            refuse_escape(root, name)
            yield name


def _matches(root: Path, pattern: str) -> Iterator[Path]:
    """Folders only where they are named outright: `*` means files."""
    outright = not set("*?[") & set(pattern)
    wanted = f"{pattern}/*" if pattern.endswith("**") else pattern
    try:
        yield from (path for path in root.glob(wanted) if outright or not path.is_dir())
    except (ValueError, NotImplementedError):
        raise ConfigFault(
            f"files.needed: {pattern!r} is no pattern of files in the workspace",
            "write it relative to the workspace's folder, like data/*.bin",
        ) from None


def _by_git(root: Path) -> list[str]:
    """What git keeps; empty outside a checkout, without git, and in a folder that git ignores."""
    command = ["git", "-C", str(root), "-c", "core.fsmonitor=false", "ls-files", "-z",
               "--cached", "--others", "--exclude-standard"]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_GIT_WITHIN_S, stdin=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if done.returncode != 0:
        return []
    return [os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name]


def refuse_escape(root: Path, name: str) -> None:
    """ConfigFault when `name`, links followed, is not inside `root`."""
    real = Path(os.path.realpath(root / name))
    if not real.is_relative_to(os.path.realpath(root)):
        raise ConfigFault(
            f"{name} leads out of the workspace, to {real}",
            "replace the link by the file, or leave it out with files.needed",
        )


def _unreadable(name: str, error: OSError) -> ConfigFault:
    return ConfigFault(
        f"{name} cannot be read: {error.strerror}",
        "make it readable, or name the files that trials need with files.needed",
    )


def total_bytes(root: Path, names: Iterable[str]) -> int:
    """Sum of the files' sizes in bytes."""
    return sum((root / name).stat().st_size for name in names)
