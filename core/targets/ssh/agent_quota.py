"""How much the scratch folder holds, and what goes first when that is too much.

The sum is remembered in the file `held` (when it was counted and the bytes found; then a line for what was
put since), so that a greeting costs one small read. Whoever removes contents touches `cleaned`: other agents
then look again before they rely on one. What is young is spared, because a trial may be about to use it, and
so is what an agent's client has just named.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH108, PTH123

from __future__ import annotations

import fcntl
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import NoReturn

    from core.targets.ssh import agent_trials as trials
    from core.targets.ssh.agent_keeper import leave_everything
    from core.targets.ssh.agent_store import mark_cleaned
else:
    import agent_trials as trials
    from agent_keeper import leave_everything
    from agent_store import mark_cleaned

COUNT_AGAIN_AFTER_S = 3600.0
OLD_S = 86400.0  # a trial that nobody collected for a day, a list of files that may be asked for again
FILLED_TO = 0.8  # of the limit, after a cleaning
WORTH_A_LOOK = 0.01  # of the limit
MORE_ROOM_BYTES = 16 << 20
TENDS_WITHIN_S = 300


class Kept:
    """Something that may be removed: in which turn, how long unused, and what that frees."""

    def __init__(self, turn: int, used_s: float, path: str, size: int, links: int = 1) -> None:
        self.order = (turn, used_s)
        self.path = path
        self.size = size
        self.links = links

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def remove(self) -> bool:
        if self.path.startswith("trials/"):
            return trials.forget(self.name) and not os.path.lexists(self.path)
        try:
            os.unlink(self.path)
        except OSError:
            return False
        return True


def blobs() -> list[Kept]:
    return list(_files("blobs", 2))


def _files(folder: str, turn: int) -> Iterator[Kept]:
    for place, _, names in os.walk(folder):
        for name in names:
            if name.startswith(".tmp-"):
                continue  # somebody is just writing it
            with suppress(OSError):
                status = os.lstat(f"{place}/{name}")
                used_s = max(status.st_mtime, status.st_ctime)
                yield Kept(turn, used_s, f"{place}/{name}", status.st_size, status.st_nlink)


def _ended_trials(now_s: float) -> Iterator[Kept]:
    """Those that run are somebody's; so much may lie here beside the limit."""
    for row in trials.listing():
        if row["state"] == "ended":
            home = f"trials/{row['trial']}"
            own = [each.size for each in _files(home, 0) if each.links == 1]  # others are kept contents
            yield Kept(0, now_s - row["age_s"], home, sum(own))


def note_put(count: int) -> None:
    if count:
        with suppress(OSError), open("held", "a") as file:
            file.write(f"{count}\n")


def is_due(limit_bytes: int) -> bool:
    """Whether it is time to count, or to clean: not again while nothing could go and little has come."""
    try:
        with open("held", encoding="ascii") as file:
            counted, *put = file.read(1 << 20).splitlines()
        counted_s, found = counted.split()
        age_s, held, grown = time.time() - float(counted_s), int(found), sum(map(int, put))
    except (OSError, ValueError):
        return True
    if not 0 <= age_s < COUNT_AGAIN_AFTER_S:
        return True
    return held + grown > limit_bytes and (held <= limit_bytes or grown > limit_bytes * WORTH_A_LOOK)


def tend(limit_bytes: int, young_s: float) -> None:
    """Count what is here; above the limit remove what is longest unused, until there is room again."""
    descriptor = os.open("held", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now_s = time.time()
        found = [*_ended_trials(now_s), *_files("manifests", 1), *blobs()]
        held = sum(each.size for each in found)
        if held > limit_bytes:
            spared_s = (OLD_S, OLD_S, young_s)
            old = [each for each in found if now_s - each.order[1] >= spared_s[each.order[0]]]
            held -= _remove(old, held - int(limit_bytes * FILLED_TO), ())
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{now_s} {held}\n".encode(), 0)
    except BlockingIOError:
        pass  # another agent is at it
    finally:
        os.close(descriptor)


def _remove(found: list[Kept], wanted_bytes: int, spared: Collection[str]) -> int:
    """Bytes that were freed, of what is not spared, the first in order first."""
    freed = 0
    for each in sorted(found, key=lambda one: one.order):
        if freed >= wanted_bytes:
            break
        if each.name[:64] not in spared and each.remove():
            freed += each.size
    if freed:
        mark_cleaned()
    return freed


def make_room(needed_bytes: int, spared: Collection[str]) -> int:
    """At a full disk: remove what frees something at once, but no content of `spared`; the bytes freed."""
    now_s = time.time()
    old = [each for each in _ended_trials(now_s) if now_s - each.order[1] >= OLD_S]
    unlinked = [each for each in blobs() if each.links == 1]  # a running trial's links hold their blocks
    return _remove(old + unlinked, needed_bytes + MORE_ROOM_BYTES, spared)


def tend_in_background(limit_bytes: int, young_s: float) -> None:
    """In a process that outlives the agent: connections are short, a large folder takes its time."""
    with suppress(OSError):
        if os.fork() == 0:
            _tend_and_exit(limit_bytes, young_s)


def _tend_and_exit(limit_bytes: int, young_s: float) -> NoReturn:
    try:
        os.setsid()
        leave_everything(set())
        signal.alarm(TENDS_WITHIN_S)
        os.nice(10)
        tend(limit_bytes, young_s)
    finally:
        os._exit(0)
