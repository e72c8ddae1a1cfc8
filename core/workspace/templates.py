"""The shipped workspaces: their names, and laying one out in a folder."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import core
from core.errors import ArgumentFault, ConfigFault
from core.workspace.config import CONFIG_NAME
from core.workspace.toml_reader import read_workspace

TIMING_FILE = "kerneldeck_timing.py"
_CACHES = frozenset(
    {"__pycache__", ".kerneldeck", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
)


def shipped() -> Path:
    """The folder of the shipped workspaces: `kernels` beside `core`, in a checkout and in an installation."""
    return Path(core.__file__).parents[1] / "kernels"


def template_names() -> list[str]:
    """Sorted names of the shipped workspaces."""
    return sorted(path.parent.name for path in shipped().glob(f"*/{CONFIG_NAME}"))


def lay_out(name: str, destination: Path) -> list[Path]:
    """Copy the shipped workspace `name` into `destination` (made when missing); the files written.

    The timing file comes along when the template's benchmark uses it. ArgumentFault for a name that is
    not shipped. ConfigFault when any file is in the way already or cannot be written: then none is left.
    """
    known = template_names()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"shipped: {', '.join(known)}"
        raise ArgumentFault(f"there is no template {name!r}", hint)
    template = shipped() / name
    files = {path.relative_to(template): path for path in _files(template)}
    timing = read_workspace(template).config.extras.timing
    if timing:
        files.setdefault(Path(timing), shipped() / TIMING_FILE)
    return _copy(files, destination)


def lay_timing_file(root: Path) -> Path:
    """Copy the timing file into `root` for a benchmark to import; ConfigFault when one is there already."""
    return _copy({Path(TIMING_FILE): shipped() / TIMING_FILE}, root)[0]


def _files(template: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(template):
        subfolders[:] = sorted(set(subfolders) - _CACHES)
        yield from (Path(folder, name) for name in sorted(names) if not name.endswith(".pyc"))


def _copy(files: Mapping[Path, Path], destination: Path) -> list[Path]:
    """Copy `files` (relative target to source) below `destination`, all of them or none."""
    for target in sorted(files):
        _refuse_clash(destination, target)
    written: list[Path] = []
    try:
        for target, source in sorted(files.items()):
            path = destination / target
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                written.append(path)
                file.write(source.read_bytes())
            shutil.copymode(source, path)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise ConfigFault(
            f"{error.filename or destination} cannot be written: {error.strerror}",
            "name a folder that you can write to",
        ) from None
    return written


def _refuse_clash(destination: Path, target: Path) -> None:
    """ConfigFault when the target exists, or a file stands where one of its folders should be."""
    path = destination / target
    folders = [parent for parent in (destination, *path.parents) if destination in (parent, *parent.parents)]
    blocked = [folder for folder in folders if os.path.lexists(folder) and not folder.is_dir()]
    if os.path.lexists(path) or blocked:
        in_the_way = blocked[0] if blocked else path
        raise ConfigFault(
            f"{in_the_way} is in the way and is never overwritten", "name an empty or new folder"
        )
