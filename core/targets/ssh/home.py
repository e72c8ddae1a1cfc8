"""Paths that begin in somebody's home folder, which a user of a container may not have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def expanded(text: str) -> Path:
    """`text` as a path, a leading ~ being a home folder; ValueError with what is wrong."""
    if "\0" in text:
        raise ValueError(f"{text!r} holds a NUL byte")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(f"{text!r}: that home folder is not known here") from None


def users_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """The folder that an XDG `variable` names, else the usual one; None for a user without a home folder."""
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    try:
        return expanded(f"~/{below_home}")
    except ValueError:
        return None
