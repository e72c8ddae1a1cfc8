"""Trials that are forked over there, for the tests of prefork."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from core.targets.ssh.remote_trials import Collected, RemoteTrial
from tests.remote.agents import RESULT, Running, processes_with

LOADED = (
    RESULT
    + """
import os, sys
loaded = "heavy" in sys.modules
import heavy
if os.environ.get("GATE"):
    open(os.environ["GATE"]).read()
print(loaded, heavy.STATE)
heavy.STATE = "changed by a trial"
result(us=1.0)
"""
)


def heavy(folder: Path, source: str = "") -> None:
    (folder / "heavy.py").write_text(f"STATE = 'fresh'\n{source}\n")


def forked(there: Running, modules: Path, program: str = LOADED, **more: Any) -> RemoteTrial:
    env = {"PYTHONPATH": str(modules), **more.pop("env", {})}
    return there.script(program, env=env, prefork=more.pop("prefork", ("heavy",)), **more)


def told(collected: Collected) -> tuple[object, ...]:
    stdout = (collected.folder / "stdout").read_text().strip()
    return collected.outcome["forked"], stdout, collected.outcome["note"]


def parents(there: Running) -> list[int]:
    """The agent's children that run a program of their own."""
    found = []
    for pid in processes_with("PARENT=sys.argv"):
        with suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == there.process.pid:
                found.append(pid)
    return found
