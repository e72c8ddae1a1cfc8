"""Links that break: a trial survives agent and connection, is collected later, or ends with its lease."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_trials import RemoteTrial, RemoteTrials
from tests.remote.agents import RESULT, Running, agent, processes_with, run

WAITING = (
    RESULT
    + """
import os
open(os.environ["GATE"]).read()
result(us=1.0)
print("done")
"""
)


def gated(there: Running, gate: Path, **more: object) -> RemoteTrial:
    """A trial that goes on when somebody writes to the pipe `gate`."""
    if not gate.exists():
        os.mkfifo(gate)
    return there.script(WAITING, env={"GATE": str(gate)}, **more)


async def begun(there: Running, trial: RemoteTrial, folder: Path) -> asyncio.Task[object]:
    started = asyncio.Event()
    task: asyncio.Task[object] = asyncio.create_task(there.trials.run(trial, folder, lambda _: started.set()))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return task


def open_gate(gate: Path) -> None:
    os.close(os.open(gate, os.O_WRONLY))


def test_a_trial_outlives_its_killed_agent_and_is_collected_by_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = gated(there, tmp_path / "gate")
            task = await begun(there, trial, tmp_path / "1")
            there.process.kill()
            with pytest.raises(TargetFault) as caught:
                await task
            assert caught.value.stage == "lost"
        async with agent(tmp_path / "s") as there:
            assert [row["state"] for row in (await there.link.request("trials", {}, 10))["trials"]] == [
                "running"
            ]
            attached = asyncio.create_task(there.trials.attach(trial.id, tmp_path / "2", 30))
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            collected = await attached
            assert collected.ended.clean and collected.ended.ended_by == "itself"
            assert (tmp_path / "2" / "stdout").read_text() == "done\n"
            assert (tmp_path / "2" / "result").exists()

    run(main())


def test_an_outcome_waits_for_a_client_that_comes_late(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = gated(there, tmp_path / "gate")
            task = await begun(there, trial, tmp_path / "1")
            watched = os.open(there.scratch / "trials" / trial.id / "alive", os.O_RDWR)
        with pytest.raises(TargetFault):
            await task
        await asyncio.to_thread(open_gate, tmp_path / "gate")
        await asyncio.to_thread(wait_until_cleared, watched)
        async with agent(tmp_path / "s") as there:
            for number in ("2", "3"):
                collected = await there.trials.attach(trial.id, tmp_path / number, 30)
                assert collected.ended.clean
                assert (tmp_path / number / "stdout").read_text() == "done\n"

    run(main())


def wait_until_cleared(alive: int) -> None:
    """The process that keeps a trial holds this lock until it has cleared up."""
    fcntl.flock(alive, fcntl.LOCK_EX)
    os.close(alive)


def test_a_run_that_is_asked_again_is_the_same_trial(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            count = tmp_path / "count"
            trial = there.trial("sh", "-c", 'echo once >> "$COUNT"', env={"COUNT": str(count)})
            await there.trials.run(trial, tmp_path / "1")
            again = RemoteTrials(there.link, there.trials.sync)
            assert (await again.run(trial, tmp_path / "2")).ended.clean
            assert count.read_text() == "once\n"

    run(main())


def test_a_trial_ends_when_nobody_is_connected_and_its_lease_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            mark = {"MARK": str(tmp_path)}
            trial = there.trial(
                "sh", "-c", "trap '' TERM; setsid sleep 600 & wait", env=mark, lease_s=0.3, grace_s=0.1
            )
            task = await begun(there, trial, tmp_path / "1")
            watched = os.open(there.scratch / "trials" / trial.id / "alive", os.O_RDWR)
            there.process.kill()
            with pytest.raises(TargetFault):
                await task
        await asyncio.to_thread(wait_until_cleared, watched)
        assert processes_with(f"MARK={tmp_path}") == []
        async with agent(tmp_path / "s") as there:
            collected = await there.trials.attach(trial.id, tmp_path / "2", 30)
            assert collected.ended.ended_by == "lease"

    run(main())


def test_an_agent_whose_client_falls_silent_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s", silence_s=0.2) as there:
            assert await there.process.wait() == 0

    run(main())


def test_a_link_that_ends_is_lost_and_never_a_success(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            task = await begun(there, gated(there, tmp_path / "gate", lease_s=0), tmp_path / "1")
            there.process.kill()
            with pytest.raises(TargetFault, match="the connection ended") as caught:
                await task
            assert caught.value.stage == "lost"
            with pytest.raises(TargetFault, match="the connection ended") as caught:
                await there.link.request("ping", {}, 5)
            assert caught.value.hint == "a trial that runs there goes on; its result is kept"

    run(main())


def test_a_link_that_ends_before_any_trial_tells_of_none(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            there.process.kill()
            with pytest.raises(TargetFault, match=r"^the machine: the connection ended\n") as caught:
                await there.link.request("facts", {}, 5)
            assert caught.value.hint == "run it again: no trial was begun"

    run(main())


def test_a_killed_watchdog_is_told_as_lost_and_leaves_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = there.trial("sh", "-c", "setsid sleep 600 & wait", env={"MARK": str(tmp_path)})
            task = await begun(there, trial, tmp_path / "1")
            kill_keeper(there)
            collected = await task
            with pytest.raises(TargetFault, match="its watchdog was ended") as caught:
                _ = collected.ended  # type: ignore[attr-defined]
            assert caught.value.stage == "lost"
            assert processes_with(f"MARK={tmp_path}") == []

    run(main())


def kill_keeper(there: Running) -> None:
    """The agent's only child in a session of its own."""
    children = Path(f"/proc/{there.process.pid}/task/{there.process.pid}/children").read_text().split()
    (keeper,) = children
    os.kill(int(keeper), signal.SIGKILL)


def test_what_a_dead_watchdog_left_is_ended_when_the_next_agent_is_greeted(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = there.trial("sh", "-c", "setsid sleep 600 & wait", env={"MARK": str(tmp_path)})
            task = await begun(there, trial, tmp_path / "1")
            os.kill(there.process.pid, signal.SIGSTOP)
            kill_keeper(there)
            os.kill(there.process.pid, signal.SIGKILL)
            with pytest.raises(TargetFault):
                await task
        async with agent(tmp_path / "s") as there:
            assert there.greeting.swept == (trial.id,)
            assert processes_with(f"MARK={tmp_path}") == []
            collected = await there.trials.attach(trial.id, tmp_path / "2", 30)
            with pytest.raises(TargetFault, match="its watchdog was ended"):
                _ = collected.ended

    run(main())


def test_a_restart_of_the_machine_is_named_and_kept_contents_are_not_believed(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = there.trial("true", files={"a": b"content"})
            await there.trials.run(trial, tmp_path / "1")
            home = there.scratch / "trials" / trial.id
        (home / "outcome.json").unlink()
        for file in (home / "about.json", there.scratch / "boot"):
            file.write_text(file.read_text().replace(there.greeting.boot_id, "another"))
        async with agent(tmp_path / "s") as there:
            assert there.greeting.restarted
            assert list((there.scratch / "blobs").iterdir()) == []
            collected = await there.trials.attach(trial.id, tmp_path / "2", 30)
            with pytest.raises(TargetFault, match="the machine was restarted"):
                _ = collected.ended

    run(main())


def test_an_unknown_trial_cannot_be_attached_to(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            for id_ in ("ab" * 8, "../../etc", ""):
                with pytest.raises(TargetFault):
                    await there.trials.attach(id_, tmp_path / "1", 10)

    run(main())


def test_a_request_without_an_answer_in_time_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            os.kill(there.process.pid, signal.SIGSTOP)
            try:
                with pytest.raises(TargetFault, match="did not answer") as caught:
                    await there.link.request("kept", {}, 0.2)
                assert caught.value.stage == "lost"
            finally:
                os.kill(there.process.pid, signal.SIGCONT)

    run(main())


def test_an_outcome_that_nobody_collects_goes_after_a_week(tmp_path: Path) -> None:
    async def main() -> None:
        ids = []
        async with agent(tmp_path / "s") as there:
            for days in (1, 8):
                trial = there.trial("true")
                await there.trials.run(trial, tmp_path / "1")
                there.trials = RemoteTrials(there.link, there.trials.sync)
                about = there.scratch / "trials" / trial.id / "about.json"
                told = json.loads(about.read_text())
                about.write_text(json.dumps({**told, "began_s": told["began_s"] - days * 86400}))
                wait_until_cleared(os.open(about.with_name("alive"), os.O_RDWR))
                ids.append(trial.id)
        async with agent(tmp_path / "s") as there:
            rows = (await there.link.request("trials", {}, 10))["trials"]
            assert [row["trial"] for row in rows] == ids[:1]

    run(main())


def test_a_disk_of_ours_that_takes_no_output_is_no_lost_link(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            (tmp_path / "file").write_text("")
            trial = there.trial("echo", "out")
            with pytest.raises(OSError):
                await there.trials.run(trial, tmp_path / "file" / "out")
            collected = await there.trials.attach(trial.id, tmp_path / "out", 10)
            assert (collected.folder / "stdout").read_text() == "out\n"

    run(main())


def test_a_folder_that_is_landed_in_twice_holds_the_last_outcome(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            link = "ln -s /etc/passwd $KERNELDECK_RESULT"
            for script in (link, "echo x > $KERNELDECK_RESULT", link, "mkfifo $KERNELDECK_RESULT", "true"):
                collected = await there.trials.run(there.trial("sh", "-c", script), tmp_path / "out")
            assert collected.states["result"] == "missing"
            assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["stderr", "stdout"]

    run(main())
