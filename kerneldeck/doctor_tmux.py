"""What tmux does between Kerneldeck and the terminal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping

from kerneldeck.doctor_terminal import Finding

_ANSWERS_WITHIN_S = 5.0
_LONG_ESCAPE_MS = 100
_OLDEST = (3, 2)


def tmux_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Its version, and the three options that matter; outside tmux one line."""
    if not environ.get("TMUX"):
        yield Finding("tmux", True, "not inside tmux: a lost link ends the app; the work goes on in the host")
        return
    version = _ask("-V")
    if not version:
        yield Finding("tmux", False, "TMUX is set, but tmux does not answer", "is it on PATH?")
        return
    yield _version(version)
    yield _escape_time(_option("escape-time", "-s"))
    yield _clipboard(_option("set-clipboard", "-s"))
    yield _terminal(_option("default-terminal", "-g") or _option("default-terminal", "-s"))


def _ask(*words: str) -> str:
    """What tmux prints; nothing when it does not answer."""
    try:
        done = subprocess.run(
            ["tmux", *words], capture_output=True, text=True, timeout=_ANSWERS_WITHIN_S,
            stdin=subprocess.DEVNULL, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _option(name: str, scope: str) -> str:
    return _ask("show-options", f"{scope}v", name)


def _version(said: str) -> Finding:
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < _OLDEST:
        return Finding("tmux", False, said, "3.2 or newer copies and draws better")
    return Finding("tmux", True, said)


def _escape_time(said: str) -> Finding:
    topic = "tmux escape-time"
    if not said.isdigit():
        return Finding(topic, True, "not told")
    if int(said) > _LONG_ESCAPE_MS:
        return Finding(topic, False, f"{said} ms: Esc feels slow", "in ~/.tmux.conf: set -sg escape-time 10")
    return Finding(topic, True, f"{said} ms")


def _clipboard(said: str) -> Finding:
    topic = "tmux set-clipboard"
    if said == "off":
        remedy = "copies stay in tmux's own buffer; in ~/.tmux.conf: set -s set-clipboard on"
        return Finding(topic, False, said, remedy)
    return Finding(topic, True, said or "not told")


def _terminal(said: str) -> Finding:
    topic = "tmux default-terminal"
    if said and not said.startswith(("tmux", "screen")):
        return Finding(topic, False, said, "in ~/.tmux.conf: set -g default-terminal tmux-256color")
    if said == "screen":
        return Finding(topic, True, said, "16 colours only; for 256: set -g default-terminal tmux-256color")
    return Finding(topic, True, said or "not told")
