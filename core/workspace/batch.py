"""A workspace's batch evaluator, asked in a helper process of its own; its code never runs in ours."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.errors import WorkFault
from core.words import JsonObject, Overlay, Scalar
from core.workspace.config import Workspace

DEADLINE_S = 120.0
MOST_ANSWER_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class BatchTop:
    """The best plans of a product by exact scores, best first, and what was looked at in `seconds`."""

    plans: tuple[Overlay, ...]
    scores: tuple[float, ...]
    raw: int
    valid: int
    seconds: float


async def top(workspace: Workspace, mode: str, domains: Mapping[str, Sequence[Scalar]], k: int) -> BatchTop:
    """The `k` best valid plans of the product of `domains` in `mode`; WorkFault when the evaluator fails."""
    began = time.monotonic()
    request = {"call": "top", "mode": mode, "domains": {n: list(v) for n, v in domains.items()}, "k": k}
    answer = await _ask(workspace, request)
    try:
        return BatchTop(
            tuple(answer["plans"]),
            tuple(answer["scores"]),
            int(answer["total_raw"]),
            int(answer["total_valid"]),
            time.monotonic() - began,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise WorkFault(f"{workspace.config.extras.batch}: its answer lacks {error}") from None


async def _ask(workspace: Workspace, request: JsonObject) -> JsonObject:
    """One request to a fresh evaluator; every wait is bounded, and the process never outlives the call."""
    file = workspace.config.extras.batch
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", str(workspace.root / file), "--serve",
        cwd=workspace.root, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, limit=MOST_ANSWER_BYTES, start_new_session=True,
    )  # fmt: skip
    try:
        line = json.dumps(request).encode() + b"\n"
        out, err = await asyncio.wait_for(process.communicate(line), DEADLINE_S)
    except TimeoutError:
        raise WorkFault(
            f"{file} did not answer within {DEADLINE_S:g} s", "narrow the knobs with --set"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _answer(file, out, err.decode("utf-8", "replace"))


def _answer(file: str, out: bytes, err: str) -> JsonObject:
    try:
        answer = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        last = next((line for line in reversed(err.splitlines()) if line.strip()), "it printed nothing")
        raise WorkFault(f"{file} gave no answer: {last[:300]}") from None
    if not isinstance(answer, dict) or "error" in answer:
        raise WorkFault(f"{file}: {answer.get('error') if isinstance(answer, dict) else 'no object'}")
    return answer
