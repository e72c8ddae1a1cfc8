"""Takes the pictures of the documentation: `make screenshots`.

The real app, in a tmux pane, over a workspace whose history its own commands made just before, with a real
host. What the pictures show is this machine's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.deck import REPO, environment
from tests.host.hosting import STAYS, end_host
from tests.screens.picture import svg_of
from tests.terminal.tmux import Pane

OUT = REPO / "docs" / "screens"
SIZES = ((80, 24), (150, 40))
LARGEST_BYTES = 60_000
IN_README = "queue-80x24"
QUICK = ("--warmup", "2", "--repeats", "6")
SCREENED = (
    {"flags": "O3_native", "unroll": 4, "exp_form": "poly"},
    {"flags": "O3_native", "unroll": 4, "exp_form": "rational"},
    {"flags": "O3_native", "unroll": 4, "exp_form": "expf"},
)
LONG_SWEEP = (
    "--set", "threads=1", "--set", "rows_per_chunk=1", "--set", "flags=O3_native,O3,Ofast_native",
    "--set", "tile=64,256,1024", "--set", "unroll=2,4,8", "--set", "exp_form=poly,exp2f,rational,expf",
)  # fmt: skip
NOWHERE = "Host gpu1\n  HostName 127.0.0.1\n  Port 1\n"


Act = Callable[[Pane], object]


class Stage:
    """A workspace, and the panes in which the app is shown."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "cpu_rmsnorm"
        home = folder / "home"
        (home / ".ssh").mkdir(parents=True)
        (home / ".ssh" / "config").write_text(NOWHERE)
        (folder / "run").mkdir(mode=0o700)
        self.environment = environment({
            **STAYS, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_RUNTIME_DIR": str(folder / "run"), "TERM": "tmux-256color", "LANG": "C.UTF-8",
            "PYTHONPATH": str(REPO), "COLORTERM": None, "SSH_CONNECTION": None, "NO_COLOR": None,
            "TMUX": None, "LC_ALL": None,
        })  # fmt: skip

    def run(self, *words: str, code: int = 0) -> None:
        """A command as a person would give it."""
        cwd = self.root if self.root.exists() else self.root.parent
        done = subprocess.run(
            [sys.executable, "-m", "kerneldeck", *words], cwd=cwd, env=self.environment, capture_output=True,
            text=True,
        )  # fmt: skip
        if done.returncode != code:
            sys.exit(f"kerneldeck {' '.join(words)}: exit code {done.returncode}: {done.stdout}{done.stderr}")

    def config(self, **knobs: object) -> None:
        path = self.root / "kernel_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | knobs, indent=2) + "\n")

    @contextmanager
    def shown(self, size: tuple[int, int]) -> Iterator[Pane]:
        with Pane(self.root, self.environment, size) as pane:
            pane.start()
            pane.wait_for(lambda text: "q detach" in text and "connecting" not in text)
            yield pane

    def take(self, name: str, title: str, act: Act) -> None:
        """The picture at every size of what `act` leads to."""
        for size in SIZES:
            with self.shown(size) as pane:
                act(pane)
                keep(f"{name}-{size[0]}x{size[1]}", f"{title}, {size[0]} by {size[1]}", pane, size)


def keep(name: str, title: str, pane: Pane, size: tuple[int, int]) -> None:
    picture = svg_of(pane.text(colours=True), *size, title)
    if len(picture.encode()) > LARGEST_BYTES:
        sys.exit(f"{name}: {len(picture.encode()):,} bytes, at most {LARGEST_BYTES:,} are to be kept")
    (OUT / f"{name}.svg").write_text(picture)
    if name == IN_README:
        in_readme(pane.text())
    print(f"{name}.svg  {len(picture.encode()) / 1000:.0f} kB", flush=True)


def in_readme(text: str) -> None:
    """The README shows that picture as text."""
    path = REPO / "README.md"
    block = re.compile(rf"(?<=<!-- {IN_README} -->\n```\n).*?(?=```\n)", re.S)
    shown = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    written, found = block.subn(lambda _: shown, path.read_text(), count=1)
    if found != 1:
        sys.exit(f"README.md has no place for {IN_README}")
    path.write_text(written)


def typed(*steps: tuple[str, str]) -> Act:
    """For each step press its keys, then wait for its text."""

    def act(pane: Pane) -> None:
        for keys, shows in steps:
            pane.press(*keys.split())
            pane.wait_for(shows)

    return act


def seed(stage: Stage) -> None:
    """A best that a sweep found and a worse edit that was restored; then a sweep that runs on."""
    stage.config(threads=1)
    stage.run("verify", *QUICK)
    configs = [part for config in SCREENED for part in ("--config", json.dumps(config))]
    stage.run("sweep", "config", *configs, "--keep-best", "--finalists", "2", *QUICK)
    stage.config(unroll=1, flags="O2")
    stage.run("verify", *QUICK, code=1)
    stage.run("sweep", "config", *LONG_SWEEP, *QUICK, "--detach")


def pictures(stage: Stage) -> None:
    """What a person sees, in the order in which it happens."""
    history = ("4", "worse")
    stage.take("queue", "A sweep that runs, in the queue", typed(history, ("3", "[3]Queue"), ("", " bad ")))
    stage.take("history", "The history", typed(history))
    found = (("/", "Enter filters"), ("faster Enter", "filter: faster"))
    stage.take("trial", "Details of a trial", typed(history, *found, ("0", "Verdict")))
    screened = (("/", "Enter filters"), ("sweep=1 Space dev Enter", "filter: sweep=1 dev"))
    marked = ("Space j Space j Space c", "where they differ")
    stage.take("compare", "Three trials compared", typed(history, *screened, marked))
    stage.take("progress", "The best over time", typed(history, ("B", "when it was kept")))
    sweep = (("a", "the median so far"), ("Down Space", "384 valid"))
    stage.take("new-sweep", "A new sweep", typed(history, *sweep))
    stage.take("help", "The keys of a pane", typed(history, ("?", "History only")))
    stage.run("sweep", "stop")


def failing(stage: Stage) -> None:
    """A target whose machine refuses the connection."""
    stage.run("target", "add", "gpu1", "gpu1", "--use")
    run = (("n", "the mode"), ("Enter", "LOST"), ("r", " failed "))
    stage.take(
        "failed-target",
        "A target that cannot be reached",
        typed(("4", "worse"), ("3 k k", "> OK"), ("2", "probes"), *run),
    )


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kd-screens-") as folder:
        stage = Stage(Path(folder))
        try:
            stage.run("init", "--template", "cpu_rmsnorm", str(stage.root))
            stage.take(
                "empty",
                "A workspace where nothing ran yet",
                typed(("", "best none yet"), ("", "Nothing ran")),
            )
            seed(stage)
            pictures(stage)
            failing(stage)
        finally:
            end_host(stage.root)


if __name__ == "__main__":
    main()
