"""Links, clients, clocks and machines that go in the middle of something."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.deck import Done, wait_until
from tests.host.hosting import host_pid
from tests.remote.agents import run
from tests.remote.connecting import wait_until_gone
from tests.remote.far import (
    PYTHON,
    Before,
    Far,
    Ground,
    check_nothing_left,
    ended,
    fifo_read,
    pipes,
    processes_of,
    settled_ground,
    waiting_kernel,
)
from tests.remote.proxy import Proxy, proxying
from tests.remote.sshd import descendants, kill_all
from tests.remote.test_target_links import cmdline

SHORT_LEASE = (
    "import functools, core.targets.ssh.target as target\n"
    "target.RemoteTrial = functools.partial(target.RemoteTrial, lease_s={})"
)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Ground]:
    with settled_ground(tmp_path_factory.mktemp("ground"), keys) as made:
        yield made


def test_a_link_cut_while_files_are_sent_is_made_anew(ground: Ground, tmp_path: Path) -> None:
    """The trial runs once, and with whole files."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            for name in ("one", "two"):
                far.deck.write(name, os.urandom(2_500_000))
            far.deck.kernel(f"echo once >> {tmp_path}/log; score=$(cat one two | wc -c)")
            proxy.cut_after_up, proxy.only_once = 3_500_000, True
            before = Before.of(far)
            done = await ended(await far.start("run", "--json"))
            assert done.code == 0 and done.answer["score"] == 5_000_000, done.said
            assert proxy.cut_after_up is None, "the link was not cut"
            assert (tmp_path / "log").read_text() == "once\n"
            before.check_unharmed(1)

    run(main())


def test_a_link_cut_for_good_while_files_are_sent(ground: Ground, tmp_path: Path) -> None:
    """Every way back is cut too; only whole files lie over there afterwards."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            for name in ("one", "two"):
                far.deck.write(name, os.urandom(1_500_000))
            proxy.cut_after_up = 2_000_000
            before = Before.of(far)
            done = await ended(await far.start("verify", "--json"))
            before.check_pending(done, "lost", "the link to ssh:gpu was lost (", "closed the connection")
            wait_until_gone(ground.server)
            for path in (far.scratch / "blobs").rglob("*"):
                assert path.is_dir() or hashlib.sha256(path.read_bytes()).hexdigest() == path.name

    run(main())


def test_a_link_cut_in_mid_run(ground: Ground, tmp_path: Path) -> None:
    """The trial survives, its result is collected, and the history has it once."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(f"echo once >> {tmp_path}/log\n" + waiting_kernel(runs, go, 77))
            before = Before.of(far)
            process = await far.start("run", "--mode", "final", "--json")
            await fifo_read(runs)
            proxy.cut()
            await asyncio.to_thread(go.write_text, "go\n")
            done = await ended(process)
            assert done.code == 0 and done.answer["score"] == 77, done.said
            assert (tmp_path / "log").read_text() == "once\n"
            assert far.trials()[before.trials :] == [("ok", "")]
            before.check_unharmed(1)

    run(main())


def test_a_machine_that_was_restarted_in_mid_run(ground: Ground, tmp_path: Path) -> None:
    """A restart as it shows afterwards: every process gone, and the boot on record is not this one."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(waiting_kernel(runs, go, 300))
            before = Before.of(far)
            process = await far.start("verify", "--json")
            await fifo_read(runs)
            proxy.down = True
            restart(ground, far)
            proxy.cut()
            proxy.down = False
            done = await ended(process)
            before.check_pending(done, "lost", "its watchdog was ended: the machine was restarted")

    run(main())


def test_a_link_that_stays_away_for_longer_than_the_lease(ground: Ground, tmp_path: Path) -> None:
    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(waiting_kernel(runs, go, 300))
            before = Before.of(far)
            process = await far.start("verify", "--json", change=SHORT_LEASE.format(0.1))
            await fifo_read(runs)
            (home,) = (far.scratch / "trials").iterdir()
            proxy.down = True
            proxy.cut()
            await asyncio.to_thread(wait_until, (home / "outcome.json").exists, "the end of the lease")
            proxy.down = False
            done = await ended(process)
            words = "ssh:gpu ended the trial: nobody had been connected for too long"
            before.check_pending(done, "lost", words)

    run(main())


def test_a_link_that_is_cut_again_and_again(ground: Ground, tmp_path: Path) -> None:
    """While the result is waited for: the trial runs once all the same."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(f"echo once >> {tmp_path}/log\n" + waiting_kernel(runs, go, 77))
            before = Before.of(far)
            process = await far.start("run", "--mode", "final", "--json")
            await fifo_read(runs)
            for _ in range(3):
                await cut_and_back(ground, proxy)
            await asyncio.to_thread(go.write_text, "go\n")
            done = await ended(process)
            assert done.code == 0 and done.answer["score"] == 77, done.said
            assert (tmp_path / "log").read_text() == "once\n"
            before.check_unharmed(1)

    run(main())


def test_links_of_which_none_holds_are_given_up(ground: Ground, tmp_path: Path) -> None:
    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(waiting_kernel(runs, go, 300))
            before = Before.of(far)
            process = await far.start("verify", "--json")
            await fifo_read(runs)
            ending = asyncio.create_task(ended(process))
            cuts = 0
            while not ending.done():  # one that comes while a link is still being made may count for nothing
                await cut_and_back(ground, proxy, ending.done)
                cuts += 1
            done = await ending
            assert cuts > 6
            words = ("the link to ssh:gpu was lost (the connection", "and then: ")
            before.check_pending(done, "lost", *words, others_run=True)
            await asyncio.to_thread(go.write_text, "go\n")
            (home,) = (far.scratch / "trials").iterdir()
            await asyncio.to_thread(wait_until, (home / "outcome.json").exists, "the trial's end")

    run(main())


async def cut_and_back(ground: Ground, proxy: Proxy, given_up: Callable[[], bool] = lambda: False) -> None:
    """Cut every connection, and wait for an agent on a new one."""
    before = set(agents(ground))
    proxy.cut()
    await asyncio.to_thread(
        wait_until, lambda: bool(set(agents(ground)) - before) or given_up(), "another agent"
    )


def agents(ground: Ground) -> list[int]:
    return [pid for pid in ground.server.children() if b"bytes.fromhex" in cmdline(pid)]


def test_a_link_cut_before_any_trial_names_the_machine(ground: Ground, tmp_path: Path) -> None:
    far = ground.far(tmp_path)
    before = Before.of(far)
    cut = (
        "import core.targets.ssh.host as host\n"
        "async def cut(self, link, smi):\n"
        "    await self._connections.close()\n"
        "    return await link.request('facts', {}, 5)\n"
        "host.SshHost._ask_facts = cut"
    )
    done = asyncio.run(to_its_end(far, cut))
    error = before.check_not_begun(done, "lost", "ssh:gpu: the connection")
    assert error["hint"] == "run it again: no trial was begun"


async def to_its_end(far: Far, change: str) -> Done:
    return await ended(await far.start("verify", "--json", change=change))


def restart(ground: Ground, far: Far) -> None:
    (home,) = (far.scratch / "trials").iterdir()
    kill_all({*processes_of(home), *descendants(ground.server.pid)})
    wait_until_gone(ground.server)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for file in (home / "about.json", far.scratch / "boot"):
        text = file.read_text()
        assert boot in text
        file.write_text(text.replace(boot, "an-earlier-boot"))


@pytest.mark.parametrize("days", [1, -1])
def test_a_clock_that_is_a_day_off(ground: Ground, tmp_path: Path, days: int) -> None:
    """And jumps another day in mid-run: same contract, same decision, no limit goes by such a clock."""
    jumped = tmp_path / "jumped"
    python = skewed_python(tmp_path / "bin", days, jumped)

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            far.describe(python=str(python))
            runs, go = pipes(tmp_path)
            waits = f": > {tmp_path}/seen; {waiting_kernel(runs, go, 50)}"
            far.deck.kernel(f"test -e {tmp_path}/seen || {{ {waits}\n}}\nscore=50")
            before = Before.of(far)
            process = await far.start("verify", "--json", change=SHORT_LEASE.format(30))
            await fifo_read(runs)
            (home,) = (far.scratch / "trials").iterdir()
            began_s = json.loads((home / "about.json").read_text())["began_s"]
            assert abs(began_s - time.time() - days * 86400) < 3600
            jumped.touch()
            proxy.down = True
            proxy.cut()
            # Not the keeper of the trial, which is below the agent as long as that lives.
            await asyncio.to_thread(wait_until, lambda: not agents(ground), "the agent's end")
            proxy.down = False
            await asyncio.to_thread(go.write_text, "go\n")
            done = await ended(process)
            assert done.code == 0 and done.answer["outcome"] == "kept", done.said
            assert done.answer["other_contracts"] == [] and done.answer["gate"]["accepted"]
            assert abs(far.deck.seen()["best"]["since_s"] - time.time()) < 3600
            assert {status for status, _ in far.trials()[before.trials :]} == {"ok"}
            check_nothing_left(far)

    run(main())


def skewed_python(folder: Path, days: int, jumped: Path) -> Path:
    """An interpreter with another time.time for the program that it is given; python3 beside is as ever."""
    folder.mkdir()
    (folder / "python3").symlink_to(PYTHON)
    off_s = f"{days * 86400} * (1 + os.path.exists('{jumped}'))"
    program = f"import os, time; now = time.time; time.time = lambda: now() + {off_s}; $7"
    path = folder / "skewed"
    path.write_text(f'#!/bin/sh\ncode="{program}"\nexec {PYTHON} -X utf8 -I -S -u -c "$code"\n')
    path.chmod(0o755)
    return path


def test_a_command_and_its_host_that_are_killed_in_mid_run(ground: Ground, tmp_path: Path) -> None:
    """The lease ends the trial; the next command cancels it in the history and goes on as if it never was."""

    async def main() -> None:
        far = ground.far(tmp_path)
        runs, go = pipes(tmp_path)
        far.deck.kernel(waiting_kernel(runs, go, 1))
        before = Before.of(far)
        process = await far.start("verify", "--json", change=SHORT_LEASE.format(0.2))
        await fifo_read(runs)
        (home,) = (far.scratch / "trials").iterdir()
        mine = processes_of(home)
        assert len(mine) > 1
        os.kill(host_pid(far.deck.root), signal.SIGKILL)
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in mine), "the end of the trial")
        wait_until_gone(ground.server)
        assert json.loads((home / "outcome.json").read_text())["ended_by"] == "lease"
        assert far.deck.files() == before.files and not (home / "work").exists()
        far.deck.kernel("score=300")
        assert far.deck.json("verify", env=far.env, code=1)["outcome"] == "restored"
        assert far.trials()[before.trials] == ("cancelled", "")
        far.deck.run("target", "clean", "gpu", env=far.env)
        check_nothing_left(far)

    run(main())


def test_a_reader_that_stalls_does_not_hold_the_trial(ground: Ground, tmp_path: Path) -> None:
    """It ends while nothing gets through; what it wrote is read when the link flows again."""

    async def main() -> None:
        async with proxying(ground.server.port) as proxy:
            far = ground.far(tmp_path, port=proxy.port)
            runs, go = pipes(tmp_path)
            flood = "yes a-line-of-output | head -c 20000000 >&2"
            far.deck.kernel(f"{waiting_kernel(runs, go, 42)}\n{flood}\n: > {tmp_path}/ended")
            before = Before.of(far)
            process = await far.start("run", "--json")
            await fifo_read(runs)
            proxy.stall()
            await asyncio.to_thread(go.write_text, "go\n")
            await asyncio.to_thread(wait_until, (tmp_path / "ended").exists, "the trial's end")
            proxy.flow()
            done = await ended(process)
            assert done.code == 0 and done.answer["score"] == 42, done.said
            before.check_unharmed(1)

    run(main())
