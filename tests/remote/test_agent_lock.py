"""One trial a GPU, whoever asks and however they end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.remote_trials import LockWish, RemoteTrial
from tests.remote.agents import Running, agent, processes_with, run
from tests.remote.test_agent_links import begun, gated, kill_keeper, open_gate

GPU = "GPU-5e4c7b1a-0000-1111-2222-333344445555"
ALICE = LockWish(GPU, "alice", "laptop")


def bob(wait_s: float = 0.0, name: str = GPU) -> LockWish:
    return LockWish(name, "bob", "desk", wait_s)


def quick(there: Running, lock: LockWish) -> RemoteTrial:
    return there.trial("true", lock=lock)


def test_a_second_agent_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there, agent(tmp_path / "s") as other:
            task = await begun(there, gated(there, tmp_path / "gate", lock=ALICE), tmp_path / "1")
            refused = await other.trials.run(quick(other, bob()), tmp_path / "2")
            with pytest.raises(TargetFault, match=f"{GPU} is held by alice on laptop") as caught:
                _ = refused.ended
            assert caught.value.stage == "lock"
            assert f"(process {os.getpid()} there) since 20" in caught.value.sentence
            free = await other.trials.run(quick(other, bob(name="cpu")), tmp_path / "3")
            assert free.ended.clean
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            await task
            assert (await other.trials.run(quick(other, bob()), tmp_path / "4")).ended.clean

    run(main())


def test_who_waits_for_it_gets_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there, agent(tmp_path / "s") as other:
            task = await begun(there, gated(there, tmp_path / "gate", lock=ALICE), tmp_path / "1")
            queued = [
                asyncio.create_task(other.trials.run(quick(other, bob(30)), tmp_path / f"q{number}"))
                for number in range(3)
            ]
            assert len(await states(other, 4)) == 4
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            assert [(await each).ended.clean for each in queued] == [True] * 3
            await task

    run(main())


async def states(there: Running, number: int) -> list[str]:
    """The states of the trials there, once there are so many that run."""
    found: list[str] = []
    while len(found) < number:
        rows = (await there.link.request("trials", {}, 10))["trials"]
        found = [row["state"] for row in rows if row["state"] == "running"]
    return found


def test_waiting_has_an_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            task = await begun(there, gated(there, tmp_path / "gate", lock=ALICE), tmp_path / "1")
            refused = await there.trials.run(quick(there, bob(0.1)), tmp_path / "2")
            with pytest.raises(TargetFault, match=r"is held by alice .* \(waited 0.1 s\)"):
                _ = refused.ended
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            await task

    run(main())


def test_who_waits_can_be_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            task = await begun(there, gated(there, tmp_path / "gate", lock=ALICE), tmp_path / "1")
            waiting = quick(there, bob(30))
            queued = asyncio.create_task(there.trials.run(waiting, tmp_path / "2"))
            await states(there, 2)
            assert await there.trials.cancel(waiting.id)
            assert (await queued).ended.ended_by == "cancel"
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            await task

    run(main())


def test_a_process_that_still_runs_keeps_it_and_its_end_frees_it(tmp_path: Path) -> None:
    """The watchdog is killed and a daemon of the trial, which hides from everybody, lives on."""
    hidden = 'exec env -i setsid sh -c \'cd /; echo $$ > "$0"; exec sleep 600\' "$PIDS"'

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            os.mkfifo(tmp_path / "pids")
            trial = there.trial(
                "sh",
                "-c",
                f"({hidden}) & sleep 600",
                lock=ALICE,
                env={"PIDS": str(tmp_path / "pids"), "MARK": str(tmp_path)},
            )
            task = await begun(there, trial, tmp_path / "1")
            daemon = int(await asyncio.to_thread((tmp_path / "pids").read_text))
            kill_keeper(there)
            await task
            assert processes_with(f"MARK={tmp_path}") == []
            refused = await there.trials.run(quick(there, bob()), tmp_path / "2")
            with pytest.raises(TargetFault, match="is held by alice"):
                _ = refused.ended
            os.kill(daemon, signal.SIGKILL)
            assert (await there.trials.run(quick(there, bob(10)), tmp_path / "3")).ended.clean

    run(main())


@pytest.mark.parametrize("name", ["../x", "", "a/b", "GPU 0"])
def test_a_lock_is_named_by_a_plain_word(tmp_path: Path, name: str) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            refused = await there.trials.run(quick(there, bob(name=name)), tmp_path / "1")
            with pytest.raises(TargetFault, match="names no GPU"):
                _ = refused.ended

    run(main())


def test_locks_lie_in_a_folder_of_ours_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            assert (await there.trials.run(quick(there, ALICE), tmp_path / "1")).ended.clean
            locks = tmp_path / "s-locks"
            assert locks.stat().st_mode & 0o777 == 0o700
            locks.chmod(0o777)
            refused = await there.trials.run(quick(there, ALICE), tmp_path / "2")
            with pytest.raises(TargetFault, match="is not ours alone"):
                _ = refused.ended

    run(main())


def test_a_keeper_that_was_stopped_loses_the_lock_when_its_time_is_over(tmp_path: Path) -> None:
    """Not before: the next agent leaves it alone, and the one after that time kills it."""
    # Behind a gate: a keeper that is stopped before it said that the trial runs would say it to nobody.
    stops = 'read go < "$GATE"; kill -STOP $PPID; echo > "$STOPPED"; sleep 600'

    async def main() -> None:
        async with agent(tmp_path / "s") as there, agent(tmp_path / "s") as other:
            gate, stopped = tmp_path / "gate", tmp_path / "stopped"
            os.mkfifo(gate)
            os.mkfifo(stopped)
            env = {"GATE": str(gate), "STOPPED": str(stopped)}
            trial = there.trial("sh", "-c", stops, wall_s=60.0, lock=ALICE, env=env)
            task = await begun(there, trial, tmp_path / "1")
            await asyncio.to_thread(open_gate, gate)
            await asyncio.to_thread(stopped.read_text)
            assert other.greeting.swept == ()
            about = there.scratch / "trials" / trial.id / "about.json"
            told = json.loads(about.read_text())
            longest_s = trial.wall_s + trial.grace_s + trial.lease_s
            assert 0 < told["over_s"] - time.monotonic() - longest_s < 150
            async with agent(tmp_path / "s") as early:
                assert early.greeting.swept == ()
                refused = await early.trials.run(quick(early, bob()), tmp_path / "2")
                assert "held by alice" in refused.outcome["failure"]
            about.write_text(json.dumps({**told, "over_s": time.monotonic() - 1.0, "boot": "another"}))
            async with agent(tmp_path / "s") as elsewhere:
                assert elsewhere.greeting.swept == ()
            about.write_text(json.dumps({**told, "over_s": time.monotonic() - 1.0}))
            async with agent(tmp_path / "s") as late:
                assert (await late.trials.run(quick(late, bob(10.0)), tmp_path / "3")).ended.clean
            with pytest.raises(TargetFault, match="its watchdog was ended"):
                _ = (await task).ended  # type: ignore[attr-defined]
            assert processes_with(trial.id) == []

    run(main())
