"""The one path by which the workspace's files change."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ChangedMeanwhile, ConfigFault, StorageFault
from core.records import FileSet, FileVersion
from sessions.journal import JournaledFiles
from sessions.progress import ProgressRows
from sessions.store import SessionStore
from sessions.workspace_files import WorkspaceFiles


def kept(store: SessionStore, **contents: str) -> FileSet:
    """A file set of contents that are blobs; an underscore in a name stands for its dot."""
    return {
        name.replace("_", "."): FileVersion(store.blobs.put(content.encode()))
        for name, content in contents.items()
    }


def leftovers(root: Path) -> list[Path]:
    return list(root.rglob(".kerneldeck-*.tmp"))


def hashes(files: FileSet) -> dict[str, str]:
    return {name: version.sha256 for name, version in files.items()}


def test_the_current_files_are_kept_as_blobs(files: JournaledFiles, store: SessionStore) -> None:
    current = files.current()
    assert set(current) == {"kernel.py", "config.json"}
    assert store.blobs.get(current["kernel.py"].sha256) == b"old kernel"
    assert current == files.versions()


def test_a_missing_file_is_absent_from_the_set(files: JournaledFiles, root: Path) -> None:
    (root / "config.json").unlink()
    assert set(files.current()) == {"kernel.py"}


def test_a_write_replaces_the_files_and_is_a_row(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    old = files.current()
    new = kept(store, kernel_py="new kernel", config_json='{"block": 64}')
    row_id = files.write(new, hashes(old), "apply of trial 7")
    assert (root / "kernel.py").read_text() == "new kernel"
    assert (root / "config.json").read_text() == '{"block": 64}'
    (row,) = store.journal()
    assert (row.id, row.state, row.reason, row.old, row.new) == (row_id, "done", "apply of trial 7", old, new)
    assert row.ended_s is not None
    assert leftovers(root) == []


def test_what_was_replaced_can_be_written_back(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    old = files.current()
    files.write(kept(store, kernel_py="new kernel", config_json="{}"), {}, "apply")
    files.write(old, {}, "restore")
    assert (root / "kernel.py").read_text() == "old kernel"
    assert files.current() == old


def test_a_file_that_the_new_set_lacks_is_removed(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    files.write(kept(store, kernel_py="new kernel"), {}, "apply")
    assert not (root / "config.json").exists()


def test_a_file_comes_back_with_its_folder(root: Path, store: SessionStore) -> None:
    files = JournaledFiles(root, ["deep/er/kernel.py"], store)
    files.write({"deep/er/kernel.py": FileVersion(store.blobs.put(b"x"))}, {"deep/er/kernel.py": ""}, "apply")
    assert (root / "deep/er/kernel.py").read_bytes() == b"x"


def test_a_file_edited_meanwhile_stops_the_write_before_anything_changed(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    seen = hashes(files.current())
    (root / "config.json").write_text("edited by hand")
    with pytest.raises(ChangedMeanwhile, match=r"config\.json changed meanwhile"):
        files.write(kept(store, kernel_py="new", config_json="new"), seen, "apply")
    assert (root / "kernel.py").read_text() == "old kernel"
    assert (root / "config.json").read_text() == "edited by hand"
    assert store.journal() == []


def test_a_file_expected_to_be_absent_must_be(files: JournaledFiles, store: SessionStore) -> None:
    with pytest.raises(ChangedMeanwhile, match=r"kernel\.py"):
        files.write(kept(store, kernel_py="new"), {"kernel.py": ""}, "apply")


def test_a_file_edited_between_staging_and_renaming_is_never_overwritten(
    files: JournaledFiles, store: SessionStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ProgressRows.begin_write

    def edit_first(rows: ProgressRows, old: FileSet, new: FileSet, reason: str) -> int:
        (root / "kernel.py").write_text("edited by hand")
        return real(rows, old, new, reason)

    monkeypatch.setattr(ProgressRows, "begin_write", edit_first)
    with pytest.raises(ChangedMeanwhile, match=r"kernel\.py"):
        files.write(kept(store, kernel_py="new", config_json="new"), {}, "apply")
    assert (root / "kernel.py").read_text() == "edited by hand"
    assert (root / "config.json").read_text() == "{}"
    assert store.journal()[0].state == "undone"
    assert leftovers(root) == []


def test_only_mutable_files_are_written(files: JournaledFiles, store: SessionStore, root: Path) -> None:
    with pytest.raises(ConfigFault, match=r"benchmark\.py is not a mutable file"):
        files.write(kept(store, benchmark_py="cheat"), {}, "apply")
    assert not (root / "benchmark.py").exists()


def test_a_content_that_is_not_kept_stops_the_write(files: JournaledFiles, root: Path) -> None:
    with pytest.raises(StorageFault, match="is not kept"):
        files.write({"kernel.py": FileVersion("a" * 64)}, {}, "apply")
    assert (root / "kernel.py").read_text() == "old kernel"


def test_the_mode_stays_and_the_executable_bit_follows_the_version(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    (root / "kernel.py").chmod(0o640)
    sha256 = store.blobs.put(b"#!/bin/sh\n")
    files.write({"kernel.py": FileVersion(sha256, True), **kept(store, config_json="{}")}, {}, "apply")
    assert stat.S_IMODE((root / "kernel.py").stat().st_mode) == 0o750
    assert files.current()["kernel.py"] == FileVersion(sha256, True)
    files.write({"kernel.py": FileVersion(sha256, False), **kept(store, config_json="{}")}, {}, "apply")
    assert stat.S_IMODE((root / "kernel.py").stat().st_mode) == 0o640


def test_a_link_inside_the_workspace_stays_a_link(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    (root / "variants").mkdir()
    (root / "kernel.py").rename(root / "variants" / "first.py")
    (root / "kernel.py").symlink_to("variants/first.py")
    files.write(kept(store, kernel_py="new kernel", config_json="{}"), {}, "apply")
    assert (root / "kernel.py").is_symlink()
    assert (root / "variants" / "first.py").read_text() == "new kernel"


@pytest.mark.parametrize("linked", ["kernel.py", "deep"])
def test_a_link_out_of_the_workspace_is_refused(
    root: Path, tmp_path: Path, store: SessionStore, linked: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kernel.py").write_text("not yours")
    (root / "kernel.py").unlink()
    (root / linked).symlink_to(outside / "kernel.py" if linked == "kernel.py" else outside)
    name = "kernel.py" if linked == "kernel.py" else "deep/kernel.py"
    files = JournaledFiles(root, [name], store)
    with pytest.raises(ConfigFault, match="leads out of the workspace"):
        files.current()
    with pytest.raises(ConfigFault, match="leads out of the workspace"):
        files.write({name: FileVersion(store.blobs.put(b"new"))}, {}, "apply")
    assert (outside / "kernel.py").read_text() == "not yours"


@pytest.mark.parametrize("name", ["../kernel.py", "/etc/passwd", "", "a/../../b", "nul\0"])
def test_a_path_that_is_none_of_the_workspace_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ConfigFault, match="not a path inside the workspace"):
        WorkspaceFiles(root).read(name)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused(root: Path, make: Callable[[Path], None]) -> None:
    make(root / "odd")
    with pytest.raises(ConfigFault, match="not a regular file"):
        WorkspaceFiles(root).read("odd")


def test_a_loop_of_links_is_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(ConfigFault, match="cannot be read"):
        WorkspaceFiles(root).read("a")


@pytest.mark.parametrize("name", ["a b.py", "quo'te\".py", "new\nline.py", "-dash.py", "\udcff.py", "ü.py"])
def test_any_file_name_is_written(root: Path, store: SessionStore, name: str) -> None:
    (root / name).write_bytes(b"old")
    files = JournaledFiles(root, [name], store)
    files.write({name: FileVersion(store.blobs.put(b"new"))}, hashes(files.current()), "apply")
    assert (root / name).read_bytes() == b"new"
    assert set(store.journal()[0].new) == {name}


def test_two_names_of_one_file_cannot_get_two_contents(root: Path, store: SessionStore) -> None:
    (root / "same.py").symlink_to("kernel.py")
    files = JournaledFiles(root, ["kernel.py", "same.py"], store)
    with pytest.raises(ConfigFault, match="are one file"):
        files.write(kept(store, kernel_py="one", same_py="two"), {}, "apply")
    files.write(kept(store, kernel_py="one", same_py="one"), {}, "apply")
    assert (root / "kernel.py").read_text() == "one"


def failing_at(step: int, real: Callable[..., None], number: int) -> Callable[..., None]:
    """`real`, but the call of that step (from 1) fails with the error number."""
    calls = iter(range(1, 1000))

    def call(*arguments: object) -> None:
        if next(calls) == step:
            raise OSError(number, os.strerror(number))
        real(*arguments)

    return call


@pytest.mark.parametrize("number", [28, 30, 5], ids=["full", "read-only", "failing"])
@pytest.mark.parametrize("step", [1, 2])
def test_a_disk_that_refuses_half_way_gets_everything_put_back(
    files: JournaledFiles,
    store: SessionStore,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    number: int,
) -> None:
    new = kept(store, kernel_py="new kernel", config_json="new")
    old = files.current()
    monkeypatch.setattr(os, "replace", failing_at(step, os.replace, number))
    with pytest.raises(StorageFault, match="cannot write"):
        files.write(new, {}, "apply")
    assert files.current() == old
    assert [row.state for row in store.journal()] == ["undone"]
    assert leftovers(root) == []
    files.write(new, {}, "apply again")
    assert files.current() == new


def test_a_disk_that_fills_while_staging_leaves_no_trace(
    files: JournaledFiles, store: SessionStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = kept(store, kernel_py="new kernel", config_json="new")
    old = files.current()
    monkeypatch.setattr(os, "fsync", failing_at(2, os.fsync, 28))
    with pytest.raises(StorageFault, match="is full"):
        files.write(new, {}, "apply")
    assert files.current() == old
    assert store.journal() == []
    assert leftovers(root) == []


def test_a_row_that_cannot_be_closed_is_said_and_closed_later(
    files: JournaledFiles, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise StorageFault("cannot store what was written: the disk is full", "free space")

    new = kept(store, kernel_py="new kernel", config_json="new")
    with monkeypatch.context() as patched, pytest.raises(StorageFault, match="are written and whole, but"):
        patched.setattr(ProgressRows, "end_write", full)
        files.write(new, {}, "apply")
    assert files.current() == new
    assert files.finish(store.unfinished_writes()[0]) == []
    assert store.journal()[0].state == "done"
