"""What only shows without the rights of root: closed folders and read-only places."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.targets.bench import REPO

BECOME_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from core.targets.local import LocalTarget
from core.targets.remove_tree import remove_tree
from tests.targets.bench import SCORE, Bench
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
folder = Path(sys.argv[1])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that anybody may write into, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="kerneldeck-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def as_nobody(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BECOME_NOBODY + code, str(folder)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(REPO)}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_folders_that_a_trial_closed_are_removed(open_folder: Path) -> None:
    code = """
tree = folder / "tree"
(tree / "a" / "b" / "c").mkdir(parents=True)
for path in (tree / "a" / "b" / "c" / "file", tree / "file"):
    path.touch(0o000)
(tree / "link").symlink_to("a")
for path in (tree / "a" / "b" / "c", tree / "a" / "b", tree / "a", tree):
    path.chmod(0o000)
remove_tree(tree)
print(tree.exists())
"""
    assert as_nobody(code, open_folder) == "False"


def test_removing_what_is_not_there_or_a_link_is_fine(open_folder: Path) -> None:
    (open_folder / "kept").mkdir()
    (open_folder / "kept" / "file").touch()
    (open_folder / "link").symlink_to("kept")
    (open_folder / "dangling").symlink_to("nowhere")
    code = "for name in ('absent', 'link', 'dangling'): remove_tree(folder / name)"
    as_nobody(code, open_folder)
    assert sorted(path.name for path in open_folder.rglob("*")) == ["file", "kept"]


@pytest.mark.parametrize("place", ["staging", "linked", "outputs"])
def test_a_read_only_place_is_infra(open_folder: Path, place: str) -> None:
    code = f"""
bench = Bench(folder)
bench.add("large.bin", b"x" * (1 << 20))
bench.protect("verifier.py", "1")
closed = folder / "state" / "{place}"
closed.mkdir()
closed.chmod(0o555)
outcome = asyncio.run(LocalTarget(bench.staging(), SCORE).run(bench.job("true")))
print(outcome.status, outcome.stage, outcome.reason, sep="|")
print(bench.staged())
"""
    said, left = as_nobody(code, open_folder).splitlines()
    status, stage, reason = said.split("|")
    assert (status, stage) == ("infra", "scratch")
    assert reason.startswith("the trial could not be laid out: Permission denied: ")
    assert left == "[]"


def test_a_needed_file_that_may_not_be_read_is_infra(open_folder: Path) -> None:
    code = """
bench = Bench(folder)
bench.add("secret.json", "{}", 0o000)
outcome = asyncio.run(LocalTarget(bench.staging(), SCORE).run(bench.job("true")))
print(outcome.status, outcome.stage, outcome.reason)
"""
    said = as_nobody(code, open_folder)
    assert said.startswith("infra scratch the trial could not be laid out: Permission denied: ")
    assert said.endswith("secret.json")
