"""Where a workspace is. Imports next to nothing: whatever a command does, it begins here."""

from __future__ import annotations

import shlex
from pathlib import Path

from core.errors import ConfigFault
from core.workspace.config import CONFIG_NAME


class NoWorkspace(ConfigFault):
    """There is no kerneldeck.toml at or above that folder."""


def find_workspace(start: Path) -> Path:
    """The folder of the nearest kerneldeck.toml at or above `start`.

    NoWorkspace when there is none; ConfigFault when the path is none, or cannot be looked into.
    """
    try:
        place = start.resolve()
        found = next((one for one in (place, *place.parents) if (one / CONFIG_NAME).is_file()), None)
    except (OSError, RuntimeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or "links that lead in a circle"
        raise ConfigFault(
            f"{start} cannot be looked into: {why}", "check the path and its permissions"
        ) from None
    if found is not None:
        return found
    if not place.exists():
        raise ConfigFault(f"{start} does not exist", "name a folder in a workspace with -C")
    raise NoWorkspace(
        f"{place} is no workspace: neither it nor a folder above it has a {CONFIG_NAME}",
        f"make one with: kerneldeck init {shlex.quote(str(place))}",
    )
