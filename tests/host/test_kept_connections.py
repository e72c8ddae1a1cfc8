"""A host keeps its SSH connection between calls, and knows how its target is."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import KerneldeckError
from sessions.host.client import HostClient
from sessions.host.snapshot import Snapshot
from tests.cli.deck import Deck, wait_until
from tests.host.hosting import client, end_host, gated, kill, rows, until
from tests.remote.conftest import Serve, keys, serve, user  # noqa: F401 (fixtures)
from tests.remote.far import Far, far_of
from tests.remote.sshd import Server, User

FINAL = {"mode": "final"}


@pytest.fixture
def server(serve: Serve) -> Server:  # noqa: F811
    return serve()


@pytest.fixture
def far(tmp_path: Path, user: User, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:  # noqa: F811
    made = far_of(tmp_path, user, server)
    for name, value in made.env.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    yield made
    end_host(made.deck.root)


def logins(server: Server) -> int:
    return server.log.read_text().count("Accepted publickey")


def test_several_calls_share_one_login_and_others_end_it(far: Far, server: Server) -> None:
    async def calls() -> Snapshot:
        async with client(far.deck) as script:
            for _ in range(3):
                assert (await script.call("run_objective", FINAL)).content["target"] == "ssh:gpu"
            environment = {**os.environ, "KERNELDECK_GPU_HOST": ""}
            here = await script.submit("run_objective", {**FINAL, "target": "local"}, environment=environment)
            assert (await here.answer()).content["target"] == "local"
            return await script.snapshot()

    told = asyncio.run(calls())
    assert logins(server) == 1
    assert (told.target.name, told.target.state) == ("ssh:gpu", "connected") and told.target.device
    assert far.left() == []


def test_what_runs_here_is_shown_as_here_and_an_unseen_machine_without_a_device(far: Far) -> None:
    """The target in use is another one, which was never connected to."""

    async def calls() -> tuple[Snapshot, list[Snapshot]]:
        async with client(far.deck) as script:
            before = await script.snapshot()
            environment = {**os.environ, "KERNELDECK_GPU_HOST": ""}
            here = await script.submit("run_objective", {**FINAL, "target": "local"}, environment=environment)
            seen: list[Snapshot] = []
            async for _ in script.updates():
                assert script.latest is not None
                seen.append(script.latest)
                if script.latest.work is None and script.latest.ended:
                    break
            await here.answer()
            return before, seen

    before, seen = asyncio.run(calls())
    assert (before.target.name, before.target.device, before.target.state) == ("ssh:gpu", "", "idle")
    running = [one.target for one in seen if one.trial is not None]
    assert running and {(one.name, one.state) for one in running} == {("local", "connected")}
    assert all(one.device for one in running)


def test_a_target_that_cannot_be_reached_is_shown_with_its_stage(far: Far) -> None:
    far.user.config.write_text("")
    far.user.writes("box", 1, "HostKeyAlias box")

    async def calls() -> Snapshot:
        async with client(far.deck) as script:
            with pytest.raises(KerneldeckError) as fault:
                await script.call("run_objective", FINAL)
            assert (fault.value.code, fault.value.exit_code) == ("target.connect", 3)
            return await script.snapshot()

    target = asyncio.run(calls()).target
    assert (target.state, target.stage) == ("lost", "connect") and "refused" in target.sentence


@pytest.mark.parametrize("trusted", [True, False])
def test_the_host_asks_its_client_about_an_unknown_host_key(far: Far, server: Server, trusted: bool) -> None:
    known = far.user.known_hosts
    known.write_text("")
    asked: list[str] = []

    async def answer(question: object) -> bool:
        asked.append(getattr(question, "fingerprint", ""))
        return trusted

    async def calls() -> str:
        connected = await HostClient.connect(far.deck.root, ask=answer)
        async with connected:
            try:
                return str((await connected.call("run_objective", FINAL)).content["status"])
            except KerneldeckError as fault:
                return fault.code

    assert asyncio.run(calls()) == ("ok" if trusted else "target.hostkey")
    assert len(asked) == 1 and asked[0].startswith("SHA256:")
    assert (known.read_text() != "") is trusted


def test_a_sweep_over_there_goes_on_in_the_next_host(far: Far, knobbed: Deck) -> None:
    deck = knobbed
    reached, go_on = gated(deck, '[ "$mode$block" = dev4 ]')

    async def begin() -> int:
        async with client(deck) as script:
            await script.submit("sweep_kernel_config", {"knobs": {"block": [2, 4, 8]}}, lease=False)
            return script.welcome.pid

    first = asyncio.run(begin())
    wait_until(reached.exists, "the candidate")
    kill(first)
    go_on.touch()

    async def follow() -> None:
        async with client(deck) as app:
            now = await until(app, lambda now: now.sweep is not None and now.sweep.ended)
            assert now.sweep is not None and (now.sweep.state, now.sweep.counts) == ("DONE", {"ok": 4})

    asyncio.run(follow())
    assert rows(deck.root, "SELECT DISTINCT target FROM trials") == [("ssh:gpu",)]


def test_those_who_watch_see_the_round_trip_and_a_lost_link(far: Far, server: Server) -> None:
    async def watch() -> None:
        async with client(far.deck, actor="tui") as app:
            await app.call("run_objective", FINAL)
            now = await until(app, lambda now: now.target.rtt_ms is not None)
            assert now.target.state == "connected" and 0 < (now.target.rtt_ms or 0) < 60_000
            assert now.target.sampled_s is not None
            for pid in server.children():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            lost = await until(app, lambda now: now.target.state == "lost")
            assert lost.target.stage == "lost" and lost.target.sentence
            assert (await app.call("run_objective", FINAL)).content["status"] == "ok", "and it is made again"

    asyncio.run(watch())
