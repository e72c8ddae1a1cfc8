"""Folders on their way to the server: ours beside `rsync -a` over OpenSSH's shared connection.

Ours is measured from the files here until a process runs there in a fresh tree of its own. As a session
does it, files that look unchanged are read while the process runs. rsync, which does not read them, is
measured until it has ended, its files then lying in the same folder as the last time.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import time
from pathlib import Path

from core.targets.ssh.link import AgentLink
from core.targets.ssh.local_tree import SETTLED_AFTER_S, FileContents, FileHashes, tree_of
from core.targets.ssh.remote_sync import RemoteSync
from core.targets.ssh.remote_trials import RemoteTrial, RemoteTrials
from core.words import JsonObject
from tests.bench.remote.bed import HOST, Bed, Series

STATES = ("first", "unchanged", "one changed")
REPEATED = 4  # times a round, unchanged and with one file changed


class Ours:
    """What a session does before each trial of a folder."""

    def __init__(self, bed: Bed, link: AgentLink, root: Path) -> None:
        self._bed = bed
        self._root = root
        self._contents = FileContents({})
        self._trials = RemoteTrials(link, RemoteSync(link, self._contents))
        self._hashes = FileHashes()

    async def sync(self, series: Series) -> None:
        self._bed.proxy.counts()
        runs_after: list[float] = []
        began = time.perf_counter()

        def note(news: JsonObject) -> None:
            if news.get("event") == "started":
                runs_after.append(time.perf_counter() - began)

        believed: dict[str, str] = {}
        tree, found = tree_of(self._root, self._hashes, believed=believed)
        self._contents.paths.update(found.paths)
        trial = RemoteTrial(("true",), 30.0, (tree,), "5eed")
        reading = asyncio.ensure_future(asyncio.to_thread(self._hashes.differing, believed))
        collected = await self._trials.run(trial, self._bed.folder / "left", note)
        assert not await reading
        assert collected.ended.clean, collected.outcome
        series.add(runs_after[0], self._bed.proxy.counts())


class Rsync:
    """The same folder by rsync."""

    def __init__(self, bed: Bed, root: Path) -> None:
        self._bed = bed
        self._place = bed.folder / "by_rsync"
        shutil.rmtree(self._place, ignore_errors=True)
        self._words = ["rsync", "-a", "-e", " ".join(bed.shared), f"{root}/", f"{HOST}:{self._place}/"]

    def sync(self, series: Series) -> None:
        self._bed.proxy.counts()
        began = time.perf_counter()
        subprocess.run(self._words, check=True, stdin=subprocess.DEVNULL)
        series.add(time.perf_counter() - began, self._bed.proxy.counts())


async def synced(bed: Bed, link: AgentLink, files: int, file_bytes: int, rounds: int) -> list[list[Series]]:
    """Of each state the series of ours and that of rsync, done in turn."""
    root = bed.folder / f"{files}_files"
    named = [[Series(f"{files:,} files, {state}: {who}") for who in ("ours", "rsync -a")] for state in STATES]
    for number in range(rounds):
        fill(root, files, file_bytes, number)
        ours, rsync = Ours(bed, link, root), Rsync(bed, root)
        await ours.sync(named[0][0])
        rsync.sync(named[0][1])
        await asyncio.sleep(SETTLED_AFTER_S)
        await ours.sync(Series("files that are no longer new"))
        for turn, (mine, theirs) in enumerate(named[1:] * REPEATED):
            if mine is named[2][0]:
                (root / "0" / "0.py").write_text("#" * (turn + 1) + f"{number}\n")
            if turn % 2:
                rsync.sync(theirs)
            await ours.sync(mine)
            if not turn % 2:
                rsync.sync(theirs)
    return named


def fill(root: Path, files: int, file_bytes: int, number: int) -> None:
    """Text that was never there before, in folders of twenty."""
    for index in range(files):
        path = root / str(index // 20) / f"{index}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(hashlib.shake_128(f"{root} {number} {index}".encode()).hexdigest(file_bytes // 2))
