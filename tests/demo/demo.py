"""The main job, end to end, with the real command line: sweep, keep, a worse edit, verify, restore.

usage: python tests/demo/demo.py FOLDER        lays its workspaces out in FOLDER (one more subfolder a run)
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TENSOR_SWEEP = [
    "--set", "block_m=16,32,48,64,96", "--set", "block_n=16,32,48,64,96,128", "--set", "block_k=32,64,96,128",
    "--set", "num_warps=2,4,6,8", "--set", "vector_width=16", "--set", "q_layout=swizzled_mn",
    "--set", "k_layout=swizzled_nk", "--set", "v_layout=swizzled_kd", "--set", "o_layout=streamed",
    "--set", "accum=tree,pairwise", "--set", "softmax=online_renorm,approx_poly",
    "--set", "dma_stages=1,2,3,4", "--set", "prefetch_distance=0,1,2,3,4", "--set", "dma_burst=64,128,256",
    "--set", "split_k=1,2", "--set", "swizzle=tensorcore", "--set", "schedule=persistent,split_pipeline",
    "--set", "epilogue=fused_scale,fused_scale_mask", "--set", "scratchpad_kb=64,96,128",
]  # fmt: skip
CPU_CONFIGS = [
    {"flags": "O3_native", "unroll": 4, "exp_form": "poly", "threads": 2},
    {"flags": "O3_native", "unroll": 4, "exp_form": "rational", "threads": 2},
    {"flags": "O3_native", "unroll": 4, "exp_form": "expf", "threads": 1},
]
QUICK = ["--warmup", "2", "--repeats", "6"]


class Demo:
    """Runs commands as a person would, in one workspace, and fails when one ends unexpectedly."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, expected: int = 0, shown: str = "") -> None:
        print(f"\n$ {shown or 'kerneldeck ' + shlex.join(arguments)}", flush=True)
        where = self.folder if self.folder.exists() else None
        done = subprocess.run([sys.executable, "-m", "kerneldeck", *arguments], cwd=where)
        if done.returncode != expected:
            sys.exit(f"demo: exit code {done.returncode}, {expected} was expected")

    def answer(self, *arguments: str) -> dict:
        command = [sys.executable, "-m", "kerneldeck", *arguments, "--json"]
        where = self.folder if self.folder.exists() else None
        return json.loads(subprocess.run(command, cwd=where, check=True, capture_output=True).stdout)

    def edit(self, file: str, **knobs: object) -> None:
        """Write knobs into a JSON file, as a person would with an editor."""
        path = self.folder / file
        config = json.loads(path.read_text()) | knobs
        path.write_text(json.dumps(config, indent=2) + "\n")
        print(
            f"\n$ $EDITOR {file}        # {', '.join(f'{name} = {value}' for name, value in knobs.items())}"
        )

    def story(self) -> None:
        """All that happened, from the state of record."""
        print("\nWhat happened in this workspace:")
        for line in self.answer("inspect")["story"]:
            print(f"  {line}")


def say_where(folder: Path) -> None:
    """A demo on another machine must not look like one of this machine."""
    where = Demo(folder).answer("target", "list")
    if where["default"] != "local":
        print(f"Trials run on {where['default']} ({where['default_from']}).", flush=True)


def tensor_plan(folder: Path) -> None:
    print("== tensor_plan: a deterministic cost model, 143,327,232,000 plans ==", flush=True)
    demo = Demo(folder / "tensor_plan")
    demo.run("init", "--template", "tensor_plan", str(demo.folder))
    demo.run("run", "--mode", "final")
    shown = "kerneldeck sweep config --set block_m=16,32,48,64,96 --set … --max-configs 12 --keep-best"
    demo.run("sweep", "config", *TENSOR_SWEEP, "--max-configs", "12", "--keep-best", shown=shown)
    demo.edit("kernel_plan.json", num_warps=8, dma_burst=256)
    demo.run("verify", expected=1)
    demo.run("rank", "--top-n", "4")
    demo.story()


def cpu_rmsnorm(folder: Path) -> None:
    print("\n== cpu_rmsnorm: a real kernel, compiled and timed where trials run ==", flush=True)
    demo = Demo(folder / "cpu_rmsnorm")
    demo.run("init", "--template", "cpu_rmsnorm", str(demo.folder))
    configs = [part for config in CPU_CONFIGS for part in ("--config", json.dumps(config))]
    demo.run("sweep", "config", *configs, "--keep-best", "--finalists", "2", *QUICK)
    demo.edit("kernel_config.json", unroll=1, flags="O2")
    demo.run("verify", *QUICK, expected=1)
    demo.run("rank", "--top-n", "4")
    demo.story()


def fresh(place: Path) -> Path:
    """A new folder in `place`; what an earlier demo left stays, it may have been worked in."""
    number = 1
    while (place / str(number)).exists():
        number += 1
    return place / str(number)


def main(arguments: Sequence[str]) -> None:
    folder = fresh(Path(arguments[0]).resolve())
    began = time.monotonic()
    say_where(folder)
    tensor_plan(folder)
    if shutil.which(os.environ.get("CC") or "cc"):
        cpu_rmsnorm(folder)
    else:
        print("\ncpu_rmsnorm is left out: there is no C compiler (on Debian or Ubuntu: apt-get install gcc)")
    print(f"\nDone in {time.monotonic() - began:.0f} s. The workspaces are in {folder}.")


if __name__ == "__main__":
    main(sys.argv[1:])
