"""One writing command at a time on a workspace.

On a local disk a lock of the kernel on a file, which ends with its process. On a network file system a
row in the database, with machine, boot and process: another machine's is never taken over by itself.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from core.errors import Busy, StorageFault
from sessions.database import Database, open_for_reading, open_for_writing
from sessions.faults import shown, storing
from sessions.holder import Holder
from sessions.state_dir import StatePlace, create

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
_HINT_HERE = "wait with --wait SECONDS, or end that command"
_HINT_THERE = "when nothing runs on that machine any more, `kerneldeck unlock` frees the workspace"

T = TypeVar("T")


@contextmanager
def hold(place: StatePlace, command: str, wait_s: float = 0.0, socket: str = "") -> Iterator[Holder]:
    """Hold the workspace for writing; makes the state folder where it is absent.

    `command` is what the person called, for the message that others get; `socket` where a host listens.
    Busy when another holds it for longer than `wait_s`; StorageFault when the state cannot be written.
    """
    create(place)
    me = Holder.here(command, socket=socket)
    if place.network:
        with _holding_row(place, me, wait_s):
            yield me
    else:
        with _holding_file(place, me, wait_s):
            yield me


def holder_of(place: StatePlace) -> Holder | None:
    """Who holds the workspace, as far as the lock tells; creates nothing.

    In a copy of a workspace the lock's text is about the original: nobody holds the copy by it.
    """
    with suppress(OSError, StorageFault, Busy):
        holder = Holder.from_text(_row(place) if place.network else place.lock.read_text())
        if holder and holder.lock and holder.lock != _file_mark(place.lock.stat()):
            return None
        return None if holder and holder.same_machine(Holder.here("")) and holder.is_gone() else holder
    return None


def _row(place: StatePlace) -> str:
    database = open_for_reading(place.database)
    if database is None:
        return ""
    try:
        row = database.row("SELECT description FROM holder")
        return str(row[0]) if row else ""
    finally:
        database.close()


def release_foreign(place: StatePlace) -> Holder | None:
    """Free a workspace on a network file system from a holder whose machine is gone; who that was.

    None when nobody holds it. Busy when the holder is a process of this machine that still runs.
    """
    if not place.network or not place.database.exists():
        return None
    me = Holder.here("kerneldeck unlock")
    database = open_for_writing(place.database, place.network)
    try:
        with database.transaction("free the workspace") as connection:
            row = connection.execute("SELECT description FROM holder").fetchone()
            holder = Holder.from_text(row[0]) if row else None
            if holder and holder.same_machine(me) and not holder.is_gone():
                raise _busy(place, holder, me)
            connection.execute("DELETE FROM holder")
            return holder
    finally:
        database.close()


@contextmanager
def _holding_file(place: StatePlace, me: Holder, wait_s: float) -> Iterator[None]:
    handle = _until(wait_s, lambda: _lock_file(place, me), lambda: _busy(place, holder_of(place), me))
    try:
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(handle, 0)
        os.close(handle)


def _lock_file(place: StatePlace, me: Holder) -> int | None:
    """An open handle that holds the lock; None when another process does."""
    with storing("lock the workspace", place.lock):
        handle = os.open(place.lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if isinstance(error, BlockingIOError):
                return None
            raise
    if not _stands(place.lock, handle):
        os.close(handle)
        return _lock_file(place, me)
    # The text only serves the others' message: a full disk must not keep us from the lock.
    with suppress(OSError):
        told = replace(me, lock=_file_mark(os.fstat(handle)))
        os.ftruncate(handle, 0)
        os.pwrite(handle, told.to_text().encode(), 0)
    return handle


def _file_mark(found: os.stat_result) -> str:
    """What tells a file from its copies."""
    return f"{found.st_dev}:{found.st_ino}"


def _stands(path: Path, handle: int) -> bool:
    """Whether the locked file still is the one at `path`; it may have been removed before we had it."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


@contextmanager
def _holding_row(place: StatePlace, me: Holder, wait_s: float) -> Iterator[None]:
    database = open_for_writing(place.database, place.network)
    try:
        blocked: list[Holder] = []
        _until(wait_s, lambda: _take_row(database, me, blocked), lambda: _busy(place, blocked[-1], me))
        try:
            yield
        finally:
            # A row left behind is taken over later, as its process is gone by then.
            with suppress(StorageFault, Busy):
                _leave_row(database, me)
    finally:
        database.close()


def _take_row(database: Database, me: Holder, blocked: list[Holder]) -> bool | None:
    """True when the row is ours now; None when another's stands, which is added to `blocked`."""
    with database.transaction("lock the workspace") as connection:
        row = connection.execute("SELECT description FROM holder").fetchone()
        other = Holder.from_text(row[0]) if row else None
        if other and not (other.same_machine(me) and other.is_gone()):
            blocked.append(other)
            return None
        connection.execute("INSERT OR REPLACE INTO holder (id, description) VALUES (1, ?)", (me.to_text(),))
    return True


def _leave_row(database: Database, me: Holder) -> None:
    with database.transaction("unlock the workspace") as connection:
        connection.execute("DELETE FROM holder WHERE description = ?", (me.to_text(),))


def _until(wait_s: float, attempt: Callable[[], T | None], busy: Callable[[], Busy]) -> T:
    """The first result of `attempt` that is not None, asked again until `wait_s` are over."""
    deadline_s = time.monotonic() + wait_s
    pause_s = _FIRST_PAUSE_S
    while (got := attempt()) is None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise busy()
        time.sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return got


def _busy(place: StatePlace, holder: Holder | None, me: Holder) -> Busy:
    where = shown(place.workspace)
    if holder is None:
        return Busy(f"{where} is held by another command", _HINT_HERE)
    hint = _HINT_HERE if holder.same_machine(me) else _HINT_THERE
    return Busy(f"{where} is held by {holder.described(me, time.time())}", hint)
