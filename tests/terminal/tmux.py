"""A real tmux with one pane in it, driven by keys and read as text."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from tests.cli.deck import DEADLINE_S

APP = (sys.executable, "-m", "kerneldeck", "tui")
PROMPT = "back in the shell:"


class Pane:
    """A pane of a tmux server of its own, a shell in it; use it with `with`."""

    def __init__(self, cwd: Path, environment: Mapping[str, str], size: tuple[int, int] = (80, 24)) -> None:
        self._name = f"kd-{uuid4().hex[:12]}"
        shell = f"exec env -i {' '.join(shlex.quote(f'{k}={v}') for k, v in environment.items())} sh"
        self.tmux(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            str(size[0]),
            "-y",
            str(size[1]),
            "-c",
            str(cwd),
            shell,
        )
        self.type(f"PS1='{PROMPT} '", "Enter")
        self.wait_for(lambda text: text.rstrip().endswith(PROMPT))

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._name, *words], capture_output=True, text=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def press(self, *keys: str) -> None:
        """Keys by tmux's names, each with whatever it sets off left to be waited for."""
        for key in keys:
            self.tmux("send-keys", key)

    def type(self, text: str, *keys: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.press(*keys)

    def start(self, *words: str) -> None:
        """Start the app."""
        self.type("clear; " + shlex.join([*APP, *words]), "Enter")

    def text(self, colours: bool = False) -> str:
        """The screen; with its colours, also with the blanks at the ends of lines, which may have some."""
        return self.tmux("capture-pane", "-p", *(["-e", "-N"] if colours else []))

    def wait_for(self, seen: str | Callable[[str], bool], what: str = "") -> str:
        """The screen once it shows the text, or is as `seen` says."""
        holds = (lambda text: seen in text) if isinstance(seen, str) else seen
        deadline_s = time.monotonic() + DEADLINE_S
        while not holds(text := self.text()):
            assert time.monotonic() < deadline_s, f"in vain waited for {what or seen!r}:\n{text}"
        return text

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def state(self, name: str) -> str:
        """One of tmux's own facts about the pane, such as alternate_on or cursor_flag."""
        return self.tmux("display", "-p", f"#{{{name}}}").strip()

    def __enter__(self) -> Pane:
        return self

    def __exit__(self, *error: object) -> None:
        subprocess.run(["tmux", "-L", self._name, "kill-server"], capture_output=True, timeout=DEADLINE_S)
