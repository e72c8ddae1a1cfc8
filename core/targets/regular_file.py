"""Reading a file that a trial may have replaced by anything: a link, a pipe, a device, a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotRegular(OSError):
    """Something else than a regular file stands there, or one too large to be read."""


def read_regular(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file; never waits, never follows a link in the last place.

    NotRegular (an OSError) says what stands there instead, FileNotFoundError that nothing does.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        if path.is_symlink():
            raise NotRegular("it is a link") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotRegular("it is no regular file")
        if status.st_size > most_bytes:
            raise NotRegular(f"it is larger than {most_bytes >> 20} MiB")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise NotRegular(f"it is larger than {most_bytes >> 20} MiB")
        return content
    finally:
        os.close(descriptor)
