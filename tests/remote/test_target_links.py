"""Broken links and closed doors: never a wrong result, never a restore, nothing left over there."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.deck import Deck, processes_with, wait_until
from tests.cli.terminal import on_a_terminal
from tests.remote.agents import run
from tests.remote.conftest import Serve
from tests.remote.far import Far, ended, far_of, fifo_read, pipes, waiting_kernel
from tests.remote.proxy import proxying
from tests.remote.sshd import Server, User


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve()


def test_a_trial_that_outlives_its_link_is_collected(tmp_path: Path, user: User, server: Server) -> None:
    async def main() -> None:
        async with proxying(server.port) as proxy:
            far = far_of(tmp_path, user, server, proxy.port)
            runs, go = pipes(tmp_path)
            far.deck.kernel(waiting_kernel(runs, go, 77))
            process = await far.start("run", "--mode", "final", "--json")
            await fifo_read(runs)
            proxy.cut()
            await asyncio.to_thread(go.write_text, "go\n")
            done = await ended(process)
            assert done.code == 0, done.said
            assert done.answer["score"] == 77 and done.answer["status"] == "ok"
            assert far.left() == []

    run(main())


def test_a_final_verification_that_is_lost_stays_pending(tmp_path: Path, user: User, server: Server) -> None:
    async def main() -> None:
        runs, go = pipes(tmp_path)
        async with proxying(server.port) as proxy:
            far = far_of(tmp_path, user, server, proxy.port)
            first = await ended(await far.start("verify", "--json"))
            assert first.answer["outcome"] == "first_best"
            far.deck.kernel(waiting_kernel(runs, go, 300))
            before = far.deck.files()
            process = await far.start("verify", "--json")
            await fifo_read(runs)
        # Here the way in is gone for good, the connections on it with it.
        done = await ended(process)
        assert done.code == 3, done.said
        answer = done.answer
        assert answer["outcome"] == "pending" and answer["restored_files"] == []
        assert answer["final"]["status"] == "infra" and answer["final"]["stage"] == "lost"
        assert far.deck.files() == before
        assert "127.0.0.1" not in done.said
        await asyncio.to_thread(go.write_text, "go\n")

    run(main())


@pytest.mark.parametrize(
    ("numbers", "code"),
    [([signal.SIGINT], 130), ([signal.SIGINT] * 3, 130), ([signal.SIGTERM], 143), ([signal.SIGHUP], 129)],
    ids=["once", "thrice", "ended", "hung up"],
)
def test_an_interrupt_leaves_nothing_over_there(
    tmp_path: Path, user: User, server: Server, numbers: list[signal.Signals], code: int
) -> None:
    async def main() -> None:
        far = far_of(tmp_path, user, server)
        runs, go = pipes(tmp_path)
        far.deck.kernel("trap '' TERM INT\n" + waiting_kernel(runs, go, 1))
        process = await far.start("run")
        await fifo_read(runs)
        assert far.left() != []
        for number in numbers:
            os.killpg(process.pid, number)
            wait_until(lambda: not pending(process.pid), "the signal's arrival")
        done = await ended(process)
        assert done.code == code and "kerneldeck: interrupted" in done.err, done.said
        if len(numbers) > 1:  # it did not wait for the end, and the next connection takes the folder away
            await asyncio.to_thread(wait_until, lambda: not programs(far), "the trial's end")
            far.deck.run("target", "clean", "gpu", env=far.env)
        assert far.left() == []

    run(main())


def pending(pid: int) -> int:
    """The signals that the process is still to take; none once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("ShdPnd:")[2].split()[0], 16)


def programs(far: Far) -> list[int]:
    return processes_with(str(far.scratch / "trials"))


def test_an_unknown_host_is_refused_where_nobody_can_be_asked(
    tmp_path: Path, user: User, server: Server
) -> None:
    far = far_of(tmp_path, user, server)
    user.known_hosts.write_text("")
    said = far.deck.fault("verify", env=far.env, code=3)
    assert "host key" in said and "127.0.0.1" not in said
    assert user.known_hosts.read_text() == "" and not far.scratch.exists()
    health = far.deck.json("health", env=far.env, code=3)
    assert (health["stage"], health["failure_stage"]) == ("hostkey", "ssh")


def test_an_unknown_host_is_a_question_on_a_terminal(tmp_path: Path, user: User, server: Server) -> None:
    far = far_of(tmp_path, user, server)
    user.known_hosts.write_text("")
    code, shown = on_a_terminal("run", cwd=far.deck.root, env=far.env, typed=b"n\n")
    assert code == 3 and "SHA256:" in shown and "Trust it" in shown
    assert user.known_hosts.read_text() == "" and not far.scratch.exists()
    code, shown = on_a_terminal("run", cwd=far.deck.root, env=far.env, typed=b"yes\n")
    assert code == 0 and "Trust it" in shown, shown
    assert user.known_hosts.read_text().startswith("box ")
    code, shown = on_a_terminal("run", cwd=far.deck.root, env=far.env)
    assert code == 0 and "Trust it" not in shown


def test_the_question_is_two_lines_and_ctrl_c_ends_it(tmp_path: Path, user: User, server: Server) -> None:
    far = far_of(tmp_path, user, server)
    user.known_hosts.write_text("")
    code, shown = on_a_terminal("run", cwd=far.deck.root, env=far.env, typed=b"\x03", after=b"[y/N] ")
    assert code == 130, "without Enter"
    asked, compare = shown.splitlines()[:2]
    assert "SHA256:" in asked and compare.startswith("Compare it with")
    assert user.known_hosts.read_text() == "" and not far.scratch.exists()
    refused = far.deck.run("run", "--json", env=far.env, code=3).answer["error"]
    assert "without --json, which never asks" in refused["hint"]


@pytest.mark.parametrize("verb", [["run"], ["verify"], ["sweep", "config"], ["repeat"], ["reseal"]])
def test_a_host_that_is_not_there_starts_nothing(
    tmp_path: Path, user: User, closed_port: int, verb: list[str]
) -> None:
    far = far_of(tmp_path, user, None, closed_port)
    fault = far.deck.run(*verb, "--json", env=far.env, code=3).answer["error"]
    assert fault["code"] == "target.connect" and "box refused the connection" in fault["sentence"]
    assert fault["hint"] and far.trials() == []


def test_a_trial_that_outlives_its_agent_is_collected(tmp_path: Path, user: User, server: Server) -> None:
    async def main() -> None:
        far = far_of(tmp_path, user, server)
        runs, go = pipes(tmp_path)
        far.deck.kernel(waiting_kernel(runs, go, 78))
        process = await far.start("run", "--json")
        await fifo_read(runs)
        agents = [pid for pid in server.children() if b"bytes.fromhex" in cmdline(pid)]
        assert agents
        os.kill(min(agents), signal.SIGKILL)
        await asyncio.to_thread(go.write_text, "go\n")
        done = await ended(process)
        assert done.code == 0 and done.answer["score"] == 78, done.said
        assert far.left() == []

    run(main())


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_sweep_whose_host_goes_stops_and_changes_nothing(
    tmp_path: Path, user: User, server: Server, knobbed: Deck
) -> None:
    async def main() -> None:
        runs, go = pipes(tmp_path)
        async with proxying(server.port) as proxy:
            far = replace(far_of(tmp_path, user, server, proxy.port), deck=knobbed)
            knobbed.kernel(f"test $block = 1 || {{ : > {runs}; read _ < {go}; }}")
            before = knobbed.files()
            process = await far.start("sweep", "config", "--keep-best", "--json")
            await fifo_read(runs)
        done = await ended(process)
        assert done.code == 3 and done.answer["outcome"] == "stopped", done.said
        assert not done.answer["kept"] and knobbed.files() == before
        release(go)

    run(main())


def release(go: Path) -> None:
    """Let the trial go on that waits there, if it has not been ended by its time-out."""
    pipe = os.open(go, os.O_RDWR)
    os.write(pipe, b"go\n")
    os.close(pipe)
