"""Where a workspace's state of record lies, and making that folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from core.errors import ConfigFault, StorageFault
from sessions.faults import shown, storing
from sessions.filesystem import is_network

FOLDER_NAME = ".kerneldeck"
STATE_DIR = "KERNELDECK_STATE_DIR"


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The state folder of one workspace; `network` when other machines may share its file system."""

    workspace: Path
    folder: Path
    network: bool = False

    @property
    def database(self) -> Path:
        return self.folder / "state.sqlite3"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def blobs(self) -> Path:
        return self.folder / "blobs"

    @property
    def outputs(self) -> Path:
        return self.folder / "outputs"

    @property
    def staging(self) -> Path:
        return self.folder / "staging"

    @property
    def linked(self) -> Path:
        """Read-only copies of large files, linked into staging folders."""
        return self.folder / "linked"

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    def output_of(self, trial_id: int) -> Path:
        """The folder that keeps what one trial printed."""
        return self.outputs / str(trial_id)


def locate(root: Path, state_dir: str = "", environ: Mapping[str, str] = os.environ) -> StatePlace:
    """Where the state of the workspace at `root` lies; creates nothing.

    `KERNELDECK_STATE_DIR`, else `state_dir` of the toml, names a folder (absolute, or relative to the
    workspace) that may serve several workspaces: each gets a subfolder named by its real path's hash.
    """
    workspace = Path(os.path.realpath(root))
    said = environ.get(STATE_DIR, "") or state_dir
    if not said:
        folder = workspace / FOLDER_NAME
    else:
        digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()
        folder = workspace / _expanded(said) / digest[:16]
    return StatePlace(workspace, folder, is_network(folder, environ))


def create(place: StatePlace) -> None:
    """Make the state folder (mode 0700, kept out of git) where it is absent.

    StorageFault: no room, no permission, a read-only disk, something else in its place, or a symbolic
    link of another user.
    """
    refuse_foreign(place)
    with storing("create the state folder", place.folder):
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (place.blobs, place.outputs, place.staging, place.linked, place.scratch):
            folder.mkdir(mode=0o700, exist_ok=True)
        _write_once(place.folder / ".gitignore", b"*\n")
        _write_once(place.folder / "workspace", os.fsencode(place.workspace) + b"\n")


def refuse_foreign(place: StatePlace) -> None:
    """StorageFault when the state folder is no folder, or a symbolic link that another user controls."""
    try:
        link = place.folder.lstat()
    except (FileNotFoundError, PermissionError):
        return
    except NotADirectoryError as error:
        raise _not_a_folder(place.folder.parent) from error
    target = _target(place.folder)
    if stat.S_ISLNK(link.st_mode) and {link.st_uid, target.st_uid} - {os.geteuid(), 0}:
        raise StorageFault(
            f"{shown(place.folder)} is a symbolic link that belongs, or leads to a folder that belongs, "
            "to another user",
            "remove the link, or name a folder of your own with KERNELDECK_STATE_DIR",
        )
    if not stat.S_ISDIR(target.st_mode):
        raise _not_a_folder(place.folder)


def _expanded(said: str) -> Path:
    try:
        return Path(said).expanduser()
    except RuntimeError as error:
        raise ConfigFault(
            f"the state folder {shown(said)}: that user has no home folder here",
            f"write the folder out, in kerneldeck.toml (state_dir) or {STATE_DIR}",
        ) from error


def _target(folder: Path) -> os.stat_result:
    try:
        return folder.stat()
    except OSError as error:
        raise StorageFault(
            f"{shown(folder)} is a symbolic link that leads nowhere", "remove it, or make the folder it names"
        ) from error


def _not_a_folder(path: Path) -> StorageFault:
    return StorageFault(
        f"{shown(path)} is in the way: the state folder is to be there",
        "move it away, or name another folder with KERNELDECK_STATE_DIR",
    )


def _write_once(path: Path, content: bytes) -> None:
    with suppress(FileExistsError), path.open("xb") as file:
        file.write(content)
