"""What a result says of itself: its status, its failures, its score. Nothing in it is taken for granted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.targets.texts import plain
from core.words import STAGES, JsonObject, Status
from core.workspace.config import Objective

FLOOR_SHARE = 0.8  # a time below this share of its floor cannot be real

_PASSED = {"passed", "pass", "ok", "success", "succeeded"}
_FAILED = {"failed", "fail", "failure", "error"}
_OWN_WORDS = {
    status.value
    for status in (
        Status.INCORRECT, Status.INVALID, Status.COMPILE_ERROR, Status.CRASH, Status.OOM, Status.TIMEOUT,
        Status.UNSTABLE,
    )
}  # fmt: skip
_FLAGS = ("verified", "correct", "correctness", "passed", "valid", "success", "ok")

_SIGNS = (
    (Status.OOM, "", ("out of memory", "OutOfMemoryError", "MemoryError", "std::bad_alloc",
                      "OutOfResources", "Cannot allocate memory")),
    (Status.COMPILE_ERROR, "", ("CompilationError", "ptxas fatal", "ptxas error", "nvcc fatal",
                                "CompileError")),
    (Status.INFRA, "scratch", ("No space left on device", "Disk quota exceeded")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A status with its reason, and the stage of an `infra`."""

    status: Status
    reason: str = ""
    stage: str = ""


def told_by(text: str) -> Claim | None:
    """The status that the words of a failed program give away; None when they do not."""
    for status, stage, signs in _SIGNS:
        if any(sign in text for sign in signs):
            return Claim(status, "", stage)
    return None


def claim_of(result: JsonObject, mode: str, clean: bool) -> Claim | None:
    """What the result claims; None when it claims nothing and its process did not end well (`clean`)."""
    said = result.get("mode")
    if said is not None and said != mode:
        return Claim(Status.CRASH, f"wrong_mode: the result says {plain(said)}, {mode} was asked")
    word = _word(result)
    if not word:
        return _passed(result) if clean else failure_of(result)
    if word == "infra":
        stage = result.get("stage")
        return Claim(Status.INFRA, _errors(result) or _unsaid(word), stage if stage in STAGES else "spawn")
    failure = failure_of(result)
    if word in _OWN_WORDS:
        return Claim(Status(word), _errors(result) or (failure.reason if failure else _unsaid(word)))
    if word in _FAILED:
        return failure or Claim(Status.INCORRECT, _unsaid(word))
    if word in _PASSED:
        return _passed(result)
    return Claim(Status.CRASH, f"bad_result: status {plain(word, 40)!r} is no status of a result")


def _unsaid(word: str) -> str:
    return f"the result says {word}, and not why"


def _word(result: JsonObject) -> str:
    value = result.get("status")
    if isinstance(value, bool):
        return "ok" if value else "failed"
    return "" if value is None else str(value).lower()


def _passed(result: JsonObject) -> Claim:
    """A result that says passed counts only when nothing else in it says otherwise."""
    return failure_of(result) or _below_floor(result) or Claim(Status.OK)


def failure_of(result: JsonObject) -> Claim | None:
    """The first thing in a result that says it failed: numbers before words, words before flags."""
    return _beyond_tolerance(result) or _said_by_errors(result) or _failed_part(result) or _flag(result)


def _beyond_tolerance(result: JsonObject) -> Claim | None:
    for case in _cases(result):
        tolerance, error = number(case, "tolerance"), number(case, "max_abs")
        if tolerance is None or "max_abs" not in case:
            continue
        if error is None and _word(case) in _PASSED:
            return _of_case(case, Status.INCORRECT, f"max_abs is {plain(case['max_abs'], 40)}, no number")
        if error is not None and not 0 <= error <= tolerance:
            return _of_case(case, Status.INCORRECT, f"max_abs {error:.3g} is not within {tolerance:.3g}")
    return None


def _said_by_errors(result: JsonObject) -> Claim | None:
    errors = _errors(result)
    if not errors:
        return None
    told = told_by(errors)
    return Claim(told.status, errors, told.stage) if told else Claim(Status.INVALID, errors)


def _failed_part(result: JsonObject) -> Claim | None:
    """The first case or arm with a status of its own that is not a pass."""
    for part in (*_cases(result), *_arms(result)):
        word = _word(part)
        if word and word not in _PASSED:
            status = Status(word) if word in _OWN_WORDS else Status.INCORRECT
            return _of_case(part, status, plain(word, 40))
    return None


def _flag(result: JsonObject) -> Claim | None:
    if result.get("compiled") is False:
        return Claim(Status.COMPILE_ERROR, "the result says compiled: false")
    flag = next((flag for flag in _FLAGS if result.get(flag) is False), "")
    return Claim(Status.INCORRECT, f"the result says {flag}: false") if flag else None


def _below_floor(result: JsonObject) -> Claim | None:
    for case in _cases(result):
        floor_us, best_us = number(case, "floor_us"), number(case, "best_us")
        if floor_us is not None and best_us is not None and best_us < FLOOR_SHARE * floor_us:
            why = f"{best_us:.3g} us is below {FLOOR_SHARE:g} of its floor {floor_us:.3g} us"
            return _of_case(case, Status.UNSTABLE, why)
    return None


def _of_case(part: JsonObject, status: Status, why: str) -> Claim:
    kind, name = ("case", part["name"]) if "name" in part else ("arm", part.get("slot", "?"))
    return Claim(status, f"{kind} {plain(name, 80)}: {why}")


def _errors(result: JsonObject) -> str:
    """The result's own sentences, those of its cases too, shortened."""
    found = [
        error
        for part in (result, *_cases(result))
        for said in (part.get("errors"), part.get("error"))
        for error in (said if isinstance(said, list) else [said])
        if isinstance(error, str) and error.strip()
    ]
    return plain("; ".join(dict.fromkeys(found)))


def _arms(result: JsonObject) -> list[JsonObject]:
    return _objects(result.get("arms"))


def _cases(result: JsonObject) -> list[JsonObject]:
    """The cases, those of every arm too."""
    holders = [result, *_arms(result)]
    return [case for holder in holders for case in _objects(holder.get("cases"))]


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(holder: JsonObject, key: str) -> float | None:
    """The number under `key` (an integer beyond a float's range is infinite), None when there is none."""
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def score_of(objective: Objective, result: JsonObject, slot: int) -> float | str | None:
    """The objective's value, a sentence when it cannot be one, None when the result has no such key.

    `slot` is the arm that is asked about, where the result has several.
    """
    arms = result.get("arms")
    measured = arms[slot] if isinstance(arms, list) and slot < len(arms) else result
    *holders, key = objective.metric.split(".")
    holder: object = measured
    for name in holders:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or holder.get(key) is None:
        return None
    value = number(holder, key)
    if value is None:
        return f"{objective.metric} is {plain(holder[key], 40)!r}, no number"
    if not math.isfinite(value) or value <= 0:
        return f"{objective.metric} is {value:g}, not a finite number above 0"
    return _bad_case(objective.metric, measured) or value


def _bad_case(metric: str, measured: JsonObject) -> str:
    """A case whose own value of the objective cannot be one; it would hide in a sum."""
    for case in _objects(measured.get("cases")):
        value = number(case, metric)
        if value is not None and not 0 < value < math.inf:
            return (
                f"case {plain(case.get('name', '?'), 80)}: {metric} is {value:g}, not a finite number above 0"
            )
    return ""
