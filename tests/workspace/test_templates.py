"""Laying out the shipped workspaces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.errors import ArgumentFault, ConfigFault
from core.workspace import templates
from core.workspace.templates import lay_out, lay_timing_file, template_names
from core.workspace.toml_reader import read_workspace


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_every_shipped_workspace_can_be_named() -> None:
    assert {"cpu_rmsnorm", "tensor_plan"} <= set(template_names())


@pytest.mark.parametrize("name", ["cpu_rmsnorm", "tensor_plan"])
def test_a_template_is_laid_out_whole_and_is_a_workspace(name: str, tmp_path: Path) -> None:
    written = lay_out(name, tmp_path / "deep" / "new folder")
    config = read_workspace(tmp_path / "deep" / "new folder").config
    assert {str(path.relative_to(tmp_path / "deep" / "new folder")) for path in written} >= {
        "kerneldeck.toml", *config.files.mutable, *config.files.protected
    }  # fmt: skip


def test_the_timing_file_comes_along_only_where_it_is_used(tmp_path: Path) -> None:
    lay_out("cpu_rmsnorm", tmp_path / "timed")
    lay_out("tensor_plan", tmp_path / "plain")
    assert (tmp_path / "timed/kerneldeck_timing.py").is_file()
    assert not (tmp_path / "plain/kerneldeck_timing.py").exists()


def test_a_laid_out_benchmark_runs(tmp_path: Path) -> None:
    lay_out("tensor_plan", tmp_path)
    command = [sys.executable, "benchmark.py", "--json", "--mode", "dev"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert '"best_cycles": 8348345' in done.stdout


def test_state_and_caches_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out("tensor_plan", tmp_path / "kernels" / "mine")
    for path in (".kerneldeck/state.db", "__pycache__/benchmark.pyc", "sub/__pycache__/x.pyc", "old.pyc"):
        (tmp_path / "kernels/mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "kernels/mine" / path).write_text("left over")
    monkeypatch.setattr(templates, "shipped", lambda: tmp_path / "kernels")
    written = lay_out("mine", tmp_path / "copy")
    assert not [path for path in written if "left over" in path.read_text()]
    assert len(written) == len(_tree(tmp_path / "copy"))


def test_an_executable_stays_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out("tensor_plan", tmp_path / "kernels" / "mine")
    (tmp_path / "kernels/mine/build.sh").write_text("#!/bin/sh\n")
    (tmp_path / "kernels/mine/build.sh").chmod(0o755)
    monkeypatch.setattr(templates, "shipped", lambda: tmp_path / "kernels")
    lay_out("mine", tmp_path / "copy")
    assert os.access(tmp_path / "copy/build.sh", os.X_OK)


def test_nothing_is_written_when_one_file_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "verifier.py").write_text("mine")
    before = _tree(tmp_path)
    with pytest.raises(ConfigFault, match=r"verifier\.py is in the way"):
        lay_out("tensor_plan", tmp_path)
    assert _tree(tmp_path) == before


def test_a_dangling_link_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "verifier.py").symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(ConfigFault, match=r"verifier\.py is in the way"):
        lay_out("tensor_plan", tmp_path)
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize("blocker", ["", "fixtures"])
def test_a_file_where_a_folder_should_be_is_named(blocker: str, tmp_path: Path) -> None:
    destination = tmp_path / "there"
    (destination / blocker).parent.mkdir(parents=True, exist_ok=True)
    (destination / blocker if blocker else destination).write_text("a file")
    with pytest.raises(ConfigFault, match=f"{blocker or 'there'} is in the way"):
        lay_out("tensor_plan", destination)


def test_what_was_written_before_a_failure_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "verifier.py")

    monkeypatch.setattr(templates.shutil, "copymode", fail)
    with pytest.raises(ConfigFault, match="No space left on device"):
        lay_out("tensor_plan", tmp_path)
    assert _tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "hint"), [("tensorplan", "tensor_plan"), ("../core", "shipped:"), ("", "shipped:")]
)
def test_a_name_that_is_not_shipped_is_refused(name: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentFault) as caught:
        lay_out(name, tmp_path)
    assert hint in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_the_timing_file_is_laid_into_a_foreign_folder_once(tmp_path: Path) -> None:
    path = lay_timing_file(tmp_path)
    assert path == tmp_path / "kerneldeck_timing.py"
    assert path.read_bytes() == (templates.shipped() / "kerneldeck_timing.py").read_bytes()
    with pytest.raises(ConfigFault, match="is in the way"):
        lay_timing_file(tmp_path)
