from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from core.errors import ConfigFault, StorageFault
from sessions.state_dir import create, locate
from sessions.store import open_read, open_write

OTHER_USER = 65534


def test_the_state_lies_in_the_workspace(root: Path) -> None:
    assert locate(root).folder == root / ".kerneldeck"


def test_the_environment_comes_before_the_toml(root: Path, tmp_path: Path) -> None:
    environ = {"KERNELDECK_STATE_DIR": str(tmp_path / "by-env")}
    assert locate(root, "by-toml", environ).folder.parent == tmp_path / "by-env"
    assert locate(root, "by-toml", {}).folder.parent == root / "by-toml"


def test_one_state_folder_serves_several_workspaces(tmp_path: Path) -> None:
    first, second = (locate(tmp_path / name, str(tmp_path / "states"), {}) for name in "ab")
    assert first.folder.parent == second.folder.parent
    assert first.folder != second.folder


def test_a_workspace_reached_through_a_link_has_one_state(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    assert locate(link) == locate(root)
    assert locate(link, "/elsewhere", {}) == locate(root, "/elsewhere", {})


def test_a_home_that_does_not_exist_is_a_fault_of_the_configuration(root: Path) -> None:
    with pytest.raises(ConfigFault, match="nobody-has-this-name"):
        locate(root, "~nobody-has-this-name/state", {})


def test_the_folder_is_private_and_kept_out_of_git(root: Path) -> None:
    place = locate(root)
    create(place)
    create(place)
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    assert (place.folder / ".gitignore").read_text() == "*\n"
    assert Path(os.fsdecode((place.folder / "workspace").read_bytes().rstrip(b"\n"))) == root


def test_a_file_in_its_place_is_said(root: Path) -> None:
    (root / ".kerneldeck").write_text("mine")
    with pytest.raises(StorageFault, match="is in the way"):
        create(locate(root))
    assert (root / ".kerneldeck").read_text() == "mine"


def test_a_link_that_leads_nowhere_is_said(root: Path) -> None:
    (root / ".kerneldeck").symlink_to(root / "absent")
    with pytest.raises(StorageFault, match="leads nowhere"):
        create(locate(root))


def test_a_link_of_ones_own_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (root / ".kerneldeck").symlink_to(tmp_path / "state")
    create(locate(root))
    assert (tmp_path / "state" / ".gitignore").exists()


def test_a_link_to_another_users_folder_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (root / ".kerneldeck").symlink_to(theirs)
    if os.geteuid() == 0:
        os.chown(theirs, OTHER_USER, OTHER_USER)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: theirs.stat().st_uid + 1)
    with pytest.raises(StorageFault, match="another user"):
        create(locate(root))
    with pytest.raises(StorageFault, match="another user"):
        open_read(locate(root))
    assert list(theirs.iterdir()) == []


CREATE_WITHOUT_PERMISSION = """
import os, sys
from pathlib import Path
from core.errors import StorageFault
from sessions.state_dir import create, locate
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    create(locate(Path(sys.argv[1])))
except StorageFault as fault:
    print(fault)
"""


def test_a_folder_without_permission_is_said(
    open_folder: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    root = open_folder / "workspace"
    root.mkdir(mode=0o555)
    done = run_python(CREATE_WITHOUT_PERMISSION, root)
    assert "cannot create the state folder: no permission" in done.stdout
    assert "KERNELDECK_STATE_DIR" in done.stdout
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["with space", "quo'te\"s", "new\nline", "-dash", "?#%20", "x" * 200 + "/" + "y" * 99]
)
def test_any_workspace_path_works(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir(parents=True)
    with open_write(locate(root)) as store:
        store.put_contract("c", {"a": 1})
    reading = open_read(locate(root))
    assert reading is not None
    with reading:
        assert [contract.id for contract in reading.contracts()] == ["c"]


def test_a_path_beyond_sqlites_limit_is_said_with_a_way_out(tmp_path: Path) -> None:
    root = tmp_path.joinpath(*["z" * 100] * 5)
    root.mkdir(parents=True)
    with pytest.raises(StorageFault, match="longer path than SQLite takes") as caught:
        open_write(locate(root))
    assert "state_dir" in caught.value.hint
    with open_write(locate(root, str(tmp_path / "short"))) as store:
        assert store.trials() == []
