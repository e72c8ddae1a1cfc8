"""y = 2 x + 1, a row of blocks at a time."""

import json
from pathlib import Path

import triton
import triton.language as tl

CONFIG = json.loads(Path(__file__).with_name("kernel_config.json").read_text())


@triton.jit
def _scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, 2.0 * tl.load(x + at, inside) + 1.0, inside)


def scale(x, y):
    n = x.numel()
    grid = (triton.cdiv(n, CONFIG["block"]),)
    _scale[grid](x, y, n, BLOCK=CONFIG["block"], num_warps=CONFIG["num_warps"])
    return y
