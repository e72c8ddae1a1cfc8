"""Agents started here as a remote shell would start them, and trials for them; no SSH in between."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.targets.ssh.bundle import Boot
from core.targets.ssh.link import AgentLink
from core.targets.ssh.remote_sync import RemoteFile, RemoteSync, RemoteTree
from core.targets.ssh.remote_trials import Greeting, RemoteTrial, RemoteTrials, greet

NONCE = "5eed"
PYTHON_FOLDER = str(Path(sys.executable).parent)


class PipeChannel:
    """The channel to a process of ours; counts what goes through."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self.sent_bytes = 0
        self.writes = 0

    async def read(self, n: int) -> bytes:
        return await self._out.read(n)

    def write(self, content: bytes, /) -> None:
        self.sent_bytes += len(content)
        self.writes += 1
        self._in.write(content)

    async def drain(self) -> None:
        await self._in.drain()

    def close(self) -> None:
        self._in.close()


class Held:
    """Contents held in memory."""

    def __init__(self, *contents: bytes) -> None:
        self.by_hash = {hashlib.sha256(content).hexdigest(): content for content in contents}

    def file(self, path: str, content: bytes, mode: int = 0o644) -> RemoteFile:
        sha256 = hashlib.sha256(content).hexdigest()
        self.by_hash[sha256] = content
        return RemoteFile(path, sha256, len(content), mode)

    def tree(self, files: Mapping[str, bytes], **more: Any) -> RemoteTree:
        return RemoteTree(tuple(self.file(name, content) for name, content in files.items()), **more)

    def pieces(self, sha256: str, piece_bytes: int) -> Iterator[bytes]:
        content = self.by_hash[sha256]
        for at in range(0, len(content), piece_bytes):
            yield content[at : at + piece_bytes]


@dataclass
class Running:
    """An agent and what talks to it."""

    process: asyncio.subprocess.Process
    channel: PipeChannel
    link: AgentLink
    greeting: Greeting
    trials: RemoteTrials
    held: Held = field(default_factory=Held)

    @property
    def scratch(self) -> Path:
        return Path(self.greeting.scratch)

    def trial(self, *argv: str, files: Mapping[str, bytes] | None = None, **more: Any) -> RemoteTrial:
        trees = more.pop("trees", None) or (self.held.tree(files or {}),)
        return RemoteTrial(argv, more.pop("wall_s", 30.0), trees, NONCE, path_first=PYTHON_FOLDER, **more)

    def script(self, program: str, **more: Any) -> RemoteTrial:
        """A trial of a Python program."""
        files = {**more.pop("files", {}), "bench.py": program.encode()}
        return self.trial("python3", "bench.py", files=files, **more)


async def started(
    boot: Boot, *before: str, env: Mapping[str, str] | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *before, "sh", "-c", boot.line, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


@asynccontextmanager
async def linked(
    scratch: Path | str, *before: str, env: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[AgentLink, PipeChannel, asyncio.subprocess.Process]]:
    """An agent that has not been greeted yet."""
    boot = Boot(scratch=str(scratch))
    process = await started(boot, *before, env=env)
    channel = PipeChannel(process)
    link = await AgentLink.open(channel, boot)
    try:
        yield link, channel, process
    finally:
        await link.close()
        async with asyncio.timeout(20):
            await process.wait()


@asynccontextmanager
async def agent(
    scratch: Path | str, *before: str, silence_s: float = 60.0, **more: Any
) -> AsyncIterator[Running]:
    """An agent that was greeted; its locks lie in the scratch folder's neighbour `locks`."""
    async with linked(scratch, *before, **more) as (link, channel, process):
        greeting = await greet(link, silence_s=silence_s, locks=f"{scratch}-locks")
        held = Held()
        yield Running(process, channel, link, greeting, RemoteTrials(link, RemoteSync(link, held)), held)


def run(test: Coroutine[Any, Any, None]) -> None:
    """A test's coroutine, with a bound on all its waits."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(bounded())


def processes_with(word: str) -> list[int]:
    """Living processes whose environment or command line holds `word`."""
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _has(entry, word)
    ]


def _has(entry: Path, word: str) -> bool:
    try:
        return any(word.encode() in (entry / name).read_bytes() for name in ("environ", "cmdline"))
    except OSError:
        return False


def most_resident_kib(pid: int) -> int:
    """The most memory that the process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


RESULT = """
import json, os
def result(**more):
    with open(os.environ["KERNELDECK_RESULT"], "w") as file:
        json.dump({"nonce": os.environ["KERNELDECK_NONCE"], "status": "ok", **more}, file)
"""
