"""Scratch folders that cannot be used, and keeping the one that can small."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_trials import greet
from tests.remote.agents import agent, linked, run

NAMESPACES = (
    shutil.which("unshare") is not None and subprocess.run(["unshare", "-rm", "true"]).returncode == 0
)
mounts = pytest.mark.skipif(not NAMESPACES, reason="no mount namespaces here")


def mounted(folder: Path, options: str, then: str = "true") -> tuple[str, ...]:
    """Words that start the agent where a small file system of its own lies on `folder`."""
    folder.mkdir()
    script = f'mount -t tmpfs -o mode=700,{options} tmpfs "$0" && {then} && exec "$@"'
    return ("unshare", "-rm", "sh", "-c", script, str(folder))


async def refused(scratch: Path, *before: str) -> TargetFault:
    async with linked(scratch, *before) as (link, _, _):
        with pytest.raises(TargetFault) as caught:
            await greet(link)
        return caught.value


def test_it_is_made_when_it_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "a" / "b" / "s") as there:
            assert there.scratch == tmp_path / "a" / "b" / "s"
            assert there.scratch.stat().st_mode & 0o777 == 0o700
            assert there.greeting.free_bytes > 0

    run(main())


def test_a_tilde_is_the_remote_users_home(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent("~/it's é", env={"HOME": str(tmp_path)}) as there:
            assert there.scratch == tmp_path / "it's é"

    run(main())


def test_folders_that_are_not_ours_alone_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "open").mkdir(mode=0o755)
        (tmp_path / "own").mkdir(mode=0o700)
        (tmp_path / "link").symlink_to("own")
        (tmp_path / "file").write_text("")
        for name, words in (("open", "others may enter"), ("link", "is a link"), ("file", "is no folder")):
            fault = await refused(tmp_path / name)
            assert fault.stage == "scratch"
            assert words in fault.sentence and str(tmp_path / name) in fault.sentence
        fault = await refused(tmp_path / "file" / "below")
        assert f"{tmp_path / 'file'} is no folder" in fault.sentence

    run(main())


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders away")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "s").mkdir(mode=0o700)
        os.chown(tmp_path / "s", 4711, 4711)
        assert "belongs to user 4711, we are 0" in (await refused(tmp_path / "s")).sentence

    run(main())


@mounts
def test_a_full_disk_is_told_with_what_is_free(tmp_path: Path) -> None:
    async def main() -> None:
        fill = 'dd if=/dev/zero of="$0/fill" bs=64k 2>/dev/null; true'
        fault = await refused(tmp_path / "s", *mounted(tmp_path / "s", "size=1m", fill))
        assert fault.stage == "scratch"
        assert "No space left on device (0.0 MB and " in fault.sentence

    run(main())


@mounts
@pytest.mark.parametrize(
    ("options", "then", "words"),
    [
        ("size=1m", 'mount -o remount,ro "$0"', "it is mounted read-only"),
        ("size=1m,noexec", "true", "runs no programs (noexec)"),
        ("size=1m,nr_inodes=3", "true", "No space left on device"),
    ],
)
def test_what_else_a_file_system_refuses(tmp_path: Path, options: str, then: str, words: str) -> None:
    async def main() -> None:
        fault = await refused(tmp_path / "s", *mounted(tmp_path / "s", options, then))
        assert fault.stage == "scratch" and words in fault.sentence

    run(main())


@mounts
def test_a_workspace_that_does_not_fit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=2m")) as there:
            trial = there.trial("true", files={"large": os.urandom(4_000_000)})
            with pytest.raises(TargetFault, match=r"needs 4\.0 MB, [12]\.\d MB free on /") as caught:
                await there.trials.run(trial, tmp_path / "1")
            assert caught.value.stage == "scratch"
            assert there.channel.sent_bytes < 100_000

    run(main())


@mounts
def test_a_workspace_of_too_many_files_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=8m,nr_inodes=60")) as there:
            trial = there.trial("true", files={str(number): b"%d" % number for number in range(100)})
            with pytest.raises(TargetFault, match=r"needs 100 files, \d+ inodes free"):
                await there.trials.run(trial, tmp_path / "1")

    run(main())


@mounts
def test_a_disk_that_fills_up_while_files_arrive_is_told_by_its_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=2m")) as there:
            content = os.urandom(4_000_000)
            file = there.held.file("large", content)
            with pytest.raises(TargetFault, match="No space left on device") as caught:
                await there.trials.sync.put([file.sha256], {file.sha256: file.size})
            assert caught.value.stage == "scratch"
            kept = await there.link.request("kept", {}, 10)
            assert kept["blob_files"] == 0

    run(main())


@mounts
def test_a_trial_that_fills_the_disk_has_an_outcome_all_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=2m")) as there:
            script = "dd if=/dev/zero of=fill bs=64k 2>/dev/null; yes | head -c 300000; exit 5"
            collected = await there.trials.run(there.trial("sh", "-c", script), tmp_path / "1")
            assert collected.ended.exit_code == 5
            assert collected.ended.stdout_lost > 0

    run(main())


def test_cleaning_removes_old_trials_and_contents_beyond_the_quota(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = there.trial("true", files={str(number): os.urandom(10_000) for number in range(10)})
            await there.trials.run(trial, tmp_path / "1")
            kept = await there.link.request("kept", {}, 10)
            assert (kept["blob_files"], kept["blob_bytes"], kept["trials"]) == (10, 100_000, {"ended": 1})
            fields = {"most_bytes": 35_000, "trials_older_than_s": 3600}
            answer = await there.link.request("clean", fields, 10)
            assert (answer["after"]["blob_files"], answer["after"]["trials"]) == (3, {"ended": 1})
            fields = {"most_bytes": 0, "trials_older_than_s": 0}
            answer = await there.link.request("clean", fields, 10)
            while answer["after"]["trials"]:  # the last trial may just be cleared up
                answer = await there.link.request("clean", fields, 10)
            assert answer["after"]["blob_files"] == 0
            again = there.trial("sh", "-c", "cat 3 | wc -c", trees=trial.trees)
            await there.trials.run(again, tmp_path / "2")
            assert (tmp_path / "2" / "stdout").read_text().strip() == "10000"

    run(main())


def test_what_a_dead_agent_was_just_writing_is_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            file = there.held.file("f", b"x" * 100)
            number, _ = there.link.begin()
            rows = [[file.sha256, 0, 50, 100]]
            await there.link.send(number, "put", {"blobs": rows, "end": False}, b"x" * 50)
            await there.link.request("ping", {}, 10)
            there.process.kill()
            await there.process.wait()
            assert len(unfinished(tmp_path)) == 1
        async with agent(tmp_path / "s"):
            assert unfinished(tmp_path) == []

    run(main())


def unfinished(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "s" / "blobs").glob(".tmp-*")]


def test_two_agents_use_one_scratch_folder(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as one, agent(tmp_path / "s") as two:
            files = {str(number): os.urandom(1000) for number in range(50)}
            runs = [
                each.trials.run(each.trial("sh", "-c", "ls | wc -l", files=files), tmp_path / str(number))
                for number, each in enumerate((one, two))
            ]
            await asyncio.gather(*runs)
            assert [(tmp_path / name / "stdout").read_text().strip() for name in "01"] == ["50", "50"]

    run(main())
