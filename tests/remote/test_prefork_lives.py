"""Forked trials and their parents on the remote side: who waits for whom, and who outlives whom."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from core.errors import TargetFault
from tests.cli.deck import wait_until
from tests.remote.agents import Running, agent, run
from tests.remote.forking import forked, heavy, parents, told
from tests.remote.test_agent_links import begun, open_gate
from tests.targets.bench import ends


def waits_for(gate: Path) -> str:
    """The source of a module whose import waits until somebody opens the pipe."""
    os.mkfifo(gate)
    return f"open({str(gate)!r}).read()"


async def importing(there: Running) -> None:
    async with asyncio.timeout(20):
        while not parents(there):
            await there.link.request("ping", {}, 10)


def test_the_agent_answers_while_a_parent_imports(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        async with agent(tmp_path / "s") as there:
            waiting = [
                asyncio.create_task(there.trials.run(forked(there, modules), tmp_path / f"{number}"))
                for number in (1, 2)
            ]
            await importing(there)
            other = await there.trials.run(there.script("print('other')"), tmp_path / "other")
            assert told(other) == (False, "other", "")
            rows = (await there.link.request("trials", {}, 10))["trials"]
            assert [row["state"] for row in rows if row["trial"] != ""].count("running") == 2
            await asyncio.to_thread(open_gate, tmp_path / "import")
            for collected in await asyncio.gather(*waiting):
                assert told(collected) == (True, "True fresh", "")
            assert len(parents(there)) == 1

    run(main())


@pytest.mark.parametrize("word", [b"[]", b"1", b"null", b"[" * 60000, b"\xff"])
def test_a_word_that_makes_no_sense_is_no_reason_to_end(tmp_path: Path, modules: Path, word: bytes) -> None:
    """What imports write where their parent is heard."""

    async def main() -> None:
        attempt = f"    try: os.write(n, {word!r})\n    except OSError: pass"
        heavy(modules, f"import os\nfor n in range(3, 20):\n{attempt}")
        async with agent(tmp_path / "s") as there:
            collected = await there.trials.run(forked(there, modules, "print('ran')"), tmp_path / "out")
            assert told(collected)[:2] == (False, "ran")
            assert await there.link.request("ping", {}, 10) is not None

    run(main())


def test_a_trial_that_waits_for_a_parent_can_be_cancelled(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules)
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "1"))
            await importing(there)
            assert await there.trials.cancel(trial.id)
            collected = await task
            assert collected.ended.ended_by == "cancel" and collected.outcome["forked"] is False
            (parent,) = parents(there)
        assert ends(parent), "it was still importing"

    run(main())


def test_a_trial_that_waits_goes_on_without_its_agent(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, "import os; open(os.environ['GATE']).read(); print('ran')",
                           env={"GATE": str(tmp_path / "gate")})  # fmt: skip
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "1"))
            await importing(there)
            (parent,) = parents(there)
        with pytest.raises(TargetFault):
            await task
        assert ends(parent)
        async with agent(tmp_path / "s") as there:
            attached = asyncio.create_task(there.trials.attach(trial.id, tmp_path / "2", 30))
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            assert told(await attached) == (False, "ran", "")

    run(main())


def test_a_forked_trial_outlives_its_killed_agent_and_parent(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, env={"GATE": str(tmp_path / "gate")})
            task = await begun(there, trial, tmp_path / "1")
            (parent,) = parents(there)
            there.process.kill()
            with pytest.raises(TargetFault):
                await task
            assert await asyncio.to_thread(ends, parent)
        async with agent(tmp_path / "s") as there:
            attached = asyncio.create_task(there.trials.attach(trial.id, tmp_path / "2", 30))
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            collected = await attached
            assert told(collected) == (True, "True fresh", "") and collected.ended.clean
            assert (tmp_path / "2" / "result").exists()

    run(main())


def test_a_parent_that_was_killed_is_replaced(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            await there.trials.run(forked(there, modules), tmp_path / "1")
            (parent,) = parents(there)
            os.kill(parent, signal.SIGKILL)
            await asyncio.to_thread(ends, parent)
            for number in (2, 3):
                collected = await there.trials.run(forked(there, modules), tmp_path / f"{number}")
                assert (tmp_path / f"{number}" / "result").exists()
            assert told(collected) == (True, "True fresh", "")
            assert parents(there) != [parent]

    run(main())


STOPS = """
import os, signal, sys
def above(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
print("heavy" in sys.modules, above(os.getppid()))
if "heavy" in sys.modules:
    os.kill(above(os.getppid()), signal.SIGSTOP)
"""


@pytest.mark.parametrize("killed", [False, True], ids=["leaves", "is killed"])
def test_a_parent_that_a_trial_has_stopped_is_replaced_and_ends_with_the_agent(
    tmp_path: Path, modules: Path, killed: bool
) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            seen = []
            for number in (1, 2, 3):
                collected = await there.trials.run(forked(there, modules, STOPS), tmp_path / f"{number}")
                assert collected.ended.exit_code == 0
                seen.append((tmp_path / f"{number}" / "stdout").read_text().split())
            assert [loaded for loaded, _ in seen] == ["True", "False", "True"]
            first, last = int(seen[0][1]), int(seen[2][1])
            assert first != last and await asyncio.to_thread(ends, first)
            if killed:
                there.process.kill()
        assert ends(last)

    run(main())


HANGS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
forked = os.fork()
if forked == 0:
    os.setsid()
    time.sleep(600)
with open(os.environ["PIDS"], "w") as file:
    print(os.getpid(), child.pid, forked, os.getppid(), file=file)
os.rename(os.environ["PIDS"], os.environ["PIDS"] + ".whole")
time.sleep(600)
"""


def pids_told(path: Path) -> list[int]:
    whole = path.with_suffix(".whole")
    wait_until(whole.exists, "the trial's processes")
    return [int(word) for word in whole.read_text().split()]


def test_a_time_out_ends_a_forked_trial_and_its_grandchildren(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            trial = forked(
                there, modules, HANGS, env={"PIDS": str(tmp_path / "pids")}, wall_s=0.5, grace_s=0.2
            )
            collected = await there.trials.run(trial, tmp_path / "out")
            assert collected.ended.ended_by == "timeout" and collected.outcome["forked"] is True
            assert all(ends(pid) for pid in pids_told(tmp_path / "pids")[:3])

    run(main())


def test_what_a_killed_keeper_leaves_of_a_forked_trial_is_ended(tmp_path: Path, modules: Path) -> None:
    """Its forked processes carry the parent's environment; they work in the trial's tree."""

    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, HANGS, env={"PIDS": str(tmp_path / "pids")})
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "out"))
            *pids, keeper = await asyncio.to_thread(pids_told, tmp_path / "pids")
            os.kill(keeper, signal.SIGKILL)
            collected = await task
            assert collected.outcome["stage"] == "lost"
            assert all(ends(pid) for pid in pids)

    run(main())


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.chdir("/")
    os.closerange(0, 1000)
    if os.fork():
        os._exit(0)
    with open(os.environ["PIDS"], "w") as file:
        print(os.getpid(), file=file)
    os.rename(os.environ["PIDS"], os.environ["PIDS"] + ".whole")
    time.sleep(600)
while not os.path.exists(os.environ["PIDS"] + ".whole"):
    time.sleep(0.01)
os.kill(os.getppid(), 9)
time.sleep(600)
"""


def test_a_daemon_of_a_forked_trial_is_ended_when_its_keeper_is_killed(tmp_path: Path, modules: Path) -> None:
    """Nothing of it names the trial: it was left to the parent. Another's keeper is none of that."""

    async def main() -> None:
        heavy(modules)
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            env = {"GATE": str(tmp_path / "gate"), "PIDS": str(tmp_path / "pids")}
            waits = await begun(there, forked(there, modules, env=env), tmp_path / "other")
            trial = forked(there, modules, DAEMON, env=env)
            collected = await there.trials.run(trial, tmp_path / "out")
            assert collected.outcome["stage"] == "lost"
            (daemon,) = await asyncio.to_thread(pids_told, tmp_path / "pids")
            assert await asyncio.to_thread(ends, daemon)
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            await waits
            assert len(parents(there)) == 1
        assert (tmp_path / "other" / "stdout").read_text() == "True fresh\n"

    run(main())
