"""Processes that we forked to keep trials, and what one of them that was killed leaves to us by adoption.

Standard library only and Python 3.8's syntax, like `watchdog.py`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.targets.watchdog import (
        PR_SET_CHILD_SUBREAPER,
        REAP_DEADLINE_S,
        clear,
        descendants,
        kill_groups,
        prctl,
        signal_each,
        wake_on_signals,
    )
else:
    from watchdog import (
        PR_SET_CHILD_SUBREAPER,
        REAP_DEADLINE_S,
        clear,
        descendants,
        kill_groups,
        prctl,
        signal_each,
        wake_on_signals,
    )


class Wards:
    """Our children by process id, each with a name; every other process below us is nobody's."""

    def __init__(self) -> None:
        self.names: dict[int, object] = {}
        self.wake = wake_on_signals()
        prctl(PR_SET_CHILD_SUBREAPER, 1)

    def lost(self) -> list[object]:
        """Collect who has ended; the names of those that ended badly, once what they left is ended, too."""
        lost = self._ended_badly()
        until = time.monotonic() + REAP_DEADLINE_S
        while lost and time.monotonic() < until:
            orphans = descendants(os.getpid(), self.names)
            if not orphans:
                break
            kill_groups(orphans.values())
            signal_each(orphans, signal.SIGKILL)
            select.select([self.wake], [], [], 0.01)
            clear(self.wake)
            lost += self._ended_badly()
        return lost

    def _ended_badly(self) -> list[object]:
        ended = [(self.names.pop(pid, None), status) for pid, status in collected().items()]
        return [name for name, status in ended if name is not None and status != 0]


def collected() -> dict[int, int]:
    """Children that have ended, and the status of each."""
    found: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            found[pid] = status
    return found
