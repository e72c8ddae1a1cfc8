"""Start-up of the command line: `python tests/bench/bench_startup.py` prints a table."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import facts

ROUNDS = 15
HEAVY = ("numpy", "scipy", "rich", "click", "sqlite3", "asyncio", "textual", "asyncssh", "pydantic")
PROBE = """
import json, sys
sys.argv = ["kerneldeck", *json.loads(sys.argv[1])]
from kerneldeck.__main__ import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(name for name in sys.modules if "." not in name)), file=sys.stderr)
"""


def wall_ms(command: list[str], folder: Path) -> list[float]:
    """Wall times of ROUNDS runs from nothing, sorted."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        times.append((time.perf_counter() - began) * 1000)
    return sorted(times)


def loaded(arguments: list[str], folder: Path) -> list[str]:
    """The heavy modules that a call loads."""
    command = [sys.executable, "-c", PROBE, json.dumps(arguments)]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    modules = json.loads(done.stderr.splitlines()[-1])
    return [name for name in HEAVY if name in modules]


def main() -> None:
    print(f"start-up, from nothing: {facts('click', 'numpy', 'rich')}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "plan"
        kerneldeck = [sys.executable, "-m", "kerneldeck"]
        subprocess.run(
            [*kerneldeck, "init", "--template", "tensor_plan", str(folder)], check=True, capture_output=True
        )
        subprocess.run([*kerneldeck, "verify"], cwd=folder, check=True, capture_output=True)
        print(f"{'command':<28}{'median ms':>10}{'slowest':>9}  heavy modules loaded")
        bare = wall_ms([sys.executable, "-c", "pass"], folder)
        print(f"{'python -c pass':<28}{statistics.median(bare):>10.0f}{bare[-1]:>9.0f}")
        for arguments in (["--help"], ["inspect"], ["inspect", "--json"], ["rank"]):
            times = wall_ms([*kerneldeck, *arguments], folder)
            name = "kerneldeck " + " ".join(arguments)
            modules = ", ".join(loaded(arguments, folder))
            print(f"{name:<28}{statistics.median(times):>10.0f}{times[-1]:>9.0f}  {modules}")


if __name__ == "__main__":
    main()
