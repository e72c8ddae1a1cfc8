"""Trials that misbehave, the lock of a GPU, and whether the folder of a trial there is the one here."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deck import Done, wait_until
from tests.remote.agents import run
from tests.remote.far import (
    Before,
    Far,
    Ground,
    check_nothing_left,
    ended,
    fifo_read,
    in_the_queue,
    pipes,
    settled_ground,
)  # fmt: skip
from tests.remote.sshd import Server
from tests.remote.test_agent_gpu import ROW, UUID, script
from tests.remote.test_target_health import printing

IMPATIENT = "import core.targets.ssh.target as target\ntarget.LOCK_WAIT_S = 0.2"


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Ground]:
    with settled_ground(tmp_path_factory.mktemp("ground"), keys) as made:
        yield made


@pytest.fixture
def gpu() -> str:
    """The UUID of a card that nobody else has."""
    return f"GPU-{uuid.uuid4()}"


@pytest.fixture
def server(ground: Ground, gpu: str, tmp_path: Path) -> Iterator[Server]:
    """A machine with this one card."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder, printing(tmp_path, ROW.format(0, 0, 1).replace(UUID.format(0), gpu)))
    path = f"SetEnv HOME={tmp_path} PATH={folder}:/usr/local/bin:/usr/bin:/bin"
    with ground.serving(tmp_path / "sshd", path) as made:
        yield made


def test_two_clients_on_one_gpu(ground: Ground, server: Server, gpu: str, tmp_path: Path) -> None:
    """The second waits its turn; one that waits no longer is told who holds it, and decides nothing."""
    log = tmp_path / "log"
    runs, go = pipes(tmp_path)

    async def main() -> None:
        first, second = (ground.far(tmp_path / name, server=server) for name in ("a", "b"))
        first.deck.kernel(f"echo a begins >> {log}\n: > {runs}\nread _ < {go}\necho a ends >> {log}\nscore=1")
        second.deck.kernel(f"echo b begins >> {log}\necho b ends >> {log}\nscore=2")
        one = await first.start("run", "--json")
        await fifo_read(runs)
        two = await second.start("run", "--json")
        await asyncio.to_thread(wait_until, lambda: in_the_queue(second), "the second in the queue")
        await refused_by_the_holder(ground.far(tmp_path / "c", server=server), gpu)
        assert log.read_text() == "a begins\n"
        await asyncio.to_thread(go.write_text, "go\n")
        assert [(await ended(each)).answer["score"] for each in (one, two)] == [1, 2]
        assert log.read_text() == "a begins\na ends\nb begins\nb ends\n"
        for far in (first, second):
            check_nothing_left(far)

    run(main())


async def refused_by_the_holder(far: Far, gpu: str) -> None:
    before = Before.of(far)
    done = await ended(await far.start("verify", "--json", change=IMPATIENT))
    holder = f"{gpu} is held by {getpass.getuser()} on {socket.gethostname()} (process "
    before.check_pending(done, "lock", holder, " since ", "(waited 0.2 s)", others_run=True)


def test_the_lock_of_a_client_that_is_gone(ground: Ground, server: Server, gpu: str, tmp_path: Path) -> None:
    """A file that names a holder holds nothing: the lock went with the last process that had it."""
    locks = server.home / "locks"
    locks.mkdir(mode=0o700)
    holder = {
        "name": "somebody",
        "host": "elsewhere",
        "pid": 4_000_000,
        "watchdog": 4_000_001,
        "since_s": 1.0,
    }
    lock = locks / f"{gpu}.lock"
    lock.write_text(json.dumps(holder))
    far = ground.far(tmp_path, server=server)
    done = asyncio.run(to_its_end(far, IMPATIENT))
    assert done.code == 0 and done.answer["score"] == 300, done.said
    assert json.loads(lock.read_text())["name"] == getpass.getuser()
    check_nothing_left(far)


def test_a_program_that_hides_and_ignores_the_end(ground: Ground, tmp_path: Path) -> None:
    """It is ended with all that it started, is a time-out and no fault of the target."""
    far = ground.far(tmp_path)
    deaf = f"trap '' TERM INT HUP; echo $$ >> {tmp_path}/pids; while :; do read _ < {tmp_path}/never; done"
    os.mkfifo(tmp_path / "never")
    far.deck.write("deaf.sh", f"#!/bin/sh\n{deaf}\n")
    far.deck.kernel("setsid ./deaf.sh & (setsid ./deaf.sh &)\n. ./deaf.sh")
    late = far.deck.json("run", "--timeout", "1", env=far.env, code=4)
    assert (late["status"], late["stage"]) == ("timeout", "")
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3 and not any(Path(f"/proc/{pid}").exists() for pid in pids)
    check_nothing_left(far)


def test_a_flood_of_output(ground: Ground, tmp_path: Path) -> None:
    """300 MB, of which the client takes the beginning and the end, in little memory."""
    far = ground.far(tmp_path)
    far.deck.kernel("yes a-line-of-output | head -c 300000000\nscore=7")
    watched = (
        "import atexit, pathlib\n"
        "def most(): return pathlib.Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        f"atexit.register(lambda: pathlib.Path({str(tmp_path / 'most')!r}).write_text(most()))"
    )

    done = asyncio.run(to_its_end(far, watched))
    assert done.code == 0 and done.answer["score"] == 7, done.said
    kept = sum(path.stat().st_size for path in Path(done.answer["output"]).iterdir())
    assert 1 << 20 < kept < 8 << 20
    assert 10_000 < int((tmp_path / "most").read_text()) < 150_000
    check_nothing_left(far)


async def to_its_end(far: Far, change: str) -> Done:
    return await ended(await far.start("run", "--json", change=change))


def test_a_disk_here_that_takes_no_output(ground: Ground, tmp_path: Path) -> None:
    """Something is in the way of the folder for what the trial leaves."""
    far = ground.far(tmp_path)
    (far.deck.root / ".kerneldeck" / "outputs" / "2").write_text("in the way")
    before = Before.of(far)
    done = far.deck.run("verify", "--json", env=far.env, code=None)
    before.check_pending(done, "scratch", "the trial could not be kept: ")


LISTING = """
import hashlib, os, stat, sys
rows = []
for folder, inside, names in os.walk(b"."):
    for name in inside + names:
        path = os.path.join(folder, name)
        status = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(status.st_mode) else b""
        content = open(path, "rb").read() if os.path.isfile(path) else b""
        runs = bool(status.st_mode & 0o100)
        rows.append((path, stat.S_IFMT(status.st_mode), runs, link, hashlib.sha256(content).hexdigest()))
open(sys.argv[1], "w").write(ascii(sorted(rows)))
"""


def test_the_folder_of_a_trial_is_the_one_of_a_trial_here(ground: Ground, tmp_path: Path) -> None:
    """Names that are no UTF-8, links, empty folders, mode bits; and then changed, added and deleted files."""
    far = ground.far(tmp_path)
    root, listed = far.deck.root, tmp_path / "listed"
    far.deck.write("list.py", LISTING)
    far.deck.kernel(f"python3 -X utf8 list.py {listed}; score=5")
    odd = Path(os.fsdecode(bytes(root) + b"/caf\xe9"))
    odd.write_bytes(b"\xff\x00")
    far.deck.write("sub/deep/-x \n.txt", "in a folder")
    far.deck.write("tool", "#!/bin/sh\n")
    far.deck.write("plain", "")
    (root / "empty" / "folder").mkdir(parents=True)
    (root / "link").symlink_to("sub/deep/-x \n.txt")
    same_there(far, listed, "caf\\xe9", "-x \\n.txt", "link", "tool")
    odd.unlink()
    (root / "plain").chmod(0o755)
    (root / "tool").chmod(0o644)
    far.deck.write("sub/deep/-x \n.txt", "in a Folder")
    far.deck.write("sub/another", "one more")
    assert "/caf" not in same_there(far, listed, "another")
    check_nothing_left(far)


def same_there(far: Far, listed: Path, *names: str) -> str:
    """The listing that a trial makes here, which one over there makes too."""
    found = []
    for target in ("local", "gpu"):
        assert far.deck.json("run", "--target", target, env=far.env)["score"] == 5
        found.append(listed.read_text())
        listed.unlink()
    assert found[0] == found[1]
    for name in names:
        assert name in found[0]
    return found[0]
