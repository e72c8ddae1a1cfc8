"""What a trial costs beside the candidate's own process, and how many go into a minute."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.candidates import with_overlay
from core.engine import Engine
from core.targets.job import Job, Layout, Target
from core.targets.ssh.host import SshHost
from core.targets.ssh.target import SshTarget
from core.words import Status
from sessions.session import Caller, materials, open_session
from tests.bench.remote.bed import Bed, Series

OVERHEAD_ROUNDS = 40
PREFORK = "prefork" in {one.name for one in fields(Job)}
QUICK = ("sh", "-c", 'echo \'{"status": "passed", "score": 1.5}\'')
IMPORTING = 'import {modules}\nprint(\'{{"status": "passed", "score": 1.5}}\')\n'
HEAVY = [(("numpy", "scipy.stats"), 4, 12), (("torch",), 2, 8)]  # modules, trials from nothing, forked
TOML = f"""
name = "bench"
[objective]
metric = "score"
decide = "final"
[files]
mutable = ["config.json"]
protected = ["benchmark.sh", "verifier.sh"]
[config]
file = "config.json"
[modes.final]
benchmark = {json.dumps(QUICK)}
"""


@contextmanager
def engine_at(root: Path) -> Iterator[tuple[Engine, Any]]:
    """A real session on a workspace of nine small files, and what a target needs of it."""
    texts = {"kerneldeck.toml": TOML, "config.json": "{}", "benchmark.sh": "", "verifier.sh": ""}
    texts |= {f"cases/{n}.json": "[1, 2, 3]" * 100 for n in range(4)}
    for modules, _, _ in HEAVY:
        texts[f"{modules[0]}_bench.py"] = IMPORTING.format(modules=", ".join(modules))
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with open_session(root, Caller(), lambda event: None) as session:
        yield session.engine, materials(session.workspace, session.sealed)


def there(host: SshHost, engine: Engine, parts: Any) -> SshTarget:
    return SshTarget(host, parts, engine.store.blobs, engine.config.objective)


class Running:
    """Trials of ever new candidates on one target."""

    def __init__(self, bed: Bed, engine: Engine, target: Target) -> None:
        self._bed = bed
        self._engine = engine
        self._target = target
        self._number = 0

    async def trial(self, overhead: Series, command: tuple[str, ...] = QUICK, **more: Any) -> float:
        """Seconds of a trial whose config file has changed; what of them was not its process's goes down."""
        self._number += 1
        current = self._engine.files.current()
        overlay: dict[str, bool | int | float | str] = {"n": f"{id(self)} {self._number}"}
        candidate = with_overlay(current, self._engine.store.blobs, "config.json", overlay)
        folder = self._bed.folder / "outputs" / str(id(self))
        job = replace(Job(command, "final", 60.0, (Layout(candidate.files),), folder), **more)
        self._bed.proxy.counts()
        began = time.perf_counter()
        outcome = await self._target.run(job)
        whole_s = time.perf_counter() - began
        assert outcome.status is Status.OK, outcome
        counts = self._bed.proxy.counts() if isinstance(self._target, SshTarget) else None
        overhead.add(whole_s - outcome.duration_s, counts)
        return whole_s


async def overheads(bed: Bed, engine: Engine, target: SshTarget) -> tuple[Series, Series]:
    """Of the SSH target and of the local one, in turn; a first trial of each is not counted."""
    running = [Running(bed, engine, target), Running(bed, engine, engine.target)]
    series = [Series(f"a warm trial but for its process: {name}") for name in ("ours", "the local target")]
    for one in running:
        await one.trial(Series(""))
    for _ in range(OVERHEAD_ROUNDS):
        for one, overhead in zip(running, series, strict=True):
            await one.trial(overhead)
    return series[0], series[1]


async def rates(bed: Bed, engine: Engine, target: Target, name: str) -> list[str]:
    """Rows of trials a minute: from nothing, and forked from a parent that has imported the modules."""
    rows = []
    for modules, cold, forked in HEAVY:
        if any(find_spec(module.partition(".")[0]) is None for module in modules):
            continue
        words = ("python3", f"{modules[0]}_bench.py")
        running = Running(bed, engine, target)
        from_nothing = await _a_minute(running, cold, words)
        more = await _a_minute(running, forked, words, prefork=modules) if PREFORK else 0.0
        forks = f"{more:>10,.0f}" if PREFORK else f"{'—':>10}"
        what = f"{name}: imports {', '.join(modules)}"
        rows.append(f"  {what:<58}{from_nothing:>10,.0f}{forks}")
    return rows


async def _a_minute(running: Running, rounds: int, words: tuple[str, ...], **more: Any) -> float:
    await running.trial(Series(""), words, **more)  # files come into the page cache, a parent imports
    return 60 * rounds / sum([await running.trial(Series(""), words, **more) for _ in range(rounds)])
