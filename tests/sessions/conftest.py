"""A workspace with its state of record, and Python processes that use it beside us."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.records import Candidate, FileVersion
from core.targets.remove_tree import remove_tree
from sessions.journal import JournaledFiles
from sessions.state_dir import StatePlace, locate
from sessions.store import SessionStore, open_write

REPO = Path(__file__).resolve().parents[2]
CONTRACT = "contract-1"
MUTABLE = ("kernel.py", "config.json")

RunPython = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELDECK_STATE_DIR", raising=False)
    monkeypatch.delenv("KERNELDECK_ASSUME_NETWORK_FS", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace folder with two mutable files."""
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "kernel.py").write_text("old kernel")
    (root / "config.json").write_text("{}")
    return root


@pytest.fixture
def place(root: Path) -> StatePlace:
    return locate(root)


@pytest.fixture
def store(place: StatePlace) -> Iterator[SessionStore]:
    """An open store that knows one contract and the candidate of `candidate(0)`."""
    with open_write(place) as store:
        store.put_contract(CONTRACT, {"objective": "total_us"})
        store.add_candidate(Candidate({"kernel.py": FileVersion("0" * 64)}, {"block": 0}))
        yield store


@pytest.fixture
def files(root: Path, store: SessionStore) -> JournaledFiles:
    return JournaledFiles(root, MUTABLE, store)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="kerneldeck-test-"))
    folder.chmod(0o755)
    yield folder
    remove_tree(folder)


@pytest.fixture
def start_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python on some code with arguments, pipes to its standard streams; killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=REPO,
            env={**os.environ, **environment},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_python() -> RunPython:
    """Run Python on some code with arguments, `before` being words in front of its command line."""

    def run(code: str, *arguments: object, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPO, timeout=60
        )

    return run
