"""Reading and replacing single files of a workspace, never beyond its folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.errors import ConfigFault
from core.records import FileSet, FileVersion
from sessions.atomic_file import remove_quietly, sync_folder, write_beside
from sessions.faults import shown

TEMP_PREFIX, TEMP_SUFFIX = ".kerneldeck-", ".tmp"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it was read: its bytes, and whether its owner may execute it."""

    content: bytes
    executable: bool

    @property
    def version(self) -> FileVersion:
        return FileVersion(hashlib.sha256(self.content).hexdigest(), self.executable)


class WorkspaceFiles:
    """Files by their path relative to the workspace; a link inside it stands for the file it leads to."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def real_path(self, name: str) -> Path:
        """Where the file lies. ConfigFault when that is not inside the workspace."""
        parts = PurePosixPath(name).parts
        if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
            raise ConfigFault(
                f"{shown(name)}: not a path inside the workspace",
                "name files relative to the workspace's folder",
            )
        real = Path(os.path.realpath(self.root / name))
        if real == self.root or not real.is_relative_to(self.root):
            raise ConfigFault(
                f"{shown(name)}: a symbolic link that leads out of the workspace, to {shown(real)}",
                "put the file itself there; Kerneldeck changes nothing outside the workspace",
            )
        return real

    def read(self, name: str) -> ReadFile | None:
        """The file now; None when it is absent. ConfigFault when it is no readable regular file."""
        path = self.real_path(name)
        try:
            # Not blocking: a named pipe in its place must not hang us.
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ConfigFault(
                f"{shown(name)}: cannot be read: {error.strerror}", "check its permissions and what it is"
            ) from error
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            os.close(handle)
            raise ConfigFault(f"{shown(name)}: not a regular file", "name files, not folders or devices")
        with os.fdopen(handle, "rb") as file:
            return ReadFile(file.read(), bool(mode & stat.S_IXUSR))

    def version(self, name: str) -> FileVersion | None:
        found = self.read(name)
        return None if found is None else found.version

    def versions(self, names: Iterable[str]) -> FileSet:
        """Versions of the files that exist; reads only."""
        found = {name: self.version(name) for name in names}
        return {name: version for name, version in found.items() if version is not None}

    def stage(self, name: str, content: bytes, executable: bool) -> Path:
        """Write `content` beside the file, on disk and with the mode it is to have; the temporary path.

        OSError: nothing is left behind.
        """
        path = self.real_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = write_beside(path.parent, TEMP_PREFIX, TEMP_SUFFIX, content)
        try:
            _take_mode(temp, path, executable)
        except OSError:
            remove_quietly(temp)
            raise
        return temp

    def place(self, name: str, temp: Path | None) -> None:
        """Put a staged file in place, or remove the file when `temp` is None; on disk when it returns."""
        path = self.real_path(name)
        if temp is None:
            path.unlink(missing_ok=True)
        else:
            try:
                temp.replace(path)
            except OSError:
                remove_quietly(temp)
                raise
        sync_folder(path.parent)

    def remove_stale_temps(self, names: Iterable[str]) -> int:
        """Remove staged files that a killed process left beside the named files; how many."""
        left: set[Path] = set()
        for name in names:
            with suppress(ConfigFault):
                left.update(self.real_path(name).parent.glob(f"{TEMP_PREFIX}*{TEMP_SUFFIX}"))
        for path in left:
            remove_quietly(path)
        return len(left)


def _take_mode(temp: Path, old: Path, executable: bool) -> None:
    """Give `temp` the mode of `old` (and its owner, when we may), then the executable bits asked for."""
    try:
        before = old.stat()
    except FileNotFoundError:
        before = temp.stat()
    if os.geteuid() == 0:
        # Somebody else's file stays theirs when root writes it, on disks that allow it.
        with suppress(PermissionError):
            os.chown(temp, before.st_uid, before.st_gid)
    mode = stat.S_IMODE(before.st_mode) & 0o777
    readable = (mode & 0o444) >> 2
    temp.chmod(mode | readable if executable else mode & ~0o111)
