"""The scratch folder stays below its limit by itself, and a full disk is cleaned before it is a fault."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_sync import RemoteSync
from core.targets.ssh.remote_trials import RemoteTrials, greet
from tests.cli.deck import REPO, Deck, wait_until
from tests.remote.agents import Held, Running, agent, linked, run
from tests.remote.conftest import Serve
from tests.remote.far import far_of
from tests.remote.sshd import User
from tests.remote.test_agent_scratch import mounted, mounts

CONTENT_BYTES = 100_000


@asynccontextmanager
async def limited(scratch: Path, limit_bytes: int, young_s: float = 0.0) -> AsyncIterator[Running]:
    async with linked(scratch) as (link, channel, process):
        locks = f"{scratch}-locks"
        greeting = await greet(link, locks=locks, limit_bytes=limit_bytes, young_s=young_s)
        held = Held()
        yield Running(process, channel, link, greeting, RemoteTrials(link, RemoteSync(link, held)), held)


async def put(there: Running, *contents: bytes) -> list[str]:
    files = [there.held.file(str(number), content) for number, content in enumerate(contents)]
    await there.trials.sync.put([file.sha256 for file in files], {file.sha256: file.size for file in files})
    return [file.sha256 for file in files]


def kept(scratch: Path) -> set[str]:
    return {path.name for path in (scratch / "blobs").rglob("?" * 64)}


def counted(scratch: Path) -> list[str]:
    path = scratch / "held"
    return path.read_text().splitlines() if path.exists() else []


def counted_anew(scratch: Path, before: list[str]) -> int:
    """The bytes that the next counting found."""
    now: list[str] = []

    def is_new() -> bool:
        now[:] = counted(scratch)
        return len(now[0].split()) == 2 and now[0] not in before if now else False

    wait_until(is_new, "a counting")
    return int(now[0].split()[1])


def random_contents(count: int) -> list[bytes]:
    return [os.urandom(CONTENT_BYTES) for _ in range(count)]


def test_above_the_limit_the_longest_unused_go_until_a_fifth_is_free(tmp_path: Path) -> None:
    async def main() -> None:
        scratch = tmp_path / "s"
        async with limited(scratch, 10**9) as there:
            hashes = await put(there, *random_contents(10))
            assert counted_anew(scratch, []) == 0
        wait_until(lambda: len(counted(scratch)) == 2, "what was put")
        used_again = scratch / "blobs" / hashes[0][:2] / hashes[0]
        used_again.chmod(0o444)
        before = counted(scratch)
        async with limited(scratch, 5 * CONTENT_BYTES):
            assert counted_anew(scratch, before) == 4 * CONTENT_BYTES
        assert kept(scratch) == {hashes[0], *hashes[7:]}

    run(main())


def test_what_was_used_lately_is_spared_and_used_means_used_by_any_trial(tmp_path: Path) -> None:
    async def main() -> None:
        scratch = tmp_path / "s"
        async with agent(scratch) as there:
            hashes = await put(there, *random_contents(3))
        async with limited(scratch, CONTENT_BYTES, young_s=900):
            assert counted_anew(scratch, []) == 3 * CONTENT_BYTES
        assert kept(scratch) == set(hashes)

    run(main())


def test_a_greeting_counts_at_most_once_an_hour(tmp_path: Path) -> None:
    async def main() -> None:
        scratch = tmp_path / "s"
        async with limited(scratch, 10**9):
            counted_anew(scratch, [])
        first = counted(scratch)[0]
        for _ in range(2):
            async with limited(scratch, 10**9) as there:
                await put(there, *random_contents(1))
        assert counted(scratch) == [first, str(CONTENT_BYTES), str(CONTENT_BYTES)]
        for hours in (-1.1, 1.1):  # a clock that was put back counts as old
            (scratch / "held").write_text(f"{time.time() + 3600 * hours} 0\n")
            before = counted(scratch)
            async with limited(scratch, 10**9):
                assert counted_anew(scratch, before) == 2 * CONTENT_BYTES

    run(main())


def test_what_another_agent_cleaned_is_asked_for_again_and_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            files = {"a": os.urandom(2_000_000), "b": b"b"}
            await there.trials.run(there.trial("true", files=files), tmp_path / "1")
            async with agent(tmp_path / "s") as other:
                await other.link.request("clean", {"most_bytes": 0, "trials_older_than_s": 1e9}, 10)
            assert kept(tmp_path / "s") == set()
            again = there.trial("sh", "-c", "cat a b | wc -c", files=files)
            assert (await there.trials.run(again, tmp_path / "2")).ended.exit_code == 0
            assert (tmp_path / "2" / "stdout").read_text().strip() == "2000001"

    run(main())


@mounts
def test_a_full_disk_is_cleaned_for_a_workspace_that_then_fits(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=4m")) as there:
            for number, size in enumerate((2_500_000, 2_600_000, 2_500_000)):
                trial = there.trial("sh", "-c", "cat large | wc -c", files={"large": os.urandom(size)})
                collected = await there.trials.run(trial, tmp_path / str(number))
                assert collected.ended.exit_code == 0
                assert (tmp_path / str(number) / "stdout").read_text().strip() == str(size)
                await forgotten(there, trial.id)
            assert (await there.link.request("kept", {}, 10))["blob_files"] == 1

    run(main())


@mounts
def test_a_full_disk_is_cleaned_before_a_workspace_is_said_not_to_fit(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=4m")) as there:
            for _ in range(2):
                await there.trials.sync.offer(there.held.tree({"large": os.urandom(2_500_000)}))
            assert (await there.link.request("kept", {}, 10))["blob_bytes"] == 2_500_000

    run(main())


async def forgotten(there: Running, trial: str) -> None:
    """Its tree, which holds the content's blocks, is gone."""
    while (await there.link.request("forget", {"trials": [trial]}, 10))["left"]:
        pass


@mounts
def test_a_disk_that_fills_up_while_files_arrive_is_cleaned_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=4m")) as there:
            await there.trials.sync.offer(there.held.tree({}))
            await put(there, os.urandom(2_500_000))
            await there.trials.sync.offer(there.held.tree({}))  # the content is nobody's now
            (newer,) = await put(there, os.urandom(2_500_000))
            left = await there.link.request("kept", {}, 10)
            assert (left["blob_files"], left["blob_bytes"]) == (1, 2_500_000)
            assert there.held.by_hash.keys() >= {newer}

    run(main())


@mounts
def test_nothing_that_the_sync_itself_names_is_removed(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=4m")) as there:
            small = os.urandom(1_500_000)
            await there.trials.sync.offer(there.held.tree({"small": small}))
            both = there.held.tree({"small": small, "large": os.urandom(3_000_000)})
            with pytest.raises(TargetFault, match=r"needs 3\.0 MB"):
                await there.trials.sync.offer(both)
            assert (await there.link.request("kept", {}, 10))["blob_bytes"] == 1_500_000

    run(main())


@mounts
@pytest.mark.parametrize("size", [300_000, 700_000, 1_000_000])
def test_a_content_that_is_taken_in_part_is_not_taken(tmp_path: Path, size: int) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", f"size={size - 50_000}")) as there:
            with pytest.raises(TargetFault, match="No space left on device") as caught:
                await put(there, os.urandom(size))
            assert caught.value.stage == "scratch"
            assert (await there.link.request("kept", {}, 10))["blob_files"] == 0

    run(main())


@mounts
def test_a_disk_full_of_our_own_contents_is_cleaned_at_the_greeting(tmp_path: Path) -> None:
    async def main() -> None:
        fill = 'mkdir -m 700 "$0/blobs" && { dd if=/dev/zero of="$0/blobs/old" bs=64k 2>/dev/null; true; }'
        async with agent(tmp_path / "s", *mounted(tmp_path / "s", "size=1m", fill)) as there:
            assert there.greeting.free_bytes > 900_000

    run(main())


def test_a_targets_limit_reaches_its_machine_and_old_trials_go_first(
    tmp_path: Path, user: User, serve: Serve
) -> None:
    far = far_of(tmp_path, user, serve())
    far.describe(scratch_limit_mb=1)
    old, lately = "a" * 32, "b" * 32
    for trial, age_s in ((old, 90_000), (lately, 3_600)):
        home = far.scratch / "trials" / trial
        home.mkdir(parents=True)
        (home / "stdout").write_bytes(b"x" * 2_000_000)
        (home / "outcome.json").write_text("{}")
        (home / "about.json").write_text(json.dumps({"began_s": time.time() - age_s}))
    for folder in (far.scratch, far.scratch / "trials"):
        folder.chmod(0o700)
    assert far.deck.json("run", env=far.env)["score"] == 100
    assert 2_000_000 <= counted_anew(far.scratch, []) < 2_100_000
    assert [path.name for path in (far.scratch / "trials").iterdir()] == [lately]


def test_the_limits_are_kept_with_the_target(deck: Deck, tmp_path: Path) -> None:
    env: dict[str, str | None] = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    deck.run("target", "add", "gpu", "box", "--scratch-limit-mb", "500", "--min-free-mb", "0", env=env)
    text = (tmp_path / "config/kerneldeck/targets.toml").read_text()
    assert "scratch_limit_mb = 500" in text and "min_free_mb = 0" in text
    assert deck.json("target", "list", env=env)["targets"][0]["name"] == "gpu"
    path = tmp_path / "config/kerneldeck/targets.toml"
    path.write_text(text.replace("= 500", "= -1"))
    assert "scratch_limit_mb: -1.0 is not a number of megabytes" in deck.fault("target", "list", env=env)


def test_a_content_that_is_used_is_marked_without_a_change_of_its_own_time(tmp_path: Path) -> None:
    """The time of its last change says whether a trial wrote into it."""
    sha256 = "ab" * 32
    blob = tmp_path / "blobs" / "ab" / sha256
    blob.parent.mkdir(parents=True)
    blob.write_text("x")
    blob.chmod(0o444)
    os.utime(blob, ns=(10**18, 10**18))
    before = blob.stat()
    program = (
        "import agent_store; agent_store.LOOKED_AT_AGAIN_AFTER_S = -1.0;"
        f" print(agent_store.Store().missing(['{sha256}', '{'cd' * 32}']))"
    )
    assert said_in(tmp_path, program) == str(["cd" * 32])
    after = blob.stat()
    assert after.st_ctime_ns > before.st_ctime_ns
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)


@pytest.mark.parametrize(
    ("age_s", "lines", "is_due"),
    [
        (10, "500", False),
        (10, "900\n200", True),  # above 1000 since it was counted
        (10, "1500", False),  # nothing more could go then, and nothing has come
        (10, "1500\n5", False),
        (10, "1500\n50", True),
        (4000, "500", True),
        (10, "no number", True),
    ],
)
def test_when_it_is_time_to_count(tmp_path: Path, age_s: float, lines: str, is_due: bool) -> None:
    (tmp_path / "held").write_text(f"{time.time() - age_s} {lines}\n")
    assert said_in(tmp_path, "import agent_quota; print(agent_quota.is_due(1000))") == str(is_due)


def test_links_to_kept_contents_are_counted_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            files = {f"f{number}": os.urandom(1000) for number in range(300)}
            await there.trials.run(there.trial("true", files=files), tmp_path / "out")
            wait_until(lambda: [*(there.scratch / "trials").glob("*/spare")], "what is left of its tree")
            count = "import agent_quota; agent_quota.tend(10**9, 900); print(open('held').read())"
            assert 300_000 <= int(said_in(there.scratch, count).split()[1]) < 400_000

    run(main())


def test_a_trial_that_could_not_be_removed_frees_nothing(tmp_path: Path) -> None:
    home = tmp_path / "trials" / ("cd" * 16)
    home.mkdir(parents=True)
    (home / "outcome.json").write_text("{}")
    program = (
        "import agent_quota, agent_trials\ndef refuse(path):\n    raise PermissionError\n"
        "remove_tree, agent_trials.remove_tree = agent_trials.remove_tree, refuse\n"
        f"kept = agent_quota.Kept(0, 0.0, 'trials/{'cd' * 16}', 5)\n"
        "first = kept.remove()\nagent_trials.remove_tree = remove_tree\nprint(first, kept.remove())"
    )
    assert said_in(tmp_path, program) == "False True"


def said_in(folder: Path, program: str) -> str:
    """What a program with the agent's modules prints in a scratch folder."""
    env = {**os.environ, "PYTHONPATH": f"{REPO}/core/targets/ssh:{REPO}/core/targets"}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()
