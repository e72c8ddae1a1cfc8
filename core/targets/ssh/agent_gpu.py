"""What nvidia-smi says of the GPUs and of who uses them; it may be absent, hang, or print anything.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: B905

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.targets.ssh.wire import Fault, Json

    Value = str | float | list[str] | None
else:
    from wire import Fault

MOST_SAID_BYTES = 1 << 20
GIVE_UP_AFTER_KILL_S = 1.0
_WORDS = {"index": "index", "name": "name", "uuid": "uuid", "driver": "driver_version"}
_NUMBERS = {
    "memory_total_mib": "memory.total",
    "memory_used_mib": "memory.used",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "power_limit_w": "power.limit",
    "sm_clock_mhz": "clocks.sm",
    "memory_clock_mhz": "clocks.mem",
    "most_sm_clock_mhz": "clocks.max.sm",
    "utilization_percent": "utilization.gpu",
}
_LOST = ("GPU is lost", "requires reset")  # what nvidia-smi writes in place of such a card's values
_THROTTLE = "clocks_throttle_reasons.active"
_CARDS = f"--query-gpu={','.join([*_WORDS.values(), *_NUMBERS.values(), _THROTTLE])}"
_PROCESSES = "--query-compute-apps=gpu_uuid,pid,used_memory,process_name"
_OF_A_TRIAL = ("temperature_c", "power_w", "sm_clock_mhz", "memory_clock_mhz", "throttle_reasons")
_REASONS = {
    0x1: "idle", 0x2: "clocks setting", 0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "heat (software)", 0x40: "heat (hardware)", 0x80: "power brake", 0x100: "display clock setting",
}  # fmt: skip


class Said:
    """How a program answered: `exit_code` is None when it did not in time."""

    def __init__(self, exit_code: int | None, out: str, err: str) -> None:
        self.exit_code = exit_code
        self.out = out
        self.err = err


class Question:
    """A program that has just been started, and answers within `deadline_s`. OSError."""

    def __init__(self, argv: list[str], deadline_s: float, env: dict[str, str] | None = None) -> None:
        self.deadline_s = deadline_s
        self.until = time.monotonic() + deadline_s
        self.process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env=env,
        )  # fmt: skip

    def answer(self) -> Said:
        """Never waits for a program that cannot be ended."""
        process = self.process
        assert process.stdout is not None and process.stderr is not None
        said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        out, err = list(said)
        in_time = _listen(said, self.until)
        if in_time:
            in_time = _ended(process, self.deadline_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        _ended(process, GIVE_UP_AFTER_KILL_S)
        texts = [bytes(said[end]).decode("utf-8", "replace") for end in (out, err)]
        process.stdout.close()
        process.stderr.close()
        return Said(process.returncode if in_time else None, *texts)


def ask(argv: list[str], deadline_s: float, env: dict[str, str] | None = None) -> Said:
    """Run a program for at most `deadline_s`. OSError."""
    return Question(argv, deadline_s, env).answer()


def _listen(said: dict[int, bytearray], until: float) -> bool:
    """Read until both streams end; False when that does not come in time, or without end."""
    ends = list(said)
    while ends:
        ready, _, _ = select.select(ends, [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return False
        for end in ready:
            chunk = os.read(end, 1 << 16)
            said[end] += chunk
            if not chunk:
                ends.remove(end)
            if len(said[end]) > MOST_SAID_BYTES:
                return False
    return True


def _ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def gpus(smi: str, deadline_s: float, gpu: str = "") -> Json:
    """{"gpus": [..], "unreadable": lines that made no sense}; Fault in stage gpu when there is no answer.

    Values that a card does not tell are None.
    """
    text = _text(smi, _asked(smi, _CARDS, deadline_s, gpu))
    found, unreadable = [], 0
    for line in text.splitlines():
        row = _row(line)
        if row is not None:
            found.append(row)
        elif line.strip():
            unreadable += 1
    if not found:
        raise Fault(
            "gpu", f"{smi} lists no GPU: {_excerpt(text) or 'it says nothing'}", "run it there yourself"
        )
    return {"gpus": found, "unreadable": unreadable}


def _row(line: str) -> dict[str, Value] | None:
    values = [value.strip() for value in line.split(",")]
    if len(values) != len(_WORDS) + len(_NUMBERS) + 1 or not values[0].isdigit():
        return None
    row: dict[str, Value] = dict(zip(_WORDS, values))
    row.update(zip(_NUMBERS, map(_number, values[len(_WORDS) :])))
    row["throttle_reasons"] = _reasons(values[-1])
    lost = next((value[:80] for value in values if any(word in value for word in _LOST)), "")
    if lost:
        row["lost"] = lost
    return row


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None


def _reasons(word: str) -> list[str] | None:
    try:
        bits = int(word, 16)
    except ValueError:
        return None
    return [reason for bit, reason in _REASONS.items() if bits & bit]


def processes(smi: str, deadline_s: float, gpu: str = "") -> list[Json]:
    """[{"gpu", "pid", "name", "memory_mib"}] of the programs that compute on the GPU(s) now."""
    return _processes_in(_text(smi, _asked(smi, _PROCESSES, deadline_s, gpu)))


def _processes_in(text: str) -> list[Json]:
    found: list[Json] = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",", 3)]
        if len(values) == 4 and values[1].isdigit() and values[1] != str(os.getpid()):
            uuid, pid, memory, name = values
            found.append({"gpu": uuid, "pid": int(pid), "name": name[:200], "memory_mib": _number(memory)})
    return found[:200]


def _asked(smi: str, query: str, deadline_s: float, gpu: str) -> Question:
    argv = [smi, query, "--format=csv,noheader,nounits", *([f"--id={gpu}"] if gpu else [])]
    try:
        return Question(argv, deadline_s)
    except OSError as error:
        raise Fault(
            "gpu", f"{smi} cannot be run there: {error.strerror}", "is it a machine with a GPU?"
        ) from None


def _text(smi: str, question: Question) -> str:
    said = question.answer()
    if said.exit_code is None:
        raise Fault(
            "gpu",
            f"{smi} did not answer within {question.deadline_s:g} s",
            "its driver may hang; see `dmesg`",
        )
    if said.exit_code != 0:
        words = _excerpt(said.out + " " + said.err)
        raise Fault("gpu", f"{smi} ended with {said.exit_code}: {words}", "run it there yourself")
    return said.out


def check(smi: str, deadline_s: float, gpu: str = "") -> Json:
    """GPUs and processes; what was not to be had is told under "trouble" as {"stage", "sentence", "hint"}."""
    answer: Json = {"gpus": [], "processes": [], "unreadable": 0, "trouble": None}
    try:
        answer.update(gpus(smi, deadline_s, gpu))
        answer["processes"] = processes(smi, deadline_s, gpu)
    except Fault as fault:
        answer["trouble"] = {"stage": fault.stage, "sentence": fault.sentence, "hint": fault.hint}
    return answer


def seen(smi: str, deadline_s: float, gpu: str) -> Json:
    """Who computes on the GPU now, and how it is: {"processes", "card" or None, "unknown": why something is}.

    Both are asked at once: a trial waits for the slower one.
    """
    found: Json = {"processes": [], "card": None, "unknown": ""}
    try:
        asked = [_asked(smi, query, deadline_s, gpu) for query in (_CARDS, _PROCESSES)]
    except Fault as fault:
        return {**found, "unknown": fault.sentence}
    texts = []
    for question in asked:
        try:
            texts.append(_text(smi, question))
        except Fault as fault:
            found["unknown"] = fault.sentence
            texts.append("")
    found["processes"] = _processes_in(texts[1])
    for row in map(_row, texts[0].splitlines()):
        if row is not None and row["uuid"] == gpu:
            found["card"] = {name: row[name] for name in _OF_A_TRIAL}
    return found


def _excerpt(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:300]
