"""When a file's status is believed, and that what was believed is read afterwards."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from core.targets.ssh import local_tree
from core.targets.ssh.local_tree import FileHashes, tree_of


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files were written ten seconds before anybody read them."""
    now_s = local_tree.time.time()
    monkeypatch.setattr(local_tree.time, "time", lambda: now_s + 10)


def believed_of(root: Path, hashes: FileHashes) -> tuple[set[str], dict[str, str]]:
    """Names that were taken by their status, and the contents that the tree names."""
    believed: dict[str, str] = {}
    tree, _ = tree_of(root, hashes, believed=believed)
    return {Path(path).name for path in believed}, {file.path: file.sha256 for file in tree.files}


def hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.usefixtures("later")
def test_only_what_changed_in_no_respect_is_believed(tmp_path: Path) -> None:
    for name in ("same", "edited", "restored", "replaced", "mode"):
        (tmp_path / name).write_bytes(b"before")
    hashes = FileHashes()
    assert believed_of(tmp_path, hashes)[0] == set()
    times = (tmp_path / "restored").stat().st_atime_ns, (tmp_path / "restored").stat().st_mtime_ns
    (tmp_path / "edited").write_bytes(b"after!")
    (tmp_path / "restored").write_bytes(b"after!")
    os.utime(tmp_path / "restored", ns=times)
    (tmp_path / "new").write_bytes(b"after!")
    (tmp_path / "new").replace(tmp_path / "replaced")
    (tmp_path / "mode").chmod(0o755)
    names, found = believed_of(tmp_path, hashes)
    assert names == {"same"}
    before, after = hashed(b"before"), hashed(b"after!")
    assert found == {"same": before, "mode": before, "edited": after, "restored": after, "replaced": after}


def test_a_file_that_was_read_just_after_it_was_written_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "fresh").write_bytes(b"before")
    hashes = FileHashes()
    believed_of(tmp_path, hashes)
    assert believed_of(tmp_path, hashes)[0] == set()


@pytest.mark.usefixtures("later")
def test_a_link_is_followed_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"before")
    (tmp_path / "link").symlink_to("target")
    hashes = FileHashes()
    believed_of(tmp_path, hashes)
    assert believed_of(tmp_path, hashes)[0] == {"target"}


def test_what_was_believed_and_reads_otherwise_is_told(tmp_path: Path) -> None:
    for name in ("same", "other", "gone"):
        (tmp_path / name).write_bytes(b"before")
    believed = {str(tmp_path / name): hashed(b"before") for name in ("same", "other", "gone")}
    (tmp_path / "other").write_bytes(b"after")
    (tmp_path / "gone").unlink()
    assert FileHashes().differing(believed) == [str(tmp_path / "other"), str(tmp_path / "gone")]
