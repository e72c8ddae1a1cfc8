from __future__ import annotations

from pathlib import Path

import pytest

from sessions.filesystem import filesystem_kind, free_bytes, is_network

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /srv/shared rw - nfs4 server:/shared rw,vers=4.2
31 22 0:41 / /srv/shared/local rw - xfs /dev/vdb rw
32 22 0:42 / /srv/with\040a\040space rw,nosuid shared:9 master:3 - fuse.sshfs me@host: rw
33 22 0:43 / /srv/twice rw - ext4 /dev/vdc rw
34 33 0:44 / /srv/twice rw - lustre scratch rw
""".lstrip()


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    return table


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me", "ext4"),
        ("/srv/shared", "nfs4"),
        ("/srv/shared/a/b that is not there", "nfs4"),
        ("/srv/shared2", "ext4"),
        ("/srv/shared/local/x", "xfs"),
        ("/srv/with a space/x", "fuse.sshfs"),
        ("/srv/twice/x", "lustre"),
    ],
)
def test_the_longest_mount_above_a_path_tells_its_kind(mounts: Path, path: str, kind: str) -> None:
    assert filesystem_kind(Path(path), mounts) == kind


def test_without_a_mount_table_the_kind_is_unknown(tmp_path: Path) -> None:
    assert filesystem_kind(tmp_path, tmp_path / "absent") == "unknown"


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "lustre", "beegfs", "gpfs", "9p"]
)
def test_a_network_kind_counts_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    monkeypatch.setattr("sessions.filesystem.filesystem_kind", lambda path: kind)
    assert is_network(tmp_path, {})


def test_a_local_disk_is_no_network_unless_the_environment_says_so(tmp_path: Path) -> None:
    assert not is_network(tmp_path, {})
    assert not is_network(tmp_path, {"KERNELDECK_ASSUME_NETWORK_FS": "0"})
    assert is_network(tmp_path, {"KERNELDECK_ASSUME_NETWORK_FS": "1"})


def test_free_room_is_that_of_the_nearest_existing_parent(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there") > 0
