"""Acting with the caller's environment: a host outlives the shell that it was started from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress


@contextmanager
def acting_as(environment: Mapping[str, str], cwd: str) -> Iterator[None]:
    """Inside, this process has the caller's variables and working folder, and so has all that it starts.

    One caller at a time. A working folder that is gone leaves this process where it is.
    """
    ours, place = dict(os.environ), os.getcwd()  # noqa: PTH109 (no Path of a folder that may be gone)
    _become(environment)
    with suppress(OSError):
        os.chdir(cwd)
    try:
        yield
    finally:
        os.chdir(place)
        _become(ours)


def _become(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
