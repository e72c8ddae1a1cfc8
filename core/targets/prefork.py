"""Which trials may be forked from a process that has imported what the workspace declares.

Such a parent (`imports.py`) forks what `forked.py` turns into a trial. Standard library only and Python 3.8's
syntax: all three run in whatever interpreter the trial's command means, beside `watchdog.py`, here and in
the agent's bundle.
"""
# Runs on Python 3.8 and on other people's interpreters: no pathlib.
# ruff: noqa: PTH113, PTH117, PTH118, PTH119

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

IMPORT_WITHIN_S = 120.0
_PYTHON = re.compile(r"python(3(\.[0-9]+)?)?")
_OF_THE_TRIAL = "KERNELDECK_"


class Declined(Exception):
    """Why no trial can be forked, as a sentence without its subject's trial."""


def interpreter(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The path of the interpreter whose parent may fork `argv`; empty when it is to be run from nothing.

    Only `python FILE …`, under an absolute or a bare name: nothing else says what would be imported.
    """
    word = argv[0] if sys.platform == "linux" else ""
    if not _PYTHON.fullmatch(os.path.basename(word)) or len(argv) < 2 or argv[1].startswith("-"):
        return ""
    paths = env.get("PYTHONPATH", "")
    if paths and not all(map(os.path.isabs, paths.split(os.pathsep))):
        return ""  # relative ones mean the trial's folder
    if "/" in word:
        return word if os.path.isabs(word) else ""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(folder, word) for folder in folders if os.path.isabs(folder))
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), "")


def parent_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The trial's environment without what differs from trial to trial."""
    return {name: value for name, value in env.items() if not per_trial(name)}


def per_trial(name: str) -> bool:
    return name == "PWD" or name.startswith(_OF_THE_TRIAL)


def declined_note(reason: str) -> str:
    """What the first trial says that was to be forked."""
    return f"prefork: {reason}: trials start from nothing"


def took_too_long(modules: str, within_s: float) -> str:
    return f"importing {modules} took longer than {within_s:g} s"
