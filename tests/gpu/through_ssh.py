"""On a machine with a GPU: the command line through a loopback sshd, and what it leaves on the card.

    python tests/gpu/through_ssh.py FOLDER [--python /path/of/the/python/with/torch]

Starts an sshd of its own on a loopback port, names it as a target, and checks: health shows the card; a
Triton workspace runs, verifies and sweeps; a trial that hangs with memory on the card is ended at its
time-out and the memory is free again; a trial whose link is cut is collected afterwards. Prints what it
saw, a line a check, and exits 1 when one did not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO))

from tests.remote.sshd import Server, User, make_key, serving  # noqa: E402

HERE = Path(__file__).parent
DEADLINE_S = 400.0
HANG = """
import time, torch
held = torch.empty({gib} << 30, dtype=torch.uint8, device="cuda")
print("holds", flush=True)
open({sign!r}, "w").close()
while True:
    held.add_(1)
"""
HANG_GIB = 16


@dataclass
class Deck:
    """The command line in a workspace, as the made-up user."""

    root: Path
    env: dict[str, str]
    lines: list[str] = field(default_factory=list)
    failed: bool = False

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "kerneldeck", *words], cwd=self.root, env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, *words: str) -> dict[str, Any]:
        """The verb's JSON answer, with its wall time."""
        began_s = time.monotonic()
        process = self.start(*words, "--json")
        return {**_answer(process), "wall_s": time.monotonic() - began_s}

    def check(self, holds: bool, what: str) -> None:
        self.failed = self.failed or not holds
        self.lines.append(f"{'ok    ' if holds else 'FAILED'}  {what}")
        print(self.lines[-1], flush=True)


def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    out, err = process.communicate(timeout=DEADLINE_S)
    try:
        answer: dict[str, Any] = json.loads(out)
    except ValueError:
        raise SystemExit(f"no JSON: {out!r} {err!r}") from None
    return answer


def used_mib() -> int:
    """Memory in use on the first GPU."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return int(subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()[0])


def workspace(folder: Path) -> Path:
    root = folder / "triton_scale"
    shutil.copytree(HERE / "triton_scale", root)
    return root


def near_side(folder: Path) -> User:
    home = folder / "near"
    (home / ".ssh").mkdir(parents=True)
    return User(home, make_key(folder / "user"), home / ".ssh" / "known", home / ".ssh" / "config")


def deck_of(root: Path, user: User) -> Deck:
    dropped = ("SSH_AUTH_SOCK", "KERNELDECK_GPU_HOST")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env.update(HOME=str(user.folder), XDG_CONFIG_HOME=str(user.folder / ".config"))
    env["PYTHONPATH"] = os.pathsep.join([str(REPO), env.get("PYTHONPATH", "")])
    return Deck(root, env)


def check_health(deck: Deck) -> None:
    health = deck.ask("health")
    gpus = health.get("gpus", [])
    shown = {key: gpus[0][key] for key in gpus[0]} if gpus else {}
    deck.check(health.get("status") == "ok" and bool(gpus), f"health shows the card: {json.dumps(shown)}")


def check_runs(deck: Deck) -> None:
    run = deck.ask("run")
    deck.check(
        run.get("status") == "ok", f"a trial runs: {run.get('score')} us, {run['wall_s']:.1f} s in all"
    )
    verify = deck.ask("verify")
    deck.check(verify.get("exit_code") == 0, f"verify keeps the first best, {verify['wall_s']:.1f} s in all")


def check_sweep(deck: Deck) -> None:
    """The same sweep from nothing and from a parent that has imported torch."""
    toml = deck.root / "kerneldeck.toml"
    text = toml.read_text()
    toml.write_text(text.split("[extras]")[0])
    cold = deck.ask("sweep", "config", "--finalists", "1")
    toml.write_text(text)
    forked = deck.ask("sweep", "config", "--finalists", "1", "--keep-best")
    for name, sweep in (("from nothing", cold), ("prefork", forked)):
        rows = sweep.get("leaders", [])
        ok = sweep.get("screened", {})
        best = rows[0] if rows else {}
        words = (
            f"sweep {name}: {ok}, {sweep['wall_s']:.1f} s, best {best.get('score')} us {best.get('config')}"
        )
        deck.check(bool(rows) and set(ok) == {"ok"}, words)
        deck.lines.append(f"        outcome {sweep.get('outcome')}: {sweep.get('reason')}")
    for name, seconds in _screen_seconds(deck).items():
        deck.lines.append(f"        {name}: {seconds}")


def _screen_seconds(deck: Deck) -> dict[str, str]:
    """Each sweep's screening trials: how many, their wall time as the history has it."""
    import sqlite3

    store = sqlite3.connect(deck.root / ".kerneldeck" / "state.sqlite3")
    query = "SELECT sweep_id, duration_s, started_s FROM trials WHERE purpose = 'screen' ORDER BY id"
    rows = list(store.execute(query))
    store.close()
    told = {}
    for sweep in sorted({row[0] for row in rows}):
        began = [row[2] for row in rows if row[0] == sweep]
        took = sorted(row[1] for row in rows if row[0] == sweep)
        rate = 60.0 * (len(began) - 1) / (began[-1] - began[0]) if len(began) > 1 else 0.0
        told[f"sweep {sweep}"] = (
            f"{len(took)} trials, median process {took[len(took) // 2]:.2f} s, {rate:.1f} trials a minute"
        )
    return told


def check_hang(deck: Deck, sign: Path) -> None:
    kernel = deck.root / "kernel.py"
    good = kernel.read_text()
    kernel.write_text(HANG.format(gib=HANG_GIB, sign=str(sign)))
    before = used_mib()
    process = deck.start("run", "--timeout", "20", "--json")
    while not sign.exists() and process.poll() is None:
        time.sleep(0.1)
    during = used_mib()
    answer = _answer(process)
    after = used_mib()
    kernel.write_text(good)
    deck.check(answer.get("status") == "timeout", f"a hanging trial ends as {answer.get('status')}")
    words = f"memory on the card: {before} MiB before, {during} during, {after} after"
    deck.check(during - before >= HANG_GIB << 10 and after <= before + 16, words)


def check_cut(deck: Deck, server: Server, sign: Path) -> None:
    """The sshd's session process is killed while the trial runs; the same command collects the result."""
    kernel = deck.root / "kernel.py"
    good = kernel.read_text()
    kernel.write_text(f"import time\nopen({str(sign)!r}, 'w').close()\ntime.sleep(5)\n" + good)
    process = deck.start("run", "--json")
    while not sign.exists() and process.poll() is None:
        time.sleep(0.1)
    cut = [pid for pid in server.children() if b"sshd" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for pid in cut:
        os.kill(pid, signal.SIGKILL)
    answer = _answer(process)
    kernel.write_text(good)
    words = (
        f"cut in mid-run ({len(cut)} sshd processes killed): {answer.get('status')}, {answer.get('score')} us"
    )
    deck.check(bool(cut) and answer.get("status") == "ok", words)


def check_nothing_left(deck: Deck, scratch: Path) -> None:
    trials = scratch / "trials"
    left = sorted(path.name for path in trials.iterdir()) if trials.is_dir() else []
    deck.check(not left, f"nothing of a trial is left in the scratch folder: {left}")
    health = deck.ask("health")
    deck.check(not health.get("processes"), f"processes on the card at the end: {health.get('processes')}")


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--python", default=sys.executable)
    given = options.parse_args()
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True)
    user = near_side(folder)
    with serving(folder / "sshd", make_key(folder / "host"), [user.key]) as server:
        user.known_hosts.touch()
        user.trusts(server)
        user.writes("box", server.port)
        deck = deck_of(workspace(folder), user)
        scratch = folder / "scratch"
        made = deck.ask(
            "target", "add", "card", "box", "--gpu", "0", "--scratch", str(scratch),
            "--python", given.python, "--use",
        )  # fmt: skip
        deck.check(made.get("exit_code") == 0, f"target add: {made.get('error', 'done')}")
        check_health(deck)
        check_runs(deck)
        check_sweep(deck)
        check_hang(deck, folder / "holds")
        check_cut(deck, server, folder / "runs")
        check_nothing_left(deck, scratch)
    print("\n" + "\n".join(deck.lines))
    return int(deck.failed)


if __name__ == "__main__":
    sys.exit(main())
