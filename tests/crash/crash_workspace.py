"""A small exact workspace with two mutable files, and the operations that are cut off on it.

The benchmark adds the number in the kernel to the width in the config: lower is better, and every run
of the same files gives the same score. It is also where a kill in the middle of a trial comes from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KERNEL, CONFIG = "src/kernel.txt", "config.json"
MUTABLE = (KERNEL, CONFIG)

_TOML = f"""\
schema = 1
name = "cut off anywhere"

[objective]
metric = "total_us"
unit = "us"
decide = "final"
deterministic = true

[files]
mutable = ["{KERNEL}", "{CONFIG}"]
protected = ["benchmark.sh", "cases.txt"]

[config]
file = "{CONFIG}"

[knobs]
width = [1, 2, 4, 8, 16]

[modes.dev]
benchmark = ["sh", "benchmark.sh", "dev"]
timeout_s = 60

[modes.final]
benchmark = ["sh", "benchmark.sh", "final"]
verifier = ["sh", "benchmark.sh", "final"]
timeout_s = 60
"""

# Where it is asked to, it kills the process that tests it, and then neither it nor its child ends by itself.
_BENCHMARK = """\
crash_at() {
  [ "$CRASH_AT" = "$1" ] || return 0
  [ -z "$CRASH_DEAF" ] || trap '' TERM
  kill -9 "$CRASH_PID"
  sleep 600 &
  while :; do sleep 600; done
}
read -r base rest < src/kernel.txt
while read -r key value; do
  case $key in '"width":') width=${value%,} ;; esac
done < config.json
crash_at start
printf '{"nonce": "%s", "status": "passed", "mode": "%s", "total_us": %s}\\n' \\
  "$KERNELDECK_NONCE" "$1" "$((base + width))" > "$KERNELDECK_RESULT"
crash_at end
"""

_FILLER = "a line of the kernel that makes half a file look unlike a whole one\n" * 300


def kernel_text(base: int) -> str:
    return f"{base} us\n{_FILLER}"


def config_text(width: int) -> str:
    return json.dumps({"width": width, "note": "w" * 200}, indent=2) + "\n"


def write_candidate(root: Path, base: int, width: int) -> None:
    """Write both mutable files, as a person would."""
    (root / KERNEL).write_text(kernel_text(base))
    (root / CONFIG).write_text(config_text(width))


def lay_out(root: Path) -> None:
    """A workspace that was never used; its score is 108."""
    (root / "src").mkdir(parents=True)
    (root / "kerneldeck.toml").write_text(_TOML)
    (root / "benchmark.sh").write_text(_BENCHMARK)
    (root / "cases.txt").write_text("one case\n")
    (root / "notes.txt").write_text("not to be touched\n")
    write_candidate(root, base=100, width=8)


@dataclass(frozen=True, slots=True)
class Call:
    """An operation to call, with its command line for the real program.

    A `detached` one outlives its process: RESUME goes on with it.
    """

    operation: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    detached: bool = False


VERIFY = Call("guarded_final_verify", {"seed": 1}, ("verify", "--seed", "1"))
NEXT = Call("collect_garbage", {"dry_run": True}, ("gc", "--dry-run"))
RESTORE = Call("restore_best_checkpoint", {}, ("restore",))
RESUME = Call("resume_sweep", detached=True)


@dataclass(frozen=True, slots=True)
class Walk:
    """An operation to cut off, and where it starts from.

    `used`: the workspace has a best of score 108. `edit`: base and width written over it afterwards.
    `crashed`: the workspace was left so by killing this walk at the first point that holds these words.
    `most`: kills at points of the process, 0 for one after every durable step; every trial is killed in its
    middle beside those, and with `deaf` does not end when asked politely. `long_path`: some kills are done
    on a long path too.
    """

    name: str
    call: Call
    most: int
    used: bool = True
    edit: tuple[int, int] | None = None
    crashed: tuple[Walk, str] | None = None
    deaf: bool = False
    long_path: bool = False


_SWEEP = Call(
    "sweep_kernel_config",
    {"configs": [{"width": 4}, {"width": 2}], "finalists": 1, "keep_best": True, "seed": 1},
    ("sweep", "config", "--config", '{"width": 4}', "--config", '{"width": 2}', "--finalists", "1",
     "--keep-best", "--seed", "1"),
)  # fmt: skip
_DETACHED = Call(_SWEEP.operation, _SWEEP.arguments, detached=True)
_APPLY = Call(
    "apply_candidate",
    {"config": {"width": 1}, "dry_run": False, "seed": 1},
    ("apply", "--config", '{"width": 1}', "--no-dry-run", "--seed", "1"),
)

RESTORE_WALK = Walk("restore", RESTORE, most=48, edit=(120, 16), long_path=True)
RUN_WALK = Walk("run", Call("run_objective", {}, ("run",)), most=32, deaf=True)
SWEEP_WALK = Walk("sweep config", _SWEEP, most=28, long_path=True)
APPLY_WALK = Walk("apply", _APPLY, most=14, edit=(120, 16))
RESTORED_WALK = Walk("verify that restores", VERIFY, most=18, edit=(120, 16))
KEPT_WALK = Walk("verify that keeps", VERIFY, most=10, edit=(90, 2))
FIRST_WALK = Walk("first verify", VERIFY, most=34, used=False)
RESULT_WALK = Walk("result", Call("update_result_json", {"summary": "kept"}, ("result",)), most=10)
AFTER_WRITE_WALK = Walk(
    "recovery of a write", NEXT, most=15, edit=(120, 16), crashed=(RESTORED_WALK, "os.rename src/kernel.txt")
)
AFTER_TRIAL_WALK = Walk("recovery of a trial", NEXT, most=15, crashed=(SWEEP_WALK, "trial 2 start"))
DETACHED_WALK = Walk("detached sweep", _DETACHED, most=0)
RESUME_WALK = Walk("resume of a sweep", RESUME, most=0, crashed=(DETACHED_WALK, "trial 3 start"))

WALKS = (
    RESTORE_WALK, RUN_WALK, SWEEP_WALK, APPLY_WALK, RESTORED_WALK, KEPT_WALK, FIRST_WALK, RESULT_WALK,
    AFTER_WRITE_WALK, AFTER_TRIAL_WALK, DETACHED_WALK, RESUME_WALK,
)  # fmt: skip
PROGRAM_WALKS = (RESTORE_WALK, RUN_WALK, SWEEP_WALK, APPLY_WALK, RESTORED_WALK, KEPT_WALK)
