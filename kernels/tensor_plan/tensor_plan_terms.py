"""The terms of a plan's cost on one case: small functions of the case and of the knobs in their parameters.

The lists FACTORS, PRESSURE, BANK_CONFLICTS, DMA_PENALTIES and SYNERGIES say which terms are folded and in
which order; rounding is part of the exact result, so the order is part of the model.

Units: cycles, unless a name says KB (1,024 bytes), bytes, or max_abs (largest error against exact maths).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

from tensor_plan_space import Plan, Value

EFFICIENCY: dict[str, dict[Value, float]] = {
    "q_layout": {"row_major": 0.92, "blocked_m": 1.03, "swizzled_mn": 1.10},
    "k_layout": {"row_major": 0.88, "blocked_nk": 1.05, "swizzled_nk": 1.13, "transposed": 0.98},
    "v_layout": {"row_major": 0.94, "blocked_kd": 1.06, "swizzled_kd": 1.10},
    "o_layout": {"row_major": 0.96, "blocked_m": 1.03, "streamed": 1.06},
    "accum": {"scalar": 0.91, "pairwise": 1.02, "tree": 1.09},
    "softmax": {"exact": 0.86, "online": 1.02, "online_renorm": 1.09, "approx_poly": 1.14},
    "dma_burst": {32: 0.92, 64: 1.00, 128: 1.07, 256: 1.05},
    "swizzle": {"none": 0.93, "xor": 1.03, "cyclic": 1.05, "tensorcore": 1.14},
    "schedule": {"serial": 0.86, "overlap_k": 1.05, "persistent": 1.13, "split_pipeline": 1.10},
}


@dataclass(frozen=True, slots=True)
class Case:
    """One attention shape: `density` is the share of the mask that is computed, `seed` feeds the jitter."""

    name: str
    seq: int
    dim: int
    heads: int
    density: float
    seed: int

    @property
    def operations(self) -> float:
        return self.seq * self.seq * self.dim * self.heads * self.density

    @property
    def bytes_moved(self) -> float:
        tensors = 2 * self.seq * self.dim * self.heads * (1 + 2 + 1)
        return tensors + 0.22 * (2 * self.seq * self.seq * self.heads * self.density)

    @property
    def pressure_limit(self) -> float:
        return 27.5 if self.dim <= 96 else 23.5

    @property
    def spill_weight(self) -> int:
        """Cycles per squared unit of register pressure above the limit."""
        return 2200 if self.dim <= 96 else 3300


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the cost: `value(case, *knob values)`, the knobs in the order of `knobs`."""

    name: str
    knobs: tuple[str, ...]
    value: Callable[..., float]

    def of(self, case: Case, plan: Plan) -> float:
        return self.value(case, *[plan[knob] for knob in self.knobs])


def term(value: Callable[..., float]) -> Term:
    """Make a Term of a function whose first parameter is the case and whose others are named as the knobs."""
    return Term(value.__name__, tuple(inspect.signature(value).parameters)[1:], value)


def efficiency(knob: str) -> Term:
    """The throughput factor of a knob whose values each have one."""
    return Term(f"{knob}_efficiency", (knob,), lambda _, value: EFFICIENCY[knob][value])


def near(value: float, peak: float, width: float) -> float:
    """1 at the peak, falling off exponentially on both sides."""
    return math.exp(-abs(value - peak) / width)


# Throughput: the product of all factors, in this order.


@term
def tile_m(case: Case, block_m: int) -> float:
    return 0.70 + 0.22 * near(block_m, 64 if case.seq >= 256 else 48, 32)


@term
def tile_n(case: Case, block_n: int) -> float:
    return 0.70 + 0.24 * near(block_n, 96 if case.dim >= 96 else 64, 36)


@term
def tile_k(case: Case, block_k: int) -> float:
    return 0.78 + 0.18 * near(block_k, 64 if case.dim <= 96 else 96, 40)


@term
def vector(_: Case, vector_width: int) -> float:
    return math.sqrt(vector_width / 4)


@term
def warps(_: Case, num_warps: int) -> float:
    return 0.86 + 0.045 * min(num_warps, 8)


@term
def split(case: Case, split_k: int) -> float:
    gain = 0.035 * (split_k - 1)
    return 1 + gain if case.seq >= 224 else 1 - gain


@term
def pipeline(_: Case, dma_stages: int, prefetch_distance: int) -> float:
    return 1 + 0.055 * dma_stages + 0.028 * min(prefetch_distance, dma_stages + 1)


FACTORS = (
    *map(
        efficiency,
        ("q_layout", "k_layout", "v_layout", "o_layout", "accum", "softmax", "schedule", "swizzle"),
    ),
    *(tile_m, tile_n, tile_k, vector, warps, split, pipeline),
    efficiency("dma_burst"),
)


@term
def memory_cycles(case: Case, dma_burst: int, dma_stages: int, schedule: str) -> float:
    reuse = 0.82 + 0.05 * dma_stages + (0.08 if schedule in ("persistent", "split_pipeline") else 0.0)
    return case.bytes_moved / (30 * EFFICIENCY["dma_burst"][dma_burst] * max(0.5, reuse)) + 36_000


# Registers: pressure is the sum of these, in this order; what is above the limit spills.

ACCUM_PRESSURE = {"scalar": 0.0, "pairwise": 1.7, "tree": 3.5}
SWIZZLE_PRESSURE = {"none": 0.0, "xor": 1.5, "cyclic": 1.5, "tensorcore": 3.2}
PRESSURE = (
    Term("block_m_pressure", ("block_m",), lambda _, block_m: block_m / 15),
    Term("block_n_pressure", ("block_n",), lambda _, block_n: block_n / 19),
    Term("block_k_pressure", ("block_k",), lambda _, block_k: block_k / 42),
    Term("warps_pressure", ("num_warps",), lambda _, num_warps: 1.25 * num_warps),
    Term("stages_pressure", ("dma_stages",), lambda _, dma_stages: 1.55 * dma_stages),
    Term("split_pressure", ("split_k",), lambda _, split_k: 1.8 * split_k),
    Term("accum_pressure", ("accum",), lambda _, accum: ACCUM_PRESSURE[accum]),
    Term("swizzle_pressure", ("swizzle",), lambda _, swizzle: SWIZZLE_PRESSURE[swizzle]),
)

# Scratchpad.


@term
def scratchpad_need_kb(case: Case, block_m: int, block_n: int, dma_stages: int, dma_burst: int) -> float:
    tiles = 2 * block_m * case.dim + 4 * block_n * case.dim + 2 * block_m * block_n
    return (tiles + 48 * dma_stages * dma_burst) / 1024


@term
def scratchpad_cycles(
    case: Case, block_m: int, block_n: int, dma_stages: int, dma_burst: int, scratchpad_kb: int
) -> float:
    shortage = max(
        0.0, scratchpad_need_kb.value(case, block_m, block_n, dma_stages, dma_burst) - scratchpad_kb
    )
    return shortage * shortage * 1350


# Bank conflicts. All cycles below are whole numbers.


@term
def row_q_vector16_stride(_: Case, q_layout: str, vector_width: int) -> int:
    return 26_000 if q_layout == "row_major" and vector_width == 16 else 0


@term
def row_k_large_n_tile(_: Case, k_layout: str, block_n: int) -> int:
    return 31_000 if k_layout == "row_major" and block_n >= 96 else 0


@term
def row_v_splitk_replay(_: Case, v_layout: str, split_k: int) -> int:
    return 18_000 * split_k if v_layout == "row_major" and split_k > 1 else 0


@term
def unswizzled_odd_bank_stride(_: Case, swizzle: str, block_n: int) -> int:
    return 14_000 if swizzle == "none" and block_n % 64 != 0 else 0


@term
def row_output_fused_epilogue(_: Case, o_layout: str, epilogue: str) -> int:
    return 12_000 if o_layout == "row_major" and epilogue != "store_plain" else 0


BANK_CONFLICTS = (
    row_q_vector16_stride,
    row_k_large_n_tile,
    row_v_splitk_replay,
    unswizzled_odd_bank_stride,
    row_output_fused_epilogue,
)

# DMA.


@term
def descriptor_count(case: Case, block_m: int, block_n: int, block_k: int, split_k: int) -> int:
    rows, columns = math.ceil(case.seq / block_m), math.ceil(case.seq / block_n)
    return rows * columns * max(1, math.ceil(case.dim / block_k)) * split_k


@term
def prefetch_exceeds_pipeline_depth(_: Case, dma_stages: int, prefetch_distance: int) -> int:
    return 21_000 * max(0, prefetch_distance - dma_stages - 1)


@term
def serial_schedule_unused_stages(_: Case, schedule: str, dma_stages: int) -> int:
    return 8_500 * (dma_stages - 1) if schedule == "serial" else 0


@term
def large_burst_sparse_mask_waste(case: Case, dma_burst: int) -> int:
    return 22_000 if dma_burst == 256 and case.density < 0.5 else 0


@term
def many_small_dma_descriptors(
    case: Case, dma_burst: int, block_m: int, block_n: int, block_k: int, split_k: int
) -> int:
    many = descriptor_count.value(case, block_m, block_n, block_k, split_k) > 1100
    return 26_000 if dma_burst == 32 and many else 0


DMA_PENALTIES = (
    prefetch_exceeds_pipeline_depth,
    serial_schedule_unused_stages,
    large_burst_sparse_mask_waste,
    many_small_dma_descriptors,
)

# Synergies: cycles saved.


@term
def qk_tensorcore_swizzle_alignment(_: Case, q_layout: str, k_layout: str, swizzle: str) -> int:
    aligned = (q_layout, k_layout, swizzle) == ("swizzled_mn", "swizzled_nk", "tensorcore")
    return 47_000 if aligned else 0


@term
def streamed_v_o_epilogue(_: Case, v_layout: str, o_layout: str, epilogue: str) -> int:
    streamed = (v_layout, o_layout) == ("swizzled_kd", "streamed")
    return 28_000 if streamed and epilogue in ("fused_scale", "fused_scale_mask") else 0


@term
def persistent_three_stage_dma(_: Case, schedule: str, dma_stages: int, prefetch_distance: int) -> int:
    return 39_000 if schedule == "persistent" and dma_stages == 3 and prefetch_distance in (2, 3) else 0


@term
def vector16_tree_online_renorm(_: Case, softmax: str, accum: str, vector_width: int) -> int:
    return 31_000 if (softmax, accum, vector_width) == ("online_renorm", "tree", 16) else 0


@term
def sparse_mask_epilogue_schedule(case: Case, epilogue: str, schedule: str) -> int:
    masked = case.density < 0.5 and epilogue == "fused_scale_mask"
    return 33_000 if masked and schedule in ("persistent", "split_pipeline") else 0


@term
def d128_k96_swizzled_tile(case: Case, block_k: int, k_layout: str) -> int:
    return 26_000 if case.dim == 128 and block_k == 96 and k_layout == "swizzled_nk" else 0


@term
def large_seq_split_pipeline(case: Case, split_k: int, schedule: str) -> int:
    return 24_000 if case.seq >= 320 and split_k == 2 and schedule == "split_pipeline" else 0


SYNERGIES = (
    qk_tensorcore_swizzle_alignment,
    streamed_v_o_epilogue,
    persistent_three_stage_dma,
    vector16_tree_online_renorm,
    sparse_mask_epilogue_schedule,
    d128_k96_swizzled_tile,
    large_seq_split_pipeline,
)

# Numerical error.

SOFTMAX_ERROR = {"exact": 0.0, "online": 2e-5, "online_renorm": 4e-5, "approx_poly": 1.12e-4}
ACCUM_ERROR = {"scalar": 2e-5, "pairwise": 8e-6, "tree": 4e-6}


@term
def max_abs(case: Case, softmax: str, split_k: int, accum: str, vector_width: int, epilogue: str) -> float:
    error = 4.5e-5 + SOFTMAX_ERROR[softmax] + split_k * ACCUM_ERROR[accum]
    if vector_width == 16 and accum == "scalar":
        error += 3.5e-5
    if case.dim == 128 and softmax == "approx_poly":
        error += 5.5e-5
    if epilogue == "fused_scale_mask" and case.density < 0.5:
        error -= 1e-5
    return max(1e-6, error)
