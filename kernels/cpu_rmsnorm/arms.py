"""One arm on its way: built, loaded, given buffers of its own, checked before and after it is timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import cases
import kerneldeck_timing as timing
import numpy as np
import toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

    Inspect = Callable[[toolchain.Kernel], list["Check"]]


class Check(NamedTuple):
    """One thing looked at, and what is wrong with it (empty: nothing)."""

    name: str
    fault: str


class Problem(NamedTuple):
    """A case with its inputs and what y should be, made before any candidate is loaded."""

    case: cases.Case
    inputs: cases.Inputs
    wanted: cases.Doubles


def problems_of(mode: str) -> list[Problem]:
    """The mode's cases, drawn and solved."""
    drawn = [(case, cases.draw(case)) for case in cases.CASES[mode]]
    return [Problem(case, inputs, cases.expected(inputs)) for case, inputs in drawn]


class Bench(NamedTuple):
    """One arm's own buffers for one problem, and the call that works on them."""

    problem: Problem
    y: cases.Floats
    call: Callable[[], object]


@dataclass
class Candidate:
    """An arm's config, buffers and findings; its status is `passed` until something fails."""

    arm: timing.Arm
    status: str = "passed"
    errors: list[str] = field(default_factory=list)
    config: toolchain.Config | None = None
    benches: dict[str, Bench] = field(default_factory=dict)
    max_abs: dict[str, float] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)

    def fail(self, status: str, *errors: str) -> None:
        """Notes what failed; the first status stands."""
        self.status = status if self.status == "passed" else self.status
        self.errors.extend(errors)

    def judge(self) -> None:
        """Compares every case's y with what it should be, and poisons it for what comes next."""
        for name, bench in self.benches.items():
            error = cases.largest_error(bench.y, bench.problem.wanted)
            worst = self.max_abs.get(name, 0.0)
            # Not max(): a NaN must stay.
            self.max_abs[name] = worst if error <= worst or np.isnan(worst) else error
            if not error <= cases.TOLERANCE:
                self.fail("incorrect", f"{name}: largest error {error:.3g}, allowed {cases.TOLERANCE:g}")
            bench.y[:] = np.nan


def prepare(
    arm: timing.Arm, compiler: toolchain.Compiler, problems: list[Problem], inspect: Inspect | None
) -> Candidate:
    """The arm's candidate, ready to be timed when its status is still `passed`. Raises NoCompiler."""
    candidate = Candidate(arm)
    folder = Path(arm.folder)
    try:
        candidate.config = toolchain.read_config(folder)
        kernel = toolchain.load(toolchain.build(folder, candidate.config, compiler))
    except toolchain.InvalidConfig as error:
        candidate.fail("invalid", str(error))
        return candidate
    except toolchain.CompileError as error:
        candidate.fail("compile_error", *error.lines)
        return candidate
    for problem in problems:
        bench = candidate.benches[problem.case.name] = _bench(kernel, problem)
        bench.call()
    candidate.judge()
    if inspect is not None:
        candidate.checks = inspect(kernel)
        faults = [f"{check.name}: {check.fault}" for check in candidate.checks if check.fault]
        if faults:
            candidate.fail("incorrect", *faults)
    if candidate.status != "passed":
        candidate.benches.clear()
    return candidate


def _bench(kernel: toolchain.Kernel, problem: Problem) -> Bench:
    inputs = cases.Inputs(*(placed(values) for values in problem.inputs))
    y = placed(np.full_like(problem.inputs.x, np.nan))
    return Bench(problem, y, kernel(inputs, y))


def placed(values: cases.Floats) -> cases.Floats:
    """A copy of `values` in a buffer of its own whose start is shifted at random."""
    buffer = np.frombuffer(timing.shifted_buffer(values.nbytes), dtype=np.float32).reshape(values.shape)
    buffer[:] = values
    return buffer
