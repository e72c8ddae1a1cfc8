"""What is kept over there for later trials is what was sent, whatever a trial did to it, however it ended."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_sync import RemoteTree
from tests.remote.agents import Running, agent, run
from tests.remote.conftest import Serve
from tests.remote.far import far_of
from tests.remote.sshd import User

LARGE = b"0" * (2 << 20)
KILLED = "kill -9 $PPID"
SPOILT = "chmod u+w weights; printf X | dd of=weights conv=notrunc status=none"
SHOWN = ("sh", "-c", "head -c 2 weights; stat -c ' %a' weights")


async def shown(there: Running, folder: Path, mode: int = 0o644) -> str:
    tree = RemoteTree((there.held.file("weights", LARGE, mode),))
    collected = await there.trials.run(there.trial(*SHOWN, trees=(tree,)), folder)
    assert collected.ended.clean, collected.outcome
    return (folder / "stdout").read_text()


async def did(there: Running, folder: Path, deed: str, mode: int = 0o644) -> dict[str, object]:
    tree = RemoteTree((there.held.file("weights", LARGE, mode),))
    return dict((await there.trials.run(there.trial("sh", "-c", deed, trees=(tree,)), folder)).outcome)


@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("deed", [SPOILT, "chmod 777 weights"])
def test_what_a_trial_did_whose_keeper_was_killed_reaches_no_later_one(
    tmp_path: Path, deed: str, mode: int
) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            expected = await shown(there, tmp_path / "1", mode)
            assert (await did(there, tmp_path / "2", f"{deed}; {KILLED}", mode))["stage"] == "lost"
            assert await shown(there, tmp_path / "3", mode) == expected
            await did(there, tmp_path / "4", f"{deed}; {KILLED}", mode)
        async with agent(tmp_path / "s") as there:
            assert await shown(there, tmp_path / "5", mode) == expected

    run(main())


def test_another_mode_is_taken_back_without_a_word(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            expected = await shown(there, tmp_path / "1")
            done = await did(there, tmp_path / "2", "chmod 777 weights")
            assert done["written_into"] == done["dropped"] == []
            assert await shown(there, tmp_path / "3") == expected

    run(main())


def test_a_copied_content_that_was_spoilt_where_it_is_kept_is_asked_for_again(tmp_path: Path) -> None:
    """Found while it is copied: its time and mode may say nothing."""

    async def main() -> None:
        content = b"expected = 1\n"
        name = hashlib.sha256(content).hexdigest()
        kept = f"../../../../blobs/{name[:2]}/{name}"
        deed = (
            f"chmod u+w {kept}; echo 'expected = 2' > {kept}; touch -d @1000000000 {kept}; chmod 444 {kept}"
        )
        async with agent(tmp_path / "s") as there:
            files = {"reference.py": content}
            await there.trials.run(there.trial("sh", "-c", deed, files=files), tmp_path / "1")
            found = await there.trials.run(there.trial("cat", "reference.py", files=files), tmp_path / "2")
            with pytest.raises(TargetFault, match="is not kept there any more") as caught:
                _ = found.ended
            assert caught.value.stage == "sync"
            found = await there.trials.run(there.trial("cat", "reference.py", files=files), tmp_path / "3")
            assert found.ended.clean and (tmp_path / "3" / "stdout").read_bytes() == content

    run(main())


def test_a_run_that_finds_a_content_spoilt_is_run_again_with_it(
    tmp_path: Path, user: User, serve: Serve
) -> None:
    far = far_of(tmp_path, user, serve())
    before = far.deck.json("run", env=far.env)
    for path in (far.scratch / "blobs").glob("*/*"):
        status = path.stat()
        path.chmod(0o644)
        path.write_bytes(b"#" * status.st_size)
        path.chmod(0o444)
        os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert far.deck.json("run", env=far.env)["score"] == before["score"]
    assert far.trials() == [("ok", "")] * 2
    assert far.left() == []
