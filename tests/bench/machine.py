"""What every benchmark prints first: the machine its figures belong to."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def facts(*packages: str) -> str:
    """One line: processor, cores, load, Python, and the versions of `packages`."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    model = names[0] if names else platform.processor()
    versions = [f"Python {platform.python_version()}", *(f"{one} {version(one)}" for one in packages)]
    return ", ".join([model, f"{os.cpu_count()} cores", f"load {os.getloadavg()[0]:.1f}", *versions])
