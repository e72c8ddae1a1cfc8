"""Commands that need no host, carried out as the command line does, in processes of their own."""

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


async def probe(deck: Deck) -> None:
    """Check the target in use stage by stage, and show what was found."""
    deck.show(probe=Probe(running=True))
    deck.show(probe=await checked(deck.record.root))


async def checked(root: Path, target: str = "") -> Probe:
    """Check a target; the one in use when none is named."""
    named = ["--target", target] if target else []
    content = await asked(root, "health", "--no-require-gpu", *named)
    try:
        return probe_of(content, time.time())
    except (ValueError, KeyError, TypeError):
        return Probe(at_s=time.time(), sentence="the check gave no answer that can be read")


async def asked(root: Path, *words: str) -> JsonObject:
    """The answer of a command, as a shell would get it with --json; what went wrong as `error`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "kerneldeck", *words, "--json", cwd=root, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            said, _ = await process.communicate()
        answer: JsonObject = json.loads(said)
        return answer
    except TimeoutError:
        return _failed(f"no answer within {ANSWERS_WITHIN_S:g} s")
    except ValueError:
        return _failed("no answer that can be read")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _failed(sentence: str) -> JsonObject:
    return {"error": {"sentence": sentence, "hint": ""}}


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
