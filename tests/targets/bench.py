"""A workspace in a temporary folder, and jobs run in it by the local target."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.records import FileVersion
from core.targets.job import Job, Layout, Outcome
from core.targets.local import LocalTarget
from core.targets.staging import Materials, Staging
from core.workspace.config import Objective
from sessions.blobs import BlobFolder

REPO = Path(__file__).resolve().parents[2]
SCORE = Objective("score")
DEADLINE_S = 20.0


@dataclass(frozen=True, slots=True)
class Bench:
    """A workspace and what is needed to run jobs in it, all below `folder`."""

    folder: Path
    protected: dict[str, FileVersion] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.folder / "workspace"

    @property
    def staging_folder(self) -> Path:
        return self.folder / "state" / "staging"

    @property
    def linked(self) -> Path:
        return self.folder / "state" / "linked"

    @property
    def output(self) -> Path:
        return self.folder / "state" / "outputs" / "1"

    @property
    def blobs(self) -> BlobFolder:
        return BlobFolder(self.folder / "state" / "blobs")

    def version(self, content: str | bytes, executable: bool = False) -> FileVersion:
        return FileVersion(self.blobs.put(_bytes(content)), executable)

    def protect(self, name: str, content: str | bytes) -> None:
        self.protected[name] = self.version(content)

    def add(self, name: str, content: str | bytes = "", mode: int = 0o644) -> Path:
        """A needed file of the workspace, neither mutable nor protected."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_bytes(content))
        path.chmod(mode)
        self.others.append(name)
        return path

    def staging(self) -> Staging:
        self.root.mkdir(parents=True, exist_ok=True)
        materials = Materials(self.root, self.protected, tuple(self.others))
        return Staging(self.staging_folder, self.linked, materials, self.blobs)

    def job(self, *command: str, **more: Any) -> Job:
        return replace(Job(command, "final", 20.0, (Layout({}),), self.output), **more)

    def run(self, *command: str, **more: Any) -> Outcome:
        return self.each(self.job(*command, **more))[0]

    def python(self, code: str, **more: Any) -> Outcome:
        return self.run(sys.executable, "-c", code, **more)

    def shell(self, script: str, **more: Any) -> Outcome:
        return self.run("sh", "-c", script, **more)

    def each(self, *jobs: Job, objective: Objective = SCORE) -> list[Outcome]:
        """The outcomes of jobs that one target runs one after another; nothing of them stays staged."""

        async def run_all() -> list[Outcome]:
            target = LocalTarget(self.staging(), objective)
            try:
                return [await target.run(job) for job in jobs]
            finally:
                await target.close()

        outcomes = asyncio.run(run_all())
        assert self.staged() == []
        return outcomes

    def staged(self) -> list[Path]:
        return list(self.staging_folder.iterdir()) if self.staging_folder.is_dir() else []

    def printed(self) -> str:
        return (self.output / "stdout").read_text()


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


class Bell:
    """A named pipe by which a process says something to a test; waiting for it has a deadline."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    def heard(self) -> str:
        ready, _, _ = select.select([self._descriptor], [], [], DEADLINE_S)
        assert ready, "nobody rang"
        return os.read(self._descriptor, 4096).decode().strip()

    async def rung(self) -> str:
        loop = asyncio.get_running_loop()
        ringing = asyncio.Event()
        loop.add_reader(self._descriptor, ringing.set)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await ringing.wait()
        finally:
            loop.remove_reader(self._descriptor)
        return self.heard()

    def close(self) -> None:
        os.close(self._descriptor)


def ends(pid: int) -> bool:
    """Whether a process ends within the deadline, or has."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], DEADLINE_S)[0])
    finally:
        os.close(descriptor)
