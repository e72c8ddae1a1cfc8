"""The points at which a process can be killed, and killing it at one of them.

A point is a moment at which something durable changes, or a word passes between processes: opening a
file for writing, creating, renaming and removing, fsync, every statement that changes the database,
starting a process, an answer of the supervisor. The hooks lie in the standard library, of a process
that dies; the product has none.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REPO = Path(__file__).resolve().parents[2]
_PRODUCT = (f"{_REPO}/core/", f"{_REPO}/sessions/")
_WRITING = os.O_WRONLY | os.O_RDWR
_PATH_EVENTS = frozenset(
    {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown",
     "os.truncate", "os.utime", "shutil.copyfile"}
)  # fmt: skip
_PASSING = ("SELECT", "PRAGMA")  # statements that leave nothing on disk
_EVERYWHERE = ("database", "atomic_file")  # led to from everywhere, so they tell nothing
_VARYING = re.compile(r"[0-9a-f]{8,}|(?<=blobs/)[0-9a-f]{2}|(?<=outputs/)[0-9]+")
_NO_KILL = 0

_write, _fsync, _pwrite, _ftruncate, _os_open = os.write, os.fsync, os.pwrite, os.ftruncate, os.open


@dataclass(slots=True)
class KillPoints:
    """Counts points in this process and kills it at number `at`; 0 only tells of each.

    What happens goes to the descriptor `report`, a JSON object a line.
    """

    root: Path
    at: int
    report: int
    count: int = 0
    _reporting: bool = field(default=False)

    def tell(self, **said: object) -> None:
        _write(self.report, json.dumps(said).encode() + b"\n")

    def reach(self, what: str, half: Callable[[], object] | None = None) -> None:
        """A point; `half` does a part of what comes next, as a kill in its middle would."""
        if self._reporting:
            return
        self._reporting = True
        self.count += 1
        if self.at in (_NO_KILL, self.count):
            self.tell(point=self.count, what=f"{what} [{_site()}]")
        if self.at == self.count:
            if half is not None:
                half()
            os.kill(os.getpid(), signal.SIGKILL)
        self._reporting = False

    def arm(self) -> None:
        """Set the hooks; this process keeps them to its end."""
        sys.addaudithook(self._audit)
        self._wrap_files()
        self._wrap_sqlite()
        self._wrap_processes()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & _WRITING and self._is_ours(path):
                self.reach(f"open {self._shown(path)}")
        elif event in _PATH_EVENTS:
            # Relative names are those that rmtree removes, in a folder it holds open.
            path = arguments[1] if event == "os.rename" else arguments[0]
            if self._is_ours(path):
                self.reach(f"{event} {self._shown(path)}")

    def _is_ours(self, path: object) -> bool:
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        return bool(text) and (text.startswith(f"{self.root}/") or not text.startswith("/"))

    def _shown(self, path: str | bytes | os.PathLike[str]) -> str:
        return _VARYING.sub("*", os.fsdecode(path).removeprefix(f"{self.root}/"))

    def _wrap_files(self) -> None:
        def opened(*given: Any, **more: Any) -> Any:
            file = _io_open(*given, **more)
            if file.writable() and self._is_ours(given[0]):
                self.reach(f"opened {self._shown(given[0])}")
            return file

        def os_opened(path: Any, flags: int, *given: Any, **more: Any) -> int:
            handle = _os_open(path, flags, *given, **more)
            if flags & _WRITING and self._is_ours(path):
                self.reach(f"opened {self._shown(path)}")
            return handle

        def written(handle: int, content: Any) -> int:
            rest = memoryview(content)
            self.reach("write half", lambda: _write(handle, rest[: len(rest) // 2]))
            return _write(handle, content)

        def bytes_written(path: Path, content: Any) -> int:
            part = memoryview(content)
            self.reach(f"write half of {self._shown(path)}", lambda: _whole_write(path, part))
            return _write_bytes(path, content)

        _io_open, _write_bytes = io.open, Path.write_bytes
        io.open, os.open, os.write = opened, os_opened, written
        Path.write_bytes = bytes_written  # type: ignore[assignment, method-assign]
        os.fsync = _before(self, "fsync", _fsync)
        os.pwrite = _before(self, "pwrite", _pwrite)
        os.ftruncate = _before(self, "ftruncate", _ftruncate)

    def _wrap_sqlite(self) -> None:
        points = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                words = " ".join(sql.split()[:3])
                changes = not sql.lstrip().startswith(_PASSING)
                if changes:
                    points.reach(f"before {words}")
                cursor = super().execute(sql, *values)
                if changes and words == "COMMIT":
                    points.reach("after COMMIT")
                return cursor

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                points.reach(f"before {' '.join(sql.split()[:3])}")
                return super().executemany(sql, *values)

            def close(self) -> None:
                points.reach("before close of the database")
                super().close()
                points.reach("after close of the database")

        _connect = sqlite3.connect

        def connect(*given: Any, **more: Any) -> sqlite3.Connection:
            points.reach("before opening the database")
            return _connect(*given, factory=Connection, **more)

        sqlite3.connect = connect  # type: ignore[assignment]

    def _wrap_processes(self) -> None:
        points = self

        class Popen(subprocess.Popen):  # type: ignore[type-arg]
            def __init__(self, *given: Any, **more: Any) -> None:
                points.reach("before starting a process")
                super().__init__(*given, **more)
                points.reach("after starting a process")

        async def read(stream: asyncio.StreamReader) -> bytes:
            line = await _readline(stream)
            points.reach("an answer of the supervisor" if line else "the end of the supervisor")
            return line

        async def drained(stream: asyncio.StreamWriter) -> None:
            await _drain(stream)
            points.reach("a word to the supervisor")

        _readline, _drain = asyncio.StreamReader.readline, asyncio.StreamWriter.drain
        subprocess.Popen = Popen  # type: ignore[misc]
        asyncio.StreamReader.readline = read  # type: ignore[assignment, method-assign]
        asyncio.StreamWriter.drain = drained  # type: ignore[assignment, method-assign]


def _before(points: KillPoints, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*given: Any) -> Any:
        points.reach(what)
        return function(*given)

    return wrapped


def _whole_write(path: Path, part: memoryview) -> None:
    handle = _os_open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    _write(handle, part[: len(part) // 2])


def _site() -> str:
    """The two innermost functions of the product that led here, and whether recovery did."""
    frame = sys._getframe()
    functions: list[str] = []
    recovering = ""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_PRODUCT):
            module = Path(code.co_filename).stem
            if module not in _EVERYWHERE:
                functions.append(f"{module}.{code.co_name}")
            if code.co_name == "recover":
                recovering = ", in recovery"
        frame = frame.f_back  # type: ignore[assignment]
    return " of ".join(functions[:2]) + recovering
