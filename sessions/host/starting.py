"""Starting a workspace's host, detached from whoever needs it first."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from core.words import JsonObject
from sessions.faults import shown
from sessions.host.place import SocketPlace
from sessions.host.wire import HostFault, ToldFault

READY_WITHIN_S = 120.0  # a slow disk, a long history to lift to a newer schema
_MOST_LOG_BYTES = 1_000_000
_INSTALLED = Path(__file__).resolve().parents[2]
# In a checkout the package `kerneldeck` lies beside `sessions`, in a wheel around it.
_IMPORTED_FROM = _INSTALLED if (_INSTALLED / "kerneldeck" / "__main__.py").is_file() else _INSTALLED.parent


async def start_host(root: Path, place: SocketPlace) -> None:
    """Start the host of the workspace at `root`, and wait until it listens or another one is seen to.

    ToldFault: it could not, and said why. HostFault: it ended, or said nothing in time.
    """
    ours, its = os.pipe()
    try:
        process = _spawned(root, place, its)
    finally:
        os.close(its)
    try:
        written = await _first_line(ours)
    except TimeoutError:
        raise HostFault(
            f"the host did not get ready within {READY_WITHIN_S:g} s", f"see {shown(place.log)}"
        ) from None
    finally:
        os.close(ours)
        process.kill()  # it only starts the host, and has ended by then unless it hangs
        process.wait()
    told = _told(written)
    if "fault" in told:
        raise ToldFault(told["fault"])
    if not told:
        raise HostFault("the host could not be started", f"see {shown(place.log)}")


def _spawned(root: Path, place: SocketPlace, ready: int) -> subprocess.Popen[bytes]:
    log = _opened_log(place.log)
    words = [sys.executable, "-m", "kerneldeck", "host", "serve", "-C", str(root), "--ready", str(ready)]
    try:
        return subprocess.Popen(
            words, cwd=_IMPORTED_FROM, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            pass_fds=(ready,), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise HostFault(f"the host could not be started: {error.strerror}", "try again") from error
    finally:
        os.close(log)


def _opened_log(path: Path) -> int:
    """The log, begun anew once it is long; nowhere when the disk does not take it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with suppress(OSError):
        handle = os.open(path, flags, 0o600)
        with suppress(OSError):
            if os.fstat(handle).st_size > _MOST_LOG_BYTES:
                os.ftruncate(handle, 0)
        return handle
    return os.open(os.devnull, os.O_WRONLY)


async def _first_line(pipe: int) -> bytes:
    """What the host writes when it knows; nothing when it ends before."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    with open(pipe, "rb", buffering=0, closefd=False) as file:  # noqa: ASYNC230 (a pipe, read by the loop)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                return await reader.readline()
        finally:
            transport.close()


def _told(written: bytes) -> JsonObject:
    try:
        told: JsonObject = json.loads(written or b"{}")
    except ValueError:
        return {}
    return told
