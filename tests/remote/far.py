"""The command line with a target behind the test's own sshd, as its users would have it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.deck import DEADLINE_S, Deck, Done, environment, plain, processes_with, wait_until
from tests.remote.sshd import Server, User, descendants, serving

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
            "XDG_CACHE_HOME": None, "SSH_AUTH_SOCK": None, "KERNELDECK_GPU_HOST": "gpu",
        }  # fmt: skip

    def describe(self, **keys: object) -> None:
        """`gpu` in the user's targets.toml, with these keys more."""
        path = self.user.folder / ".config" / "kerneldeck" / "targets.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {"host": "box", "scratch": str(self.scratch), "python": PYTHON, **keys}
        lines = [f"{name} = {json.dumps(value)}" for name, value in rows.items()]
        path.write_text("\n".join(["[targets.gpu]", *lines, ""]))

    async def start(self, *words: str, change: str = "") -> asyncio.subprocess.Process:
        """A command, in a process group of its own; `change` is Python that runs first in it and its host."""
        env = environment(self.env)
        if change:
            folder = self.user.folder / "changed"
            folder.mkdir()
            (folder / "sitecustomize.py").write_text(change)
            env["PYTHONPATH"] = str(folder)
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kerneldeck", *words, cwd=self.deck.root, env=env,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def trials(self) -> list[tuple[str, str]]:
        """Status and stage of each trial in the history, in order."""
        with closing(sqlite3.connect(self.deck.root / ".kerneldeck" / "state.sqlite3")) as database:
            return list(database.execute("SELECT status, stage FROM trials ORDER BY id"))

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
        "import sys; from pathlib import Path; from tests.demo.demo import say_where, tensor_plan;"
        " where = Path(sys.argv[1]); say_where(where); tensor_plan(where)"
    )
    return [sys.executable, "-c", program, str(folder)]


# What a connection may leave in the scratch folder for the next one.
_REUSED = ("agent-", "blobs", "boot", "cleaned", "held", "manifests", "trials")


@dataclass(frozen=True)
class Ground:
    """A server, and a workspace whose best (100) was found on it; each test gets copies of its own."""

    server: Server
    keys: Path
    settled: Path

    def far(
        self, folder: Path, *options: str, server: Server | None = None, port: int = 0, key: str = "user"
    ) -> Far:
        """A copy in `folder` with a candidate that scores 300, so that a verification there restores it."""
        far = far_of(folder, a_user(folder / "near", self.keys / key), server or self.server, port, *options)
        shutil.rmtree(far.deck.root)
        shutil.copytree(self.settled, far.deck.root)
        far.deck.kernel("score=300")
        return far

    def serving(self, folder: Path, *options: str) -> AbstractContextManager[Server]:
        """One more server, with these lines in its configuration."""
        return serving(folder, self.keys / "host", [self.keys / "user"], options)


def a_user(folder: Path, key: Path) -> User:
    """A user with an empty ssh configuration."""
    (folder / ".ssh").mkdir(parents=True)
    user = User(folder, key, folder / ".ssh" / "known", folder / ".ssh" / "config")
    user.config.touch()
    user.known_hosts.touch()
    return user


@contextmanager
def settled_ground(folder: Path, keys: Path) -> Iterator[Ground]:
    """For a module's tests: one server, one best."""
    with serving(folder / "sshd", keys / "host", [keys / "user"]) as server:
        far = far_of(folder, a_user(folder / "near", keys / "user"), server)
        assert far.deck.json("verify", env=far.env)["outcome"] == "first_best"
        yield Ground(server, keys, far.deck.root)


@dataclass(frozen=True)
class Before:
    """A workspace before a command that meets a fault."""

    far: Far
    files: dict[str, bytes]
    trials: int

    @classmethod
    def of(cls, far: Far) -> Before:
        return cls(far, far.deck.files(), len(far.trials()))

    def check_unharmed(self, more_trials: int) -> None:
        """Nothing was restored, the best is the best still, nothing is left on either side."""
        far = self.far
        assert far.deck.files() == self.files
        assert len(far.trials()) == self.trials + more_trials
        assert far.deck.seen()["best"]["score"] == 100
        check_nothing_left(far)

    def check_not_begun(self, done: Done, stage: str, *words: str) -> dict[str, Any]:
        """The command was refused in `stage`, with these words, and no trial was begun; its error."""
        error: dict[str, Any] = done.answer["error"]
        assert (done.code, error["exit_code"], error["code"]) == (3, 3, f"target.{stage}"), done.said
        assert error["hint"]
        told(error["sentence"], self.far, words)
        self.check_unharmed(0)
        return error

    def check_pending(self, done: Done, stage: str, *words: str, others_run: bool = False) -> None:
        """The final trial ended as infra in `stage`, with these words, and decided nothing."""
        answer = done.answer
        final = answer["final"]
        assert (done.code, answer["outcome"], answer["restored_files"]) == (3, "pending", []), done.said
        assert (final["status"], final["stage"]) == ("infra", stage), done.said
        told(final["reason"], self.far, words)
        if others_run:  # whose processes and trials are theirs
            assert self.far.deck.files() == self.files
        else:
            self.check_unharmed(1)


def told(sentence: str, far: Far, words: tuple[str, ...]) -> None:
    """All the words are in it, and nothing that is not fit for sharing."""
    for each in words:
        assert each in sentence, sentence
    for private in ("127.0.0.1", str(far.user.folder), str(far.user.key)):
        assert private not in sentence


def check_nothing_left(far: Far) -> None:
    """No process, no trial, nothing half written over there; no process and no staging here."""
    wait_until(lambda: processes_with(str(far.scratch)) == [], f"the end of processes in {far.scratch}")
    assert far.left() == []
    assert processes_with(str(far.deck.root)) == []
    for folder in ("staging", "scratch"):
        here = far.deck.root / ".kerneldeck" / folder
        assert not here.is_dir() or list(here.iterdir()) == []
    there = sorted(far.scratch.rglob("*")) if far.scratch.is_dir() else []
    assert [path.name for path in there if path.name.startswith(".")] == []
    assert [path.name for path in far.scratch.glob("*") if not path.name.startswith(_REUSED)] == []


def verified(far: Far) -> Done:
    """`kerneldeck verify --json`, however it ends."""
    return far.deck.run("verify", "--json", env=far.env, code=None)


def processes_of(home: Path) -> list[int]:
    """The agent that began the trial of this folder (it locked its `alive` file), and all below it."""
    inode = f":{(home / 'alive').stat().st_ino} "
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines() if inode in line]
    agents = [int(row[4]) for row in locks if row[1] == "FLOCK"]
    return [*agents, *(pid for agent in agents for pid in descendants(agent))]


def in_the_queue(far: Far) -> bool:
    """Whether a process of a trial that is laid out waits in the kernel for a lock."""
    laid_out = [home for home in (far.scratch / "trials").glob("[!.]*") if (home / "work").is_dir()]
    rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    waiting = {int(row[5]) for row in rows if row[1] == "->"}
    return any(waiting & set(processes_of(home)) for home in laid_out)
