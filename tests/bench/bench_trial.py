"""What a local trial costs beside the candidate's own process: `python tests/bench/bench_trial.py`.

A benchmark that prints one line of JSON is run bare and as a full trial (its row begun, its files laid
out, its process watched, its result judged, its row ended), in turn, so that both see the same machine.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from machine import facts

from core.candidates import with_overlay
from core.engine import Engine
from core.trials import Asked, run_trial
from core.words import Status
from sessions.session import Caller, open_session

ROUNDS = 200
COMMAND = ("sh", "-c", 'echo \'{"status": "passed", "score": 1.5}\'')
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
benchmark = {json.dumps(COMMAND)}
"""


def main() -> None:
    print(f"a local trial of `{' '.join(COMMAND)}`, {ROUNDS} in turn: {facts()}")
    with tempfile.TemporaryDirectory() as scratch, _engine(Path(scratch)) as engine:
        asyncio.run(_measure(engine))


@contextmanager
def _engine(root: Path) -> Iterator[Engine]:
    """A real session on a workspace of eight small files."""
    files = {"kerneldeck.toml": TOML, "config.json": "{}", "benchmark.sh": "", "verifier.sh": ""}
    for name, text in (files | {f"cases/{n}.json": "[1, 2, 3]" * 100 for n in range(4)}).items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    with open_session(root, Caller(), lambda event: None) as session:
        yield session.engine


async def _measure(engine: Engine) -> None:
    first_ms, _ = await _trial_ms(engine, 0)
    bare, full, inside = [], [], []
    for number in range(1, ROUNDS + 1):
        bare.append(_bare_ms())
        whole_ms, own_ms = await _trial_ms(engine, number)
        full.append(whole_ms)
        inside.append(own_ms)
    await engine.target.close()
    print(f"{'ms':<34}{'median':>9}{'p95':>9}")
    _row("bare process", bare)
    _row("full trial", full)
    _row("  its process, as the trial saw it", inside)
    _row("overhead of a trial", [whole - alone for whole, alone in zip(full, bare, strict=True)])
    start_ms = first_ms - statistics.median(full)
    print(f"once a command: the supervisor's start, {start_ms:.1f} ms more in the first trial")


def _bare_ms() -> float:
    began = time.perf_counter()
    subprocess.run(COMMAND, capture_output=True, check=True)
    return (time.perf_counter() - began) * 1e3


async def _trial_ms(engine: Engine, number: int) -> tuple[float, float]:
    """Wall time of a trial of a candidate of its own, and of the process in it."""
    current = engine.files.current()
    candidate = with_overlay(current, engine.store.blobs, "config.json", {"n": number})
    began = time.perf_counter()
    trial = await run_trial(engine, candidate, Asked("final", "run"))
    whole_ms = (time.perf_counter() - began) * 1e3
    assert trial.outcome.status is Status.OK, trial.record.reason
    return whole_ms, trial.outcome.duration_s * 1e3


def _row(name: str, times_ms: Sequence[float]) -> None:
    p95 = statistics.quantiles(times_ms, n=20)[-1]
    print(f"{name:<34}{statistics.median(times_ms):>9.1f}{p95:>9.1f}")


if __name__ == "__main__":
    main()
