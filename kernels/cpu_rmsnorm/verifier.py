"""Verifier of cpu_rmsnorm: looks for what the benchmark's cases cannot show, then runs the benchmark.

    python3 verifier.py --json --mode dev|final [--warmup N] [--repeats N] [--trace FILE]

The result is the benchmark's with `verified`, `checks` and `not_checked`. Expected values are worked out
here, by another formula than the benchmark's and before the candidate is loaded. Exit codes as there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import benchmark
import cases
import numpy as np
from arms import Check, Problem, placed, problems_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cases import Doubles, Floats, Inputs
    from numpy.typing import NDArray
    from toolchain import Kernel

GUARD = 1024  # floats before and after every array
GUARD_BITS = np.uint32(0x7FC0BEEF)  # a NaN of our own: read, it spoils y; written over, it shows
RELATIVE_TOLERANCE = 1e-5  # for values far above those of the timed cases; fp32's own spacing is 6e-8
SIGNAL = 100  # how far, in tolerances, a worthless answer must be off for a case to count

SHAPES = {
    "dev": ((1, 1), (1, 4095), (3, 17), (2, 1023), (5, 257), (7, 64)),
    "final": (
        *((1, 1), (2, 1), (1, 8191), (9, 3), (3, 63), (3, 65), (4, 127), (5, 255), (2, 257)),
        *((2, 1021), (2, 1025), (129, 100), (17, 2053), (64, 64)),
    ),
}
REGIME_DIMS = {"dev": (257,), "final": (257, 1000)}
SEEDS = {"dev": 5101, "final": 6101}

NOT_CHECKED = [
    "threads left behind: OpenMP keeps its pool between calls",
    "zeros and ones with an exact answer, and the previous answer as a worthless one",
    "the in-place probe, and inputs unchanged, at the timed shapes: only the probes' own shapes are checked",
    "a batch of calls against the wall clock: every call is timed by the wall clock itself",
    "a deliberate attack: the kernel shares the process with the timer",
]


class Probe(NamedTuple):
    """Inputs with the answer to them."""

    name: str
    inputs: Inputs
    wanted: Doubles


def answer(inputs: Inputs) -> Doubles:
    """What y should be, in float64, with silu(g) = g/2 * (1 + tanh(g/2))."""
    x, gate, weight = (values.astype(np.float64) for values in inputs)
    mean = np.einsum("rc,rc->r", x, x)[:, None] / x.shape[1]
    return np.asarray(x / np.sqrt(mean + cases.EPS) * weight * 0.5 * gate * (1 + np.tanh(gate / 2)))


def probes_of(mode: str) -> list[Probe]:
    """Odd shapes with normal values, and rows of every kind of value at dims that are no power of two."""
    probes = []
    for index, (rows, dim) in enumerate(SHAPES[mode]):
        inputs = cases.draw(cases.Case(mode, rows, dim, SEEDS[mode] + index))
        probes.append(Probe(f"{rows} x {dim}", inputs, answer(inputs)))
    for index, dim in enumerate(REGIME_DIMS[mode]):
        inputs = _regimes(dim, np.random.default_rng(SEEDS[mode] + 100 + index))
        probes.append(Probe(f"unusual values, {len(inputs.x)} x {dim}", inputs, answer(inputs)))
    return probes


def _regimes(dim: int, chance: np.random.Generator) -> Inputs:
    """Every kind of x against every kind of gate, a row each."""
    normal = chance.standard_normal(dim)
    signs = np.where(np.arange(dim) % 2, -1.0, 1.0)
    outlier = normal.copy()
    outlier[dim * 2 // 3] = 1e4
    xs = [
        normal,
        1e3 * normal,
        1e-3 * normal,
        0 * normal + 0.7,
        -abs(normal),
        outlier,
        0 * signs,
        1e-30 * normal,
    ]
    gates = [chance.standard_normal(dim), 60 * signs, 200 * signs, 0 * signs, 1e-6 * normal, 0 * normal - 3.3]
    x = np.array([row for row in xs for _ in gates], dtype=np.float32)
    gate = np.array(gates * len(xs), dtype=np.float32)
    return cases.Inputs(x, gate, (0.4 + chance.random(dim)).astype(np.float32))


class Guarded(NamedTuple):
    """An array between two guards, all in one buffer."""

    whole: Floats
    values: Floats

    @property
    def bits(self) -> NDArray[np.uint32]:
        """The whole buffer's bits: NaNs compare like everything else."""
        return self.whole.view(np.uint32)

    def guards_hold(self) -> bool:
        """Whether the guards are as they were made."""
        return bool((self.bits[:GUARD] == GUARD_BITS).all() and (self.bits[-GUARD:] == GUARD_BITS).all())


def guarded(values: Floats) -> Guarded:
    """A copy of `values` in a new buffer with guards."""
    whole = placed(np.full(values.size + 2 * GUARD, GUARD_BITS, dtype=np.uint32).view(np.float32))
    inner = whole[GUARD : GUARD + values.size].reshape(values.shape)
    inner[:] = values
    return Guarded(whole, inner)


class Setup:
    """One kernel on one probe, in buffers with guards and a poisoned y."""

    def __init__(self, kernel: Kernel, probe: Probe) -> None:
        self.inputs = [guarded(values) for values in probe.inputs]
        self.y = guarded(np.full_like(probe.inputs.x, np.nan))
        self._call = kernel(cases.Inputs(*(each.values for each in self.inputs)), self.y.values)

    def run(self) -> Floats:
        """y of one more call, which starts from poison again."""
        self.y.values[:] = np.nan
        self._call()
        return self.y.values.copy()


def wrong(y: Floats, wanted: Doubles) -> str:
    """Where y is farthest off, when that is too far; else nothing."""
    allowed = np.maximum(cases.TOLERANCE, RELATIVE_TOLERANCE * abs(wanted))
    excess = np.nan_to_num(abs(y - wanted) / allowed, nan=np.inf)
    row, column = np.unravel_index(int(excess.argmax()), y.shape)
    if excess[row, column] <= 1:
        return ""
    return f"y[{row}, {column}] is {y[row, column]:.7g}, expected {wanted[row, column]:.7g}"


def _check_value(kernel: Kernel, probe: Probe) -> str:
    setup = Setup(kernel, probe)
    before = [each.bits.copy() for each in setup.inputs]
    first = setup.run()
    if not setup.y.guards_hold():
        return "it wrote outside y"
    if not all((each.bits == bits).all() for each, bits in zip(setup.inputs, before, strict=True)):
        return "it changed its inputs"
    if (first.view(np.uint32) != setup.run().view(np.uint32)).any():
        return "a second call on the same inputs gave other bits"
    return wrong(first, probe.wanted)


def _check_follows(kernel: Kernel, probe: Probe) -> str:
    """One element of each input changed in place: y must follow, and at new addresses must not move."""
    setup = Setup(kernel, probe)
    for index, name in enumerate(cases.Inputs._fields):
        setup.run()
        values = setup.inputs[index].values.reshape(-1)
        values[values.size * 7 // 8] += 3
        changed = cases.Inputs(*(each.values.copy() for each in setup.inputs))
        if wrong(setup.run(), answer(changed)):
            return f"y did not follow one changed element of {name}"
        if wrong(Setup(kernel, Probe(probe.name, changed, probe.wanted)).run(), answer(changed)):
            return "the same inputs at other addresses gave another y"
    return ""


def _worthless_answers(inputs: Inputs, wanted: Doubles) -> dict[str, Doubles]:
    x = inputs.x.astype(np.float64)
    return {"zeros": 0 * x, "ones": 0 * x + 1, "x": x, "the mean": 0 * x + wanted.mean()}


def unfit_cases(problems: list[Problem]) -> list[str]:
    """Why timed cases show nothing: an answer without work would pass, or the expected values are wrong."""
    faults = []
    for case, inputs, wanted in problems:
        if np.abs(answer(inputs) - wanted).max() > 1e-3 * cases.TOLERANCE:
            faults.append(f"{case.name}: benchmark and verifier expect different values")
        for name, y in _worthless_answers(inputs, wanted).items():
            if np.abs(y - wanted).max() < SIGNAL * cases.TOLERANCE:
                faults.append(f"{case.name} would be passed by {name}")
    return faults


def inspector(mode: str) -> Callable[[Kernel], list[Check]]:
    """What looks at a kernel in this mode; inputs and answers are made here, before one is loaded."""
    probes = probes_of(mode)
    dim = 1000
    moved = cases.draw(cases.Case(mode, 6, dim, SEEDS[mode] + 200))
    follow = Probe(f"6 x {dim}", moved, answer(moved))

    def inspect(kernel: Kernel) -> list[Check]:
        checks = [
            Check(f"value, guards, inputs, repeat ({each.name})", _check_value(kernel, each))
            for each in probes
        ]
        return [
            *checks,
            Check(f"one changed element, new addresses ({follow.name})", _check_follows(kernel, follow)),
        ]

    return inspect


def main() -> int:
    """One verification by the command line."""
    asked = benchmark.options("Verifies the fused RMSNorm and SiLU gate in C, then times it.", "final")
    unfit = unfit_cases(problems_of(asked.mode))
    if unfit:
        result: benchmark.Json = {"status": "invalid", "mode": asked.mode, "errors": unfit}
    else:
        result = benchmark.carry_out(asked, inspector(asked.mode))
    result.update(verified=result["status"] == "passed", not_checked=NOT_CHECKED)
    return benchmark.hand_over(result, asked.json)


if __name__ == "__main__":
    sys.exit(main())
