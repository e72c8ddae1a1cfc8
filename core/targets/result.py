"""When a trial's result counts, and as which status."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from core.targets.claims import Claim, claim_of, score_of, told_by
from core.targets.job import Outcome
from core.targets.result_channel import Unbelievable, read_result
from core.targets.texts import plain
from core.words import JsonObject, Status
from core.workspace.config import Objective

_END_OF_STDERR = 4000  # characters in which a program says what it died of
_KILLED = 9
_KILLED_IN_SHELL = 128 + _KILLED


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended, as the supervisor reports it."""

    exit_code: int | None
    signal: int | None
    ended_by: str = "itself"  # itself | timeout | cpu | cancel
    duration_s: float = 0.0
    stdout_left_out: int = 0
    stdout_lost: int = 0
    left_behind: int = 0
    survivors: tuple[int, ...] = ()
    oom_kills: int = 0

    @property
    def clean(self) -> bool:
        return self.exit_code == 0

    @property
    def out_of_memory(self) -> bool:
        killed = self.signal == _KILLED or self.exit_code == _KILLED_IN_SHELL
        return bool(self.oom_kills) and killed


@dataclass(frozen=True, slots=True)
class Asked:
    """What the result must answer to."""

    objective: Objective
    mode: str
    nonce: str
    timeout_s: float
    needs_score: bool = True
    score_slot: int = 0
    own_channel: bool = False
    cpu_s: float | None = None


def judge(asked: Asked, ended: Ended, result_file: Path, stdout: str, stderr: str) -> Outcome:
    """The outcome of a process from its end, its result file, and else its standard output."""
    if ended.ended_by == "cancel":
        return _outcome(ended, Claim(Status.CANCELLED, "interrupted"))
    if ended.ended_by == "timeout":
        return _outcome(ended, Claim(Status.TIMEOUT, f"still running after {asked.timeout_s:g} s, ended"))
    if ended.ended_by == "cpu":
        used = f"used more than {asked.cpu_s or 0:g} s of CPU time, ended"
        return _outcome(ended, Claim(Status.TIMEOUT, used))
    try:
        result, channel = read_result(asked.nonce, result_file, stdout, asked.own_channel)
    except Unbelievable as error:
        claim = Claim(Status.CRASH, str(error)) if ended.clean else _without_result(ended, stderr, str(error))
        return _outcome(ended, claim)
    if ended.stdout_lost and channel == "stdout":
        return _outcome(ended, _output_lost(ended))
    claimed = claim_of(result, asked.mode, ended.clean) if result is not None else None
    if result is None or claimed is None:
        return _outcome(ended, _without_result(ended, stderr), result, channel)
    return _scored(asked, ended, claimed, result, channel)


def _scored(asked: Asked, ended: Ended, claim: Claim, result: JsonObject, channel: str) -> Outcome:
    """A pass counts when the process ended well and there is a score, where one is asked for."""
    if claim.status is not Status.OK:
        return _outcome(ended, claim, result, channel)
    if not ended.clean:
        return _outcome(ended, _not_clean(ended, ", although the result says passed"), result, channel)
    score = score_of(asked.objective, result, asked.score_slot)
    if score is None and asked.needs_score:
        score = f"the result has no {asked.objective.metric}"
    if isinstance(score, str):
        return _outcome(ended, Claim(Status.CRASH, f"bad_score: {score}"), result, channel)
    return _outcome(ended, claim, result, channel, score)


def _outcome(
    ended: Ended,
    claim: Claim,
    result: JsonObject | None = None,
    channel: str = "",
    score: float | None = None,
) -> Outcome:
    return Outcome(
        claim.status,
        plain(claim.reason),
        claim.stage,
        score,
        result,
        channel if result is not None else "",
        ended.exit_code,
        ended.duration_s,
        _notes(ended),
    )


def _without_result(ended: Ended, stderr: str, why: str = "") -> Claim:
    """What to call an end without a usable result; `why` says what is wrong with the one there is."""
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    said = "".join(f": {part}" for part in (why, plain(last, 300)) if part)
    if ended.signal or ended.out_of_memory:
        return _not_clean(ended, said)
    if ended.stdout_lost and not why:
        return _output_lost(ended)
    if ended.clean:
        return Claim(Status.CRASH, f"no_result: it exited 0 without a JSON object{_left_out(ended)}{said}")
    told = told_by(stderr[-_END_OF_STDERR:])
    if told is not None:
        return Claim(told.status, said[2:], told.stage)
    return _not_clean(ended, f" without a result{said}")


def _not_clean(ended: Ended, rest: str) -> Claim:
    if ended.out_of_memory:
        return Claim(Status.OOM, f"the kernel ended it for memory{rest}")
    if ended.signal:
        return Claim(Status.CRASH, f"signal {ended.signal}{_signal_name(ended.signal)}{rest}")
    if ended.exit_code is None:
        return Claim(Status.CRASH, f"it could not be ended{rest}")
    return Claim(Status.CRASH, f"exit {ended.exit_code}{rest}")


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def _output_lost(ended: Ended) -> Claim:
    why = f"the disk did not take {ended.stdout_lost} bytes of its output: free space there"
    return Claim(Status.INFRA, why, "scratch")


def _left_out(ended: Ended) -> str:
    if not ended.stdout_left_out:
        return ""
    left_out = f"{ended.stdout_left_out} bytes are not; the file in KERNELDECK_RESULT holds more"
    return f" in what is kept of its output ({left_out})"


def _notes(ended: Ended) -> tuple[str, ...]:
    notes: list[str] = []
    killed = ended.left_behind - len(ended.survivors)
    if killed > 0 and ended.ended_by == "itself":
        notes.append(f"left {killed} {'process' if killed == 1 else 'processes'} behind, ended")
    if ended.survivors:
        notes.append(f"could not be ended: process {', '.join(map(str, ended.survivors))}")
    return tuple(notes)
