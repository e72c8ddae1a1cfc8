"""Writing the `kerneldeck.toml` of a folder that has none."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from core.errors import ConfigFault
from core.workspace.config import CONFIG_NAME, WorkspaceConfig
from core.workspace.toml_reader import parse_toml
from core.workspace.toml_writer import to_toml


def refuse_existing(root: Path) -> None:
    """ConfigFault when `root` has a `kerneldeck.toml` already, be it a dangling link."""
    path = root / CONFIG_NAME
    if os.path.lexists(path):
        raise ConfigFault(
            f"{path} exists and is never overwritten", "edit it, or move it away and run init again"
        )


def write_new(root: Path, config: WorkspaceConfig) -> Path:
    """Write `root/kerneldeck.toml` whole or not at all, and return its path.

    ConfigFault when it exists (then it stays as it is), when the folder is missing or not writable, and
    when the text would not read back as `config`.
    """
    refuse_existing(root)
    path = root / CONFIG_NAME
    text = to_toml(config)
    if parse_toml(text, str(path)) != config:
        raise ConfigFault(
            f"{path}: the configuration does not read back as it was written", "write it by hand"
        )
    try:
        _place_new(path, text)
    except FileExistsError:
        refuse_existing(root)
    except UnicodeEncodeError as error:
        raise ConfigFault(
            f"{path}: {text[error.start : error.start + 9]!r} is a name that UTF-8 cannot say", "rename it"
        ) from None
    except OSError as error:
        raise ConfigFault(
            f"{path} cannot be written: {error.strerror}", "make the folder writable, or work in a copy of it"
        ) from None
    return path


def _place_new(path: Path, text: str) -> None:
    """A link to a finished file: unlike a rename it never replaces what someone put there meanwhile."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.chmod(0o644)
        try:
            os.link(part, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            refuse_existing(path.parent)  # a file system without hard links
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)
