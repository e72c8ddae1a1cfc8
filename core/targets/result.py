"""When a trial's result counts, and as which status."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from core.targets.job import Outcome
from core.targets.json_output import last_object
from core.words import STAGES, JsonObject, Status
from core.workspace.config import Objective

MOST_RESULT_BYTES = 64 << 20

_PASSED = {"passed", "pass", "ok", "success", "succeeded"}
_FAILED = {"failed", "fail", "error"}
_OWN_WORDS = {
    status.value
    for status in (Status.INCORRECT, Status.INVALID, Status.COMPILE_ERROR, Status.OOM, Status.UNSTABLE)
}

# What a crashed process said on stderr, when it could not say it in a result.
_SIGNS = (
    (Status.OOM, ("out of memory", "OutOfMemoryError", "MemoryError", "std::bad_alloc", "OutOfResources")),
    (Status.COMPILE_ERROR, ("CompilationError", "ptxas fatal", "ptxas error", "nvcc fatal", "CompileError")),
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended, as the supervisor reports it."""

    exit_code: int | None
    signal: int | None
    ended_by: str
    duration_s: float
    left_behind: int
    oom_kills: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What the result must answer to."""

    objective: Objective
    mode: str
    nonce: str
    needs_score: bool = True


def judge(asked: Asked, ended: Ended, result_file: Path, stdout: str, stderr: str) -> Outcome:
    """The outcome of a process from its end, its result file, and else its standard output."""
    base = Outcome(Status.CRASH, exit_code=ended.exit_code, duration_s=ended.duration_s, notes=_notes(ended))
    if ended.ended_by == "cancel":
        return _with(base, Status.CANCELLED, "cancelled")
    if ended.ended_by == "timeout":
        return _with(base, Status.TIMEOUT, f"still running after {ended.duration_s:.1f} s, ended")
    try:
        result, channel = _result(asked, result_file, stdout)
    except ValueError as error:
        return _with(base, Status.CRASH, str(error))
    if result is None:
        return _without_result(base, ended, stderr)
    status, reason, stage = _status(asked, ended, result)
    score = _score(asked.objective, result)
    if (
        status is Status.OK
        and isinstance(score, str)
        and (asked.needs_score or _names(asked.objective, result))
    ):
        status, reason = Status.CRASH, f"bad_score: {score}"
    kept = score if status is Status.OK and isinstance(score, float) else None
    return Outcome(
        status, reason, stage, kept, result, channel, ended.exit_code, ended.duration_s, base.notes
    )


def _with(base: Outcome, status: Status, reason: str) -> Outcome:
    return Outcome(status, reason, exit_code=base.exit_code, duration_s=base.duration_s, notes=base.notes)


def _notes(ended: Ended) -> tuple[str, ...]:
    if not ended.left_behind:
        return ()
    plural = "process" if ended.left_behind == 1 else "processes"
    return (f"left {ended.left_behind} {plural} behind, ended",)


def _result(asked: Asked, result_file: Path, stdout: str) -> tuple[JsonObject | None, str]:
    """The result and its channel; ValueError says why one on its own channel cannot be believed."""
    if result_file.exists():
        if result_file.stat().st_size > MOST_RESULT_BYTES:
            raise ValueError(f"bad_result: the result file is larger than {MOST_RESULT_BYTES >> 20} MiB")
        try:
            value = json.loads(result_file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"bad_result: the result file is no JSON ({error})") from None
        if not isinstance(value, dict):
            raise ValueError("bad_result: the result file holds no JSON object")
        if value.get("nonce") != asked.nonce:
            raise ValueError("wrong_nonce: the result file does not carry this trial's nonce")
        return value, "file"
    return last_object(stdout), "stdout"


def _without_result(base: Outcome, ended: Ended, stderr: str) -> Outcome:
    last = next((line.strip() for line in reversed(stderr.splitlines()) if line.strip()), "")
    said = f": {last[:300]}" if last else ""
    if ended.oom_kills and ended.signal == 9:
        return _with(base, Status.OOM, "the kernel ended it for memory")
    if ended.signal:
        return _with(base, Status.CRASH, f"signal {ended.signal}{said}")
    if ended.exit_code == 0:
        return _with(base, Status.CRASH, f"no_result: it exited 0 without a JSON object{said}")
    for status, signs in _SIGNS:
        if any(sign in stderr for sign in signs):
            return _with(base, status, last[:300])
    return _with(base, Status.CRASH, f"exit {ended.exit_code} without a result{said}")


def _status(asked: Asked, ended: Ended, result: JsonObject) -> tuple[Status, str, str]:
    """Status, reason and stage that the result itself claims, checked against how the process ended."""
    word = str(result.get("status", "ok" if ended.exit_code == 0 else "failed")).lower()
    errors = _errors(result)
    if word == "infra":
        stage = result.get("stage")
        return Status.INFRA, errors, stage if stage in STAGES else "spawn"
    if word in _OWN_WORDS:
        return Status(word), errors or _failed_case(result), ""
    if word in _FAILED:
        return (Status.INVALID, errors, "") if errors else (Status.INCORRECT, _failed_case(result), "")
    if word not in _PASSED:
        return Status.CRASH, f"bad_result: status {word[:40]!r} is no status of a result", ""
    return _contradiction(asked, ended, result)


def _contradiction(asked: Asked, ended: Ended, result: JsonObject) -> tuple[Status, str, str]:
    """A result that says passed counts only when nothing else says otherwise."""
    mode = result.get("mode")
    if isinstance(mode, str) and mode != asked.mode:
        return Status.CRASH, f"wrong_mode: the result says {mode}, {asked.mode} was asked", ""
    if result.get("verified") is False:
        return Status.INCORRECT, "the result says passed, but not verified", ""
    wrong = _failed_case(result)
    if wrong:
        return Status.INCORRECT, wrong, ""
    if ended.signal:
        return Status.CRASH, f"signal {ended.signal}, although the result says passed", ""
    if ended.exit_code:
        return Status.CRASH, f"exit {ended.exit_code}, although the result says passed", ""
    below = _below_floor(result)
    return (Status.UNSTABLE, below, "") if below else (Status.OK, "", "")


def _errors(result: JsonObject) -> str:
    """The result's own sentences, those of its cases too, shortened."""
    found = [str(error) for error in _list(result.get("errors"))]
    for case in _cases(result):
        found += [str(error) for error in _list(case.get("errors"))]
    distinct = list(dict.fromkeys(found))
    return "; ".join(distinct)[:600]


def _failed_case(result: JsonObject) -> str:
    """The first case that failed or exceeds its tolerance, with its numbers; empty when all are fine."""
    for case in _cases(result):
        name = case.get("name", "?")
        error, tolerance = _number(case, "max_abs"), _number(case, "tolerance")
        if error is not None and tolerance is not None and not error <= tolerance:
            return f"case {name}: max_abs {error:.3g} exceeds {tolerance:.3g}"
        if str(case.get("status", "passed")).lower() not in _PASSED:
            return f"case {name}: {case.get('status')}"
    return ""


def _below_floor(result: JsonObject) -> str:
    for case in _cases(result):
        floor_us, best_us = _number(case, "floor_us"), _number(case, "best_us")
        if floor_us is not None and best_us is not None and best_us < 0.8 * floor_us:
            name = case.get("name", "?")
            return f"case {name}: {best_us:.3g} us is below 0.8 of its floor {floor_us:.3g} us"
    return ""


def _number(case: JsonObject, key: str) -> float | None:
    value = case.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _cases(result: JsonObject) -> list[JsonObject]:
    return [case for case in _list(result.get("cases")) if isinstance(case, dict)]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(objective: Objective, result: JsonObject) -> bool:
    return _value(objective, result) is not None


def _value(objective: Objective, result: JsonObject) -> object:
    value: object = result
    for key in objective.metric.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _score(objective: Objective, result: JsonObject) -> float | str:
    """The objective's value, or a sentence saying why there is none."""
    value = _value(objective, result)
    if value is None:
        return f"the result has no {objective.metric}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{objective.metric} is {str(value)[:40]!r}, no number"
    if not math.isfinite(value) or value <= 0:
        return f"{objective.metric} is {value}, not a finite number above 0"
    return float(value)
