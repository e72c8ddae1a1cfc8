"""A workspace in a temporary folder, and the real command line run on it as its users would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions.handlers.inspect import inspect_context
from sessions.session import open_reading

REPO = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0

# The kernel is a snippet that the benchmark sources: it sets `score`, and may misbehave as it likes.
BENCHMARK = """#!/bin/sh
mode=$1
status=passed
extra=
. ./kernel.sh
printf '{"status": "%s", "mode": "%s", "total_ms": %s%s}\\n' "$status" "$mode" "$score" "$extra"
"""
VERIFIER = """#!/bin/sh
exec ./benchmark.sh "$@"
"""
# The score follows from the config file: `block` is best at 4, `warps` adds to it.
CONFIG_BENCHMARK = """#!/bin/sh
mode=$1
status=passed
extra=
value() { sed -n "s/.*\\"$1\\": *\\([0-9]*\\).*/\\1/p" config.json; }
block=$(value block)
warps=$(value warps)
far=$((block > 4 ? block - 4 : 4 - block))
score=$((100 + far * 10 + warps))
. ./kernel.sh
printf '{"status": "%s", "mode": "%s", "total_ms": %s%s}\\n' "$status" "$mode" "$score" "$extra"
"""
TOML = """schema = 1
name = "sums"

[objective]
metric = "total_ms"
unit = "ms"
deterministic = true

[files]
mutable = ["kernel.sh"]
protected = ["benchmark.sh", "verifier.sh"]

[modes.dev]
benchmark = ["./benchmark.sh", "dev"]
timeout_s = 60

[modes.final]
benchmark = ["./benchmark.sh", "final"]
verifier = ["./verifier.sh", "final"]
timeout_s = 60
"""
CONFIG_TOML = (
    TOML.replace('mutable = ["kernel.sh"]', 'mutable = ["kernel.sh", "config.json"]')
    + """
[config]
file = "config.json"

[knobs]
block = [1, 2, 4, 8]
warps = [1, 2]
"""
)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on standard output; strict JSON, without NaN."""
        answer: dict[str, Any] = json.loads(self.out, parse_constant=lambda name: 1 / 0)
        return answer

    @property
    def said(self) -> str:
        return self.out + self.err


def environment(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """A user's environment: ours without what the test run put into it; None takes a variable out."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONPATH"
        and not name.startswith(("KERNELDECK_", "HARNESSGYM_", "COV_", "COLUMNS", "LINES"))
    }
    plain["XDG_CONFIG_HOME"] = "/nonexistent"  # nobody's described targets
    plain["KERNELDECK_HOST_IDLE_S"] = "0"  # a host leaves with its last client
    for name, value in (changes or {}).items():
        if value is None:
            plain.pop(name, None)
        else:
            plain[name] = value
    return plain


def kerneldeck(
    *words: str,
    cwd: Path,
    env: Mapping[str, str | None] | None = None,
    stdin: str | bytes = "",
    before: tuple[str, ...] = (),
) -> Done:
    """Run the command to its end. Whatever happens, it shows no trace and has no fault of its own."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "kerneldeck", *words],
        cwd=cwd, env=environment(env), input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True, timeout=DEADLINE_S,
    )  # fmt: skip
    ended = Done(done.returncode, *(text.decode("utf-8", "replace") for text in (done.stdout, done.stderr)))
    assert "Traceback" not in ended.said, ended.said
    assert "internal fault" not in ended.said, ended.said
    return ended


class Deck:
    """One workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, content: str | bytes) -> Path:
        """Put a file there; one that begins with `#!` may be executed."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(raw)
        if raw.startswith(b"#!"):
            path.chmod(0o755)
        return path

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def kernel(self, snippet: str) -> None:
        self.write("kernel.sh", snippet + "\n")

    def bounded(self, timeout_s: float) -> None:
        """Let no trial run for longer."""
        self.write(
            "kerneldeck.toml",
            self.read("kerneldeck.toml").replace("timeout_s = 60", f"timeout_s = {timeout_s}"),
        )

    def config(self, **values: object) -> None:
        self.write("config.json", json.dumps(values) + "\n")

    def run(self, *words: str, code: int | None = 0, **more: Any) -> Done:
        """A command whose exit code is known (None: is not)."""
        done = kerneldeck(*words, cwd=self.root, **more)
        assert code in (done.code, None), f"exit {done.code}, not {code}: {done.said}"
        return done

    def json(self, *words: str, code: int | None = 0, **more: Any) -> dict[str, Any]:
        """The answer of a command with --json."""
        answer = self.run(*words, "--json", code=code, **more).answer
        assert code is None or answer.get("exit_code", code) == code
        return answer

    def fault(self, *words: str, code: int = 2, **more: Any) -> str:
        """What a command that cannot be done says: sentence and hint, on standard error alone."""
        done = self.run(*words, code=code, **more)
        assert done.out == "" and done.err.startswith("kerneldeck: "), done.said
        return done.err

    def seen(self) -> dict[str, Any]:
        """What `kerneldeck inspect` answers, asked here and not in a process of its own."""
        with open_reading(self.root) as reading:
            return inspect_context(reading, {}).content

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """The command, still running; in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "kerneldeck", *words], cwd=self.root, env=environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, **more,
        )  # fmt: skip

    def files(self) -> dict[str, bytes]:
        """Every file of the user, without the state of record."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".kerneldeck" not in path.parts
        }


def plain(root: Path) -> Deck:
    """A workspace whose kernel scores 100."""
    deck = Deck(root)
    deck.write("kerneldeck.toml", TOML)
    deck.write("benchmark.sh", BENCHMARK)
    deck.write("verifier.sh", VERIFIER)
    deck.kernel("score=100")
    return deck


def configured(root: Path) -> Deck:
    """A workspace with a config file: block 1 and warps 1 score 131, block 4 and warps 1 score 101."""
    deck = plain(root)
    deck.write("kerneldeck.toml", CONFIG_TOML)
    deck.write("benchmark.sh", CONFIG_BENCHMARK)
    deck.kernel(":")
    deck.config(block=1, warps=1)
    return deck


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Ask until it holds."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline_s, f"in vain waited for: {what}"
        os.sched_yield()


def interrupt(process: subprocess.Popen[bytes]) -> Done:
    """Ctrl-C, as a terminal sends it to the command and all that it started in its group."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    ended = Done(process.returncode, out.decode(), err.decode())
    assert "Traceback" not in ended.said, ended.said
    return ended


def processes_with(word: str) -> list[int]:
    """Living processes that name `word` in their command line or working folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                where = str((entry / "cwd").readlink())
                text = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX" and (word in where or word in text):
                found.append(int(entry.name))
    return found
