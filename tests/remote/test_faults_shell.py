"""What a login meets over there before our program runs, and a scratch folder that cannot be used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.far import PYTHON, Before, Ground, settled_ground, verified
from tests.remote.test_agent_scratch import mounts
from tests.remote.test_connect_shell import wrapper

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Ground]:
    with settled_ground(tmp_path_factory.mktemp("ground"), keys) as made:
        yield made


@pytest.mark.parametrize("kind", ["one-session", "no-file-transfer", "noise"])
def test_what_is_no_fault(ground: Ground, tmp_path: Path, kind: str) -> None:
    """One session a connection is enough, file transfer is not needed, noise is passed over."""
    (tmp_path / "banner").write_text("Only for members of the lab.\n")
    noise = wrapper(tmp_path, "echo Welcome; echo oops >&2", "head -c 300000 /dev/zero", "printf '\\036hel'")
    options = {
        "one-session": ["MaxSessions 1"],
        "no-file-transfer": ["AllowTcpForwarding no", "AllowStreamLocalForwarding no", "PermitTTY no"],
        "noise": [noise, f"Banner {tmp_path / 'banner'}"],
    }[kind]
    with ground.serving(tmp_path / "sshd", *options) as server:
        assert "Subsystem" not in (tmp_path / "sshd" / "sshd_config").read_text()
        far = ground.far(tmp_path, server=server)
        before = Before.of(far)
        assert far.deck.json("run", env=far.env)["score"] == 300
        before.check_unharmed(1)


def test_a_server_that_opens_no_session_says_so(ground: Ground, tmp_path: Path) -> None:
    with ground.serving(tmp_path / "sshd", "MaxSessions 0") as server:
        far = ground.far(tmp_path, server=server)
        before = Before.of(far)
        words = "box opens no further session on its connection (MaxSessions)"
        before.check_not_begun(verified(far), "channel", words)
        assert not far.scratch.exists()


def test_a_start_up_file_that_exits(ground: Ground, tmp_path: Path) -> None:
    with ground.serving(tmp_path / "sshd", wrapper(tmp_path, "echo my-greeting", "exit 3")) as server:
        far = ground.far(tmp_path, server=server)
        before = Before.of(far)
        words = "box: the remote shell ended with exit status 3 before it started our program"
        error = before.check_not_begun(verified(far), "shell", words)
        assert "my-greeting" not in str(error) and not far.scratch.exists()


def test_a_start_up_file_that_waits_for_input(ground: Ground, tmp_path: Path) -> None:
    """A health check is over when its time is; a run waits a little longer."""
    with ground.serving(tmp_path / "sshd", wrapper(tmp_path, "read line")) as server:
        far = ground.far(tmp_path, server=server)
        before = Before.of(far)
        health = far.deck.json("health", "--timeout", "1", env=far.env, code=3)
        assert (health["stage"], health["failure_stage"]) == ("shell", "remote")
        assert health["reason"] == "ssh:gpu did not get so far within 1 s"
        before.check_unharmed(0)


def test_a_machine_without_python(ground: Ground, tmp_path: Path) -> None:
    with ground.serving(tmp_path / "sshd", f"SetEnv HOME={tmp_path} PATH={tmp_path}") as server:
        far = ground.far(tmp_path, server=server)
        far.describe(python="python3")
        before = Before.of(far)
        words = "box: python3 was not found there (exit status 127)"
        before.check_not_begun(verified(far), "shell", words)


def test_an_old_python(ground: Ground, tmp_path: Path) -> None:
    """A real interpreter that takes itself for an old one; the boot program is its last argument."""
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    program = 'code="import sys; sys.version_info = (3, 6, 9); $7"'
    old.write_text(f'#!/bin/sh\n{program}\nexec {PYTHON} -I -S -u -c "$code"\n')
    old.chmod(0o755)
    with ground.serving(tmp_path / "sshd", f"SetEnv HOME={tmp_path} PATH={old.parent}:{SYSTEM}") as server:
        far = ground.far(tmp_path, server=server)
        far.describe(python="python3")
        before = Before.of(far)
        error = before.check_not_begun(verified(far), "shell", "python3 there is 3.6, 3.8 or newer is needed")
        assert "newer interpreter" in error["hint"] and not far.scratch.exists()


def small_disk(folder: Path, scratch: Path, options: str, then: str = "true") -> str:
    """A login that sees a file system of its own on `scratch`, whoever it is: nothing is mounted outside."""
    scratch.mkdir(mode=0o700, parents=True)
    ours = f'mount -t tmpfs -o mode=700,{options} tmpfs {scratch} && {then} && exec "$@"'
    script = folder / "mounted.sh"
    script.write_text(f"{ours}\n")
    enter = f'exec unshare -rm sh {script} sh -c "$SSH_ORIGINAL_COMMAND"'
    return wrapper(folder, enter)


@mounts
def test_a_workspace_that_does_not_fit(ground: Ground, tmp_path: Path) -> None:
    """The final stays pending, and is decided once there is room."""
    forced = small_disk(tmp_path, tmp_path / "scratch", "size=4m")
    with ground.serving(tmp_path / "sshd", forced) as server:
        far = ground.far(tmp_path, server=server)
        far.describe(min_free_mb=0)
        far.deck.write("weights", os.urandom(6_000_000))
        before = Before.of(far)
        done = verified(far)
        before.check_pending(done, "scratch", "the workspace needs 6.0 MB, ", "MB free on ")
        assert list(far.scratch.iterdir()) == []
    roomy = ground.far(tmp_path / "roomy")
    shutil.rmtree(roomy.deck.root)
    shutil.copytree(far.deck.root, roomy.deck.root)
    assert verified(roomy).answer["outcome"] == "restored"
    assert roomy.deck.read("kernel.sh") == "score=100\n"


@mounts
@pytest.mark.parametrize(
    ("options", "then", "words"),
    [
        ("size=1m", "{{ dd if=/dev/zero of={0}/fill bs=64k 2>/dev/null; true; }}", "No space left on device"),
        ("size=1m", "mount -o remount,ro {0}", "it is mounted read-only"),
    ],
    ids=["full", "read-only"],
)
def test_a_scratch_folder_that_takes_nothing(
    ground: Ground, tmp_path: Path, options: str, then: str, words: str
) -> None:
    scratch = tmp_path / "scratch"
    forced = small_disk(tmp_path, scratch, options, then.format(scratch))
    with ground.serving(tmp_path / "sshd", forced) as server:
        far = ground.far(tmp_path, server=server)
        before = Before.of(far)
        error = before.check_not_begun(verified(far), "scratch", f"{scratch} cannot be used: ", words)
        assert "kerneldeck target clean" in error["hint"]
        health = far.deck.json("health", env=far.env, code=3)
        assert (health["stage"], health["failure_stage"]) == ("scratch", "disk")
        assert list(scratch.iterdir()) == []
