"""What a host stands on: the state folder that it holds, and the socket on which it is reached."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from core.errors import KerneldeckError
from sessions.faults import shown
from sessions.host.place import check_folder, check_socket
from sessions.host.wire import MOST_FROM_CLIENT_BYTES, HostFault
from sessions.state_dir import StatePlace

Visit = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_Mark = tuple[int, int]  # device and number of a file
_WAITING_CLIENTS = 100


class StateFolder:
    """The state folder of a workspace, as it was when this was made."""

    def __init__(self, place: StatePlace) -> None:
        self._paths = (place.folder,) if place.network else (place.folder, place.lock)
        self._marks = tuple(map(_mark, self._paths))

    def stands(self) -> bool:
        """False once it was removed, moved or replaced; a disk that does not answer is waited for."""
        try:
            return tuple(map(_mark, self._paths)) == self._marks
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True


class Listener:
    """Listens at a path, and again where that was taken away: at a logout, or by a cleaner of old files."""

    def __init__(self, path: Path, visit: Visit) -> None:
        self._path = path
        self._visit = visit
        self._server: asyncio.Server | None = None
        self._bound: _Mark = (0, 0)

    async def open(self) -> None:
        """HostFault when something is in the way, or the disk does not take it."""
        try:
            bound = _bound(self._path)
        except OSError as error:
            raise HostFault(
                f"the host cannot listen at {shown(self._path)}: {error.strerror or error}",
                "see to that folder, or set XDG_RUNTIME_DIR to another one of your own",
            ) from error
        self._bound = _mark(self._path)
        self._server = await asyncio.start_unix_server(
            self._visit, sock=bound, limit=MOST_FROM_CLIENT_BYTES, backlog=_WAITING_CLIENTS
        )

    async def keep(self) -> None:
        """Listen again if the socket is gone; where that cannot be, it is tried again the next time."""
        if self._stands():
            return
        with suppress(OSError, KerneldeckError):
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            check_folder(self._path.parent)
            if self._server is not None:
                self._server.close()
            await self.open()

    def close(self) -> None:
        """Listen no more; the socket is removed unless another one has taken its place."""
        ours = self._stands()
        if self._server is not None:
            self._server.close()
        with suppress(OSError):
            if ours:
                self._path.unlink()

    def _stands(self) -> bool:
        with suppress(OSError):
            return _mark(self._path) == self._bound
        return False


def _mark(path: Path) -> _Mark:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _bound(path: Path) -> socket.socket:
    """A socket of mode 0600 there, in place of a dead one."""
    if check_socket(path):
        path.unlink()
    made = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o177)
    try:
        made.bind(str(path))
    except OSError:
        made.close()
        raise
    finally:
        os.umask(umask)
    return made
