"""Kerneldeck's timing file: trial interface v1 and raw samples for a benchmark. Standard library only.

It is copied beside a benchmark, which imports it before it loads any candidate:

    import kerneldeck_timing as timing

    arms = timing.arms()  # the folders to measure, one per slot
    kernels = {arm.slot: timing.load(arm.folder, "kernel.py", arm.slot) for arm in arms}
    times = timing.measure(arms, ["small", "large"], call_of, timing.plan(arms))
    # call_of(arm, case) returns a call that does one launch; a report: {"slot": 0, "status": "passed",
    # "best_us": …, "cases": [{"name": "small", "status": "passed", **times.case_fields(0, "small")}, …]}
    print(timing.write_result(timing.result_of(reports, "dev", times)))

What the caller may set. It is taken out of the environment at the first use, so that neither a candidate
nor a compiler started later finds it there.

KERNELDECK_RESULT  file for the result: there under that name only when it is whole
KERNELDECK_NONCE   value that the result carries back
KERNELDECK_ARMS    JSON list of folders; one may stand twice; absent: the current folder alone
KERNELDECK_VISITS  file or FIFO of JSON lines, one a round, each read when the round before it is done:
                   {"order": [2, 0, 1], "cases_seed": 7, "launches": 25}. A slot left out is not visited in
                   that round. launches left out or null: as many as fit in 10 ms, 3 to 25, all slots alike
KERNELDECK_WARM_S  seconds of warm-up, alternating over all arms and cases (0.5)

A visit is one arm on one case: one untimed launch, then the timed ones. A round goes through the cases in
an order drawn from cases_seed, and on each case through the slots in the order asked, so that what is
compared lies side by side in time. `blocks` has one list a round, in round order, in µs to the ns; it is
empty where the slot was not visited. A round that the engine does not trust stays in `blocks`, is named in
`discarded_rounds` (counted from 0) and counts nowhere. Python's collector is off meanwhile. For Python 3.8.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Key = tuple[int, str]  # slot and case
    Json = dict[str, object]
    Call = Callable[[], object]

SCHEMA = 1
ROUNDS, LAUNCHES, LEAST_LAUNCHES, MOST_LAUNCHES = 12, 25, 3, 100_000
VISIT_US, WARM_S = 10_000.0, 0.5
PAGE_BYTES, SHIFT_BYTES = 4096, 256
STATUSES = ("passed", "unstable", "incorrect", "failed", "oom", "compile_error", "invalid", "infra")
"""What an arm's status may be, best first; of several arms the worst is the result's."""

_asked_for: dict[str, str] = {}
_CLOCK_NS = time.perf_counter_ns  # taken before a candidate is loaded, so that none can replace it


class TimingError(ValueError):
    """What the caller asked for cannot be carried out; the message names the place and what it needs."""


def _asked(key: str) -> str | None:
    for name in ("RESULT", "NONCE", "ARMS", "VISITS", "WARM_S"):
        value = os.environ.pop(f"KERNELDECK_{name}", None)
        if value is not None:
            _asked_for[name] = value
    return _asked_for.get(key)


def _json_or_none(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


class Arm(NamedTuple):
    """A folder to measure and its place in the caller's list."""

    slot: int
    folder: str


def arms() -> list[Arm]:
    """The folders to measure; TimingError when KERNELDECK_ARMS is no JSON list of existing folders."""
    text = _asked("ARMS")
    folders = [str(Path.cwd())] if text is None else _json_or_none(text)
    if not isinstance(folders, list) or not folders or not all(isinstance(each, str) for each in folders):
        raise TimingError('KERNELDECK_ARMS is no JSON list of folder names: set it to one like ["a", "b"]')
    for missing in (folder for folder in folders if not Path(folder).is_dir()):
        raise TimingError(f"KERNELDECK_ARMS: {missing!r} is no folder: lay the candidate out first")
    return [Arm(slot, str(Path(folder).absolute())) for slot, folder in enumerate(folders)]


def load(folder: str, file: str, slot: int) -> ModuleType:
    """The Python file `file` of `folder` as a module of its own for `slot`, even when loaded before.

    Modules of that folder which it imports while it loads are its own too; imports inside functions are not.
    Artefacts of other kinds the workspace loads itself, from the arm's folder. Raises what the file raises.
    """
    path = Path(folder).absolute() / file
    module = ModuleType(f"kerneldeck_arm{slot}_{path.stem}")
    module.__file__ = str(path)
    # From the source: a .pyc that another candidate of the same size and second left would be believed.
    code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    known = {*sys.modules, module.__name__}
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.parent))
    try:
        exec(code, module.__dict__)
    finally:
        sys.path.remove(str(path.parent))
        for new in set(sys.modules) - known:
            if path.parent in Path(getattr(sys.modules[new], "__file__", None) or os.sep).parents:
                del sys.modules[new]
    return module


def shifted_buffer(size_bytes: int, chance: random.Random | None = None) -> memoryview:
    """Zeroed, writable bytes that start 0 to 15 times 256 B, drawn at random, behind the start of a page.

    Two loads of one candidate, each with buffers of its own, then differ as two processes would.
    """
    owner = bytearray(size_bytes + 2 * PAGE_BYTES)
    to_page_bytes = -ctypes.addressof(ctypes.c_char.from_buffer(owner)) % PAGE_BYTES
    start = to_page_bytes + (chance or random).randrange(PAGE_BYTES // SHIFT_BYTES) * SHIFT_BYTES
    return memoryview(owner)[start : start + size_bytes]


class Round(NamedTuple):
    """Slots in the order of their visits, seed of the cases' order, timed launches a visit (None: fitted)."""

    order: tuple[int, ...]
    cases_seed: int
    launches: int | None


class Plan(NamedTuple):
    """Rounds, drawn or read as they are needed; the seed they were drawn from (None: asked for); warm-up."""

    rounds: Iterator[Round]
    seed: int | None
    warm_s: float
    warm_launches: int


def plan(arms: Sequence[Arm], repeats: int | None = None, warmup: int = 1, warm_s: float = WARM_S) -> Plan:
    """The rounds that KERNELDECK_VISITS asks for; else our own, over all `arms` in random order.

    `repeats` is for our own: timed launches per arm and case in all; None: 12 rounds of as many as fit.
    The warm-up takes KERNELDECK_WARM_S, else `warm_s`, and at least `warmup` launches of each arm and case.
    The file is opened when `measure` has warmed up. Raises TimingError for a warm-up that is no number.
    """
    path, seconds = _asked("VISITS"), _warm_s(warm_s)
    if path is not None:
        return Plan(_asked_rounds(path, len(arms)), None, seconds, warmup)
    seed = random.SystemRandom().getrandbits(32)
    return Plan(_own_rounds(len(arms), repeats, random.Random(seed)), seed, seconds, warmup)


def _warm_s(default: float) -> float:
    text = _asked("WARM_S")
    try:
        warm_s = default if text is None else float(text)
    except ValueError:
        warm_s = math.nan
    if not 0 <= warm_s < math.inf:
        raise TimingError(f"KERNELDECK_WARM_S: {text!r} is no number of seconds")
    return warm_s


def _own_rounds(arm_count: int, repeats: int | None, chance: random.Random) -> Iterator[Round]:
    count = ROUNDS if repeats is None else max(min(ROUNDS, repeats), -(-repeats // LAUNCHES))
    for index in range(count):
        launches = None if repeats is None else repeats // count + (index < repeats % count)
        order = tuple(chance.sample(range(arm_count), arm_count))
        yield Round(order, chance.getrandbits(32), launches)


def _asked_rounds(path: str, arm_count: int) -> Iterator[Round]:
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield _round_of(line, f"{path}:{number}", arm_count)
    except (OSError, UnicodeDecodeError) as error:
        raise TimingError(f"KERNELDECK_VISITS: {path} cannot be read: {error}") from None


def _round_of(line: str, place: str, arm_count: int) -> Round:
    asked = _json_or_none(line)
    if not isinstance(asked, dict):
        example = '{"order": [0], "cases_seed": 7, "launches": 25}'
        raise TimingError(f"{place}: this line is no round: write one like {example}")
    order, seed, launches = asked.get("order"), asked.get("cases_seed"), asked.get("launches")
    slots = order if isinstance(order, list) and all(type(slot) is int for slot in order) else []
    if not slots or not set(slots) <= set(range(arm_count)) or len(set(slots)) < len(slots):
        raise TimingError(f"{place}: order {order!r} is no list of different slots from 0 to {arm_count - 1}")
    if type(seed) is not int:
        raise TimingError(f"{place}: cases_seed {seed!r} is no whole number")
    if launches is not None and not (type(launches) is int and 1 <= launches <= MOST_LAUNCHES):
        raise TimingError(f"{place}: launches {launches!r} is neither null nor from 1 to {MOST_LAUNCHES}")
    return Round(tuple(slots), seed, launches)


class CpuWallEngine:
    """Takes the times: wall time round every call. The engine of a device overrides all of it."""

    name = "cpu_wall"
    unit = "us"

    def __init__(self) -> None:
        self._clock_ns = _CLOCK_NS

    def resolution_us(self) -> float:
        """The shortest time it tells from none: the smallest step between two readings, of 1,000 pairs."""
        steps_ns = [-(self._clock_ns() - self._clock_ns()) for _ in range(1000)]
        return min((step_ns for step_ns in steps_ns if step_ns > 0), default=1) / 1000

    def time_launches(self, call: Call, count: int) -> list[float]:
        """µs of each of `count` calls, one after the other; reading the clock is part of them."""
        clock_ns, times_ns = self._clock_ns, []
        for _ in range(count):
            begin_ns = clock_ns()
            call()
            times_ns.append(clock_ns() - begin_ns)
        return [time_ns / 1000 for time_ns in times_ns]

    def sync(self) -> None:
        """Returns when all that was launched is done; a call on the CPU returns no earlier."""

    def fault(self, launch_us: Sequence[float]) -> str | None:
        """Why the round of a visit with these times must not count, or None. Slow launches are no fault."""
        least_us = min(launch_us)
        return None if least_us > 0 else f"a launch took {least_us:g} µs: the clock stood or went backwards"


@dataclass(frozen=True)
class Measurement:
    """Every launch of every visit and how it was taken; `blocks[slot, case][round]` is a list of µs."""

    engine: CpuWallEngine
    plan: Plan
    rounds: list[Round]
    blocks: dict[Key, list[list[float]]]
    discarded: dict[int, str]

    def kept_us(self, slot: int, case: str) -> list[float]:
        """The launches of the rounds that count, in µs."""
        blocks = enumerate(self.blocks[slot, case])
        return [time_us for index, block in blocks if index not in self.discarded for time_us in block]

    def case_fields(self, slot: int, case: str) -> Json:
        """best_us, median_us and samples of a case's entry in the result; null where no round counts."""
        kept_us, blocks = self.kept_us(slot, case), self.blocks[slot, case]
        return {
            "best_us": min(kept_us) if kept_us else None,
            "median_us": round(statistics.median(kept_us), 3) if kept_us else None,
            "samples": {
                "launch_us": {"engine": self.engine.name, "unit": self.engine.unit, "blocks": blocks}
            },
        }

    def timing_fields(self) -> Json:
        """The result's `timing`: which rounds were done and how; `launches` is that of the largest block."""
        return {
            "engine": self.engine.name,
            "warm_s": self.plan.warm_s,
            "launches": max((len(block) for blocks in self.blocks.values() for block in blocks), default=0),
            "rounds": len(self.rounds),
            "resolution_us": self.engine.resolution_us(),
            "seed": self.plan.seed,
            "discarded_rounds": sorted(self.discarded),
            "discard_reasons": [self.discarded[index] for index in sorted(self.discarded)],
            "plan": [each._asdict() for each in self.rounds],
        }


def measure(
    arms: Sequence[Arm],
    cases: Sequence[str],
    call_of: Callable[[Arm, str], Call],
    plan: Plan,
    engine: CpuWallEngine | None = None,
) -> Measurement:
    """Warms up over all arms and cases, then carries the rounds of `plan` out.

    `arms` may lack arms that cannot run: their slots are passed over. `call_of(arm, case)` is asked once
    each, before anything runs. Raises TimingError for a round that cannot be carried out.
    """
    calls = {(arm.slot, case): call_of(arm, case) for case in cases for arm in arms}
    times = Measurement(engine or CpuWallEngine(), plan, [], {key: [] for key in calls}, {})
    gc.disable()
    try:
        cost_us = _warm_up(calls, times)
        for asked in plan.rounds:
            times.rounds.append(asked)
            _carry_out(asked, calls, cost_us, times)
    finally:
        gc.enable()
    if not times.rounds:
        raise TimingError("KERNELDECK_VISITS asks for no round: write one JSON line a round")
    return times


def _warm_up(calls: dict[Key, Call], times: Measurement) -> dict[str, float]:
    """What a launch costs on each case, in µs, by its slowest arm once warm."""
    best_us = dict.fromkeys(calls, math.inf)
    end_ns, passes = _CLOCK_NS() + int(times.plan.warm_s * 1e9), 0
    while passes < max(1, times.plan.warm_launches) or _CLOCK_NS() < end_ns:
        for key, call in calls.items():
            best_us[key] = min(best_us[key], times.engine.time_launches(call, 1)[0])
        passes += 1
    return {case: max(best_us[key] for key in calls if key[1] == case) for _, case in calls}


def _carry_out(asked: Round, calls: dict[Key, Call], cost_us: dict[str, float], times: Measurement) -> None:
    cases = list(cost_us)
    random.Random(asked.cases_seed).shuffle(cases)
    for blocks in times.blocks.values():
        blocks.append([])
    for key in ((slot, case) for case in cases for slot in asked.order if (slot, case) in calls):
        fitting = max(LEAST_LAUNCHES, min(LAUNCHES, int(VISIT_US / max(cost_us[key[1]], 1.0))))
        launch_us = _visit(calls[key], asked.launches or fitting, times.engine)
        times.blocks[key][-1].extend(launch_us)
        fault = times.engine.fault(launch_us)
        if fault:
            times.discarded[len(times.rounds) - 1] = fault


def _visit(call: Call, launches: int, engine: CpuWallEngine) -> list[float]:
    # The untimed launch brings the arm's buffers and threads back after the other arms had the machine.
    call()
    engine.sync()
    launch_us = engine.time_launches(call, launches)
    engine.sync()
    return [round(time_us, 3) for time_us in launch_us]


def result_of(reports: Sequence[Json], mode: str, times: Measurement | None = None) -> Json:
    """One result of the arms' reports in slot order: slot 0's fields, the worst status, everyone's errors.

    A report has slot, status, the objective, cases and perhaps errors (a list of sentences). An arm that
    passed though a timed case has no time that counts becomes `unstable`. Several arms also stand whole
    under `arms`.
    """
    settled = [{**report, "status": _settled_status(report)} for report in reports]
    status = max((str(report["status"]) for report in settled), key=STATUSES.index)
    result: Json = {key: value for key, value in settled[0].items() if key != "slot"}
    errors = [sentence for report in settled for sentence in _listed(report.get("errors"))]
    result.update(status=status, mode=mode, errors=errors)
    if len(settled) > 1:
        result["arms"] = settled
    if times is not None:
        result["timing"] = times.timing_fields()
    return result


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _settled_status(report: Json) -> object:
    cases = [case for case in _listed(report.get("cases")) if isinstance(case, dict)]
    lost = any(case.get("best_us") is None for case in cases if "samples" in case)
    return "unstable" if lost and report["status"] == "passed" else report["status"]


def write_result(result: Json) -> str:
    """`result` with schema and nonce as strict JSON, also written to KERNELDECK_RESULT; NaN becomes null."""
    text = json.dumps(_strict({"schema": SCHEMA, "nonce": _asked("NONCE"), **result}), allow_nan=False)
    path = _asked("RESULT")
    if path is not None:
        part = Path(f"{path}.{os.getpid()}.part")
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    return text


def _strict(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    return value
