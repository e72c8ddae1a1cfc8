"""This machine's GPUs, for a health check without a GPU host."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from core.targets.texts import plain
from core.words import JsonObject

_FIELDS = {
    "index": "index",
    "name": "name",
    "uuid": "uuid",
    "driver": "driver_version",
    "memory_total_mib": "memory.total",
    "memory_used_mib": "memory.used",
}


async def local_health(timeout_s: float, gpu_needed: bool) -> JsonObject:
    """The answer of a health check, with the one stage that there is here."""
    gpus, trouble = await _gpus(timeout_s)
    failed = bool(trouble) and gpu_needed
    state = "failed" if failed else "skipped" if trouble else "ok"
    remedy = "name a GPU host: --target ssh:HOST" if failed else ""
    stage = {
        "stage": "gpu", "title": "the GPU", "state": state, "ms": None, "sentence": trouble, "remedy": remedy,
    }  # fmt: skip
    return {
        "target": "local",
        "status": "failed" if failed else "ok",
        "stage": "gpu" if failed else None,
        "failure_stage": "gpu" if failed else None,
        "reason": trouble if failed else "",
        "cached": False,
        "age_s": None,
        "stages": [stage],
        "free_mb": None,
        "python": None,
        "gpus": gpus,
        "trial_gpu": None,
        "processes": [],
    }


async def _gpus(timeout_s: float) -> tuple[list[JsonObject], str]:
    """What nvidia-smi lists, or why it lists nothing."""
    query = f"--query-gpu={','.join(_FIELDS.values())}"
    try:
        process = await asyncio.create_subprocess_exec(
            "nvidia-smi", query, "--format=csv,noheader,nounits",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        return [], f"nvidia-smi cannot be run here: {error.strerror}"
    try:
        async with asyncio.timeout(timeout_s):
            said, _ = await process.communicate()
    except TimeoutError:
        return [], f"nvidia-smi did not answer within {timeout_s:g} s"
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    lines = [line.split(", ") for line in said.decode("utf-8", "replace").splitlines()]
    gpus: list[JsonObject] = [
        dict(zip(_FIELDS, map(plain, line), strict=True)) for line in lines if len(line) == len(_FIELDS)
    ]
    return gpus, "" if gpus and process.returncode == 0 else "nvidia-smi lists no GPU here"
