from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from core.errors import StorageFault
from sessions.blobs import BlobFolder

CONTENT = b"def kernel(): ...\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFolder:
    return BlobFolder(tmp_path / "blobs")


def test_a_content_is_found_by_its_hash(blobs: BlobFolder) -> None:
    assert blobs.put(CONTENT) == SHA256
    assert blobs.put(CONTENT) == SHA256
    assert blobs.get(SHA256) == CONTENT
    assert blobs.has(SHA256)
    assert blobs.size(SHA256) == len(CONTENT)
    assert list(blobs.all()) == [SHA256]


def test_an_empty_content_is_one_too(blobs: BlobFolder) -> None:
    assert blobs.get(blobs.put(b"")) == b""


def test_a_kept_content_is_read_only(blobs: BlobFolder) -> None:
    blobs.put(CONTENT)
    assert stat.S_IMODE(blobs.path(SHA256).stat().st_mode) == 0o400


def test_a_removed_content_is_gone(blobs: BlobFolder) -> None:
    blobs.put(CONTENT)
    blobs.remove(SHA256)
    blobs.remove(SHA256)
    assert not blobs.has(SHA256)
    assert blobs.size(SHA256) == 0
    with pytest.raises(StorageFault, match=f"{SHA256} is not kept"):
        blobs.get(SHA256)


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT.upper()])
def test_a_damaged_content_is_named_and_mended_by_putting_it_again(blobs: BlobFolder, damage: bytes) -> None:
    blobs.put(CONTENT)
    path = blobs.path(SHA256)
    path.unlink()
    path.write_bytes(damage)
    with pytest.raises(StorageFault, match=f"{SHA256} is damaged"):
        blobs.get(SHA256)
    blobs.put(CONTENT)
    assert blobs.get(SHA256) == CONTENT


def test_a_hash_that_is_none_never_becomes_a_path(blobs: BlobFolder) -> None:
    with pytest.raises(ValueError, match="not a SHA-256"):
        blobs.get("../../etc/passwd")


def test_a_refusing_disk_leaves_nothing_half_written(
    blobs: BlobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFault, match="is full"):
        blobs.put(CONTENT)
    assert [path for path in blobs.folder.rglob("*") if path.is_file()] == []


def test_a_killed_writer_leaves_no_content_and_its_temporary_file_is_removed(
    blobs: BlobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException): ...

    def killed(handle: int) -> None:
        raise Killed

    blobs.folder.joinpath(SHA256[:2]).mkdir(parents=True)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(os, "fsync", killed)
        blobs.put(CONTENT)
    assert list(blobs.all()) == []
    assert blobs.remove_unfinished() == 1
    assert blobs.get(blobs.put(CONTENT)) == CONTENT
