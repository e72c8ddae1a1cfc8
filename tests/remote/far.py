"""The command line with a target behind the test's own sshd, as its users would have it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.deck import DEADLINE_S, Deck, Done, environment, plain, processes_with
from tests.remote.sshd import Server, User

PYTHON = shutil.which("python3") or sys.executable


@dataclass(frozen=True)
class Far:
    """A workspace here, and the target `gpu` over there, in use by KERNELDECK_GPU_HOST."""

    deck: Deck
    user: User
    scratch: Path

    @property
    def env(self) -> dict[str, str | None]:
        return {
            "HOME": str(self.user.folder), "XDG_CONFIG_HOME": str(self.user.folder / ".config"),
            "SSH_AUTH_SOCK": None, "KERNELDECK_GPU_HOST": "gpu",
        }  # fmt: skip

    def describe(self, **keys: object) -> None:
        """`gpu` in the user's targets.toml, with these keys more."""
        path = self.user.folder / ".config" / "kerneldeck" / "targets.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {"host": "box", "scratch": str(self.scratch), "python": PYTHON, **keys}
        lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items()]
        path.write_text("\n".join(["[targets.gpu]", *lines, ""]))

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """A command, in a process group of its own."""
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kerneldeck", *words, cwd=self.deck.root, env=environment(self.env),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def left(self) -> list[str]:
        """What lies over there of trials, and processes that name the scratch folder."""
        folder = self.scratch / "trials"
        trials = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return trials + [f"process {pid}" for pid in processes_with(str(self.scratch / "trials"))]

    def kept_bytes(self) -> bytes:
        """All that the state of record holds."""
        folder = self.deck.root / ".kerneldeck"
        return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def far_of(folder: Path, user: User, server: Server | None, port: int = 0, *options: str) -> Far:
    """`box` is the server (known to the user), or whatever listens on `port` under the server's key."""
    if server is not None:
        line = server.known_hosts_line.replace(f"[127.0.0.1]:{server.port}", "box")
        user.known_hosts.write_text(line)
    user.writes("box", port or (server.port if server else 0), "HostKeyAlias box", *options)
    far = Far(plain(folder / "sums"), user, folder / "scratch")
    far.describe()
    return far


async def ended(process: asyncio.subprocess.Process) -> Done:
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def fifo_read(path: Path) -> None:
    """Wait until a trial's program opens the pipe for writing: it runs."""
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.to_thread(_read, path)


def _read(path: Path) -> None:
    with path.open("rb") as pipe:
        pipe.read()


def pipes(folder: Path) -> tuple[Path, Path]:
    """One that the trial opens when it runs, one that it waits for."""
    runs, go = folder / "runs", folder / "go"
    os.mkfifo(runs)
    os.mkfifo(go)
    return runs, go


def waiting_kernel(runs: Path, go: Path, score: int) -> str:
    return f": > {runs}\nread _ < {go}\nscore={score}"


def demo_command(folder: Path) -> list[str]:
    program = (
        "import sys; from pathlib import Path; from tests.demo.demo import tensor_plan;"
        " tensor_plan(Path(sys.argv[1]))"
    )
    return [sys.executable, "-c", program, str(folder)]
