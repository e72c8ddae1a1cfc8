"""A health check as the command line makes it, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from core.words import JsonObject
from sessions.host.events import Gpu
from tui.deck import Deck
from tui.plain import plain
from tui.showing import Probe, Stage

ANSWERS_WITHIN_S = 90.0
_PACKAGE_AT = Path(__file__).resolve().parents[1]


async def probe(deck: Deck) -> None:
    """Check the target stage by stage, and show what was found."""
    deck.probed(Probe(running=True))
    deck.probed(await _checked(deck.record.root))


async def _checked(root: Path) -> Probe:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kerneldeck", "health", "--json", "--no-require-gpu",
        cwd=root, env=None, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            said, _ = await process.communicate()
    except TimeoutError:
        return Probe(at_s=time.time(), sentence=f"the check gave no answer within {ANSWERS_WITHIN_S:g} s")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        return probe_of(json.loads(said), time.time())
    except (ValueError, KeyError, TypeError):
        return Probe(at_s=time.time(), sentence="the check gave no answer that can be read")


def probe_of(content: JsonObject, at_s: float) -> Probe:
    """The answer of a health check, as the pane shows it."""
    if "error" in content:
        error = content["error"]
        return Probe(at_s=at_s, sentence=plain(error["sentence"]), hint=plain(error["hint"]))
    stages = tuple(
        Stage(one["stage"], one["state"], one["sentence"] or "", one["remedy"] or "", one["ms"])
        for one in content["stages"]
    )
    processes = tuple(f"process {one['pid']} ({one['name']})" for one in content["processes"])
    return Probe(False, at_s, content["target"], stages, tuple(map(_gpu, content["gpus"])), processes)


def _gpu(row: JsonObject) -> Gpu:
    return Gpu(
        int(row["index"]), str(row.get("name", "")), str(row.get("uuid", "")), _number(row, "temperature_c"),
        _number(row, "power_w"), _number(row, "power_limit_w"), _number(row, "sm_clock_mhz"),
        _number(row, "memory_used_mib"), _number(row, "memory_total_mib"),
        tuple(map(str, row.get("throttle_reasons") or ())),
    )  # fmt: skip


def _number(row: JsonObject, name: str) -> float | None:
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
