"""Compare with torch on a length that no block divides."""

import json

import torch
from kernel import scale

x = torch.randn((1 << 20) + 3, device="cuda")
error = (scale(x, torch.empty_like(x)) - (2 * x + 1)).abs().max().item()
print(json.dumps({"status": "passed" if error <= 1e-6 else "failed", "max_abs": error}))
