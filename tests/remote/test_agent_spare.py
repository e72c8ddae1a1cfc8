"""A large tree is made out of what the trial before left of its own; nobody can tell it from a new one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from core.targets.ssh.remote_sync import RemoteTree
from tests.remote.agents import Running, agent, run

MANY = {f"d{number % 10}/{number}.txt": b"%d" % number * 50 for number in range(250)}
LISTING = """
import hashlib, json, os, stat
rows = []
for folder, inside, names in os.walk("."):
    status = os.lstat(folder)
    rows.append([folder, stat.filemode(status.st_mode), os.listxattr(folder), sorted(inside + names)])
    for name in names:
        path = os.path.join(folder, name)
        mode = stat.filemode(os.lstat(path).st_mode)
        rows.append([path, mode, hashlib.sha256(open(path, "rb").read()).hexdigest()])
print(json.dumps([os.stat(".").st_ino, sorted(rows, key=str)]))
"""


def many(there: Running, **changed: bytes) -> RemoteTree:
    files = {**MANY, "kernel": b"kernel", "verifier": b"verifier", **changed, "tests.py": LISTING.encode()}
    return there.held.tree(files, folders=("empty",), protected=("verifier",), copied=("kernel",))


async def listed(there: Running, folder: Path, tree: RemoteTree) -> tuple[int, list[Any]]:
    """The inode of the trial's folder, and all that is to be seen in it."""
    trial = there.trial("python3", "tests.py", trees=(tree,))
    collected = await there.trials.run(trial, folder)
    assert collected.ended.clean, (folder / "stderr").read_text()
    inode, rows = json.loads((folder / "stdout").read_text())
    return inode, rows


async def as_new(folder: Path, **changed: bytes) -> list[Any]:
    async with agent(folder / "fresh") as fresh:
        return (await listed(fresh, folder / "out", many(fresh, **changed)))[1]


def test_the_folder_of_the_trial_before_is_used_again(tmp_path: Path) -> None:
    async def main() -> None:
        expected = await as_new(tmp_path)
        async with agent(tmp_path / "s") as there:
            seen = [await listed(there, tmp_path / "1", many(there)) for _ in range(3)]
            assert [rows for _, rows in seen] == [expected] * 3
            assert len({inode for inode, _ in seen}) == 1
            changed = {"d7/7.txt": b"seven", "kernel": b"other kernel"}
            inode, rows = await listed(there, tmp_path / "1", many(there, **changed))
            assert inode == seen[0][0] and rows == await as_new(tmp_path, **changed)
            assert (await listed(there, tmp_path / "1", many(there)))[1] == expected

    run(main())


@pytest.mark.parametrize(
    ("deed", "used_again"),
    [
        ("rm d1/1.txt", True),
        ("echo 1 > d1/new; mkdir -p __pycache__/deep; echo 1 > __pycache__/deep/x; mkfifo pipe", True),
        ("rm d1/1.txt; mkdir d1/1.txt; echo 1 > d1/1.txt/inside", True),
        ("rm d1/1.txt; ln -s ../d2/2.txt d1/1.txt", True),
        ("cat d1/1.txt > copy; mv -f copy d1/1.txt; chmod 444 d1/1.txt", True),
        ("ln -f d2/2.txt d1/1.txt", True),
        ("echo changed > kernel; rm verifier", True),
        ("rm kernel; mkdir kernel; ln -s / kernel/root", True),
        ("mv d1 d1b", False),
        ("mv d1 ../outside; ln -s ../outside d1; echo 1 > d1/new", False),
        ("rmdir empty", False),
        ("chmod 777 d1", False),
        ("chmod +t .", False),
        ("rm -rf d1; echo 1 > d1", False),
    ],
)
def test_whatever_a_trial_did_to_its_folder_the_next_one_finds_a_new_one(
    tmp_path: Path, deed: str, used_again: bool
) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            before, expected = await listed(there, tmp_path / "1", many(there))
            done = await there.trials.run(there.trial("sh", "-c", deed, trees=(many(there),)), tmp_path / "2")
            assert done.ended.clean, (tmp_path / "2" / "stderr").read_text()
            inode, rows = await listed(there, tmp_path / "3", many(there))
            assert rows == expected and (inode == before) == used_again

    run(main())


def test_what_a_trial_wrote_into_a_kept_content_reaches_no_later_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            _, expected = await listed(there, tmp_path / "1", many(there))
            deed = "chmod u+w d1/1.txt; echo spoilt > d1/1.txt"
            done = await there.trials.run(there.trial("sh", "-c", deed, trees=(many(there),)), tmp_path / "2")
            assert done.outcome["written_into"] == ["d1/1.txt"]
            assert (await listed(there, tmp_path / "3", many(there)))[1] == expected

    run(main())


def test_a_folder_with_attributes_is_not_used_again(tmp_path: Path) -> None:
    """Lists of rights, too, are attributes."""
    try:
        os.setxattr(tmp_path, "user.probe", b"1")
    except OSError:
        pytest.skip("the file system keeps no attributes")

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            before, expected = await listed(there, tmp_path / "1", many(there))
            deed = "import os; os.setxattr('d1', 'user.secret', b'1')"
            await there.trials.run(there.trial("python3", "-c", deed, trees=(many(there),)), tmp_path / "2")
            inode, rows = await listed(there, tmp_path / "3", many(there))
            assert rows == expected and inode != before

    run(main())


def test_behind_a_wrapper_nothing_is_used_again_and_nothing_stays(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            for _ in range(2):
                trial = there.trial("true", trees=(many(there),), wrapper=("env",))
                await there.trials.run(trial, tmp_path / "1")
                assert not list((there.scratch / "trials").glob("*/spare"))
            await listed(there, tmp_path / "1", many(there))
            spare = list((there.scratch / "trials").glob("*/spare"))
            assert len(spare) == 1
            answer = await there.link.request("forget", {"trials": [spare[0].parent.name]}, 10)
            while answer["left"]:
                answer = await there.link.request("forget", {"trials": answer["left"]}, 10)
            assert list((there.scratch / "trials").iterdir()) == []

    run(main())
