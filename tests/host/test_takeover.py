"""What the next host finds of one that died, and sockets that are not what they should be."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from core.errors import KerneldeckError
from core.version import VERSION
from sessions.host.client import HostClient
from sessions.host.wire import PROTOCOL
from tests.cli.deck import Deck, processes_with, wait_until
from tests.host.hosting import (
    client,
    command,
    gated,
    holder,
    host_pid,
    kill,
    knock,
    read_line,
    rows,
    socket_of,
    until,
)


def start_host(deck: Deck) -> int:
    """A host that nobody is connected to."""

    async def once() -> None:
        async with client(deck):
            pass

    asyncio.run(once())
    return host_pid(deck.root)


def test_a_sweep_goes_on_in_the_next_host_and_each_trial_counts_once(knobbed: Deck) -> None:
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    command(knobbed, "sweep", "config", "--set", "block=2,4,8", "--detach").communicate()
    wait_until(reached.exists, "the candidate")
    first = host_pid(knobbed.root)
    kill(first)
    wait_until(lambda: processes_with(str(knobbed.root)) == [], "the end of its trial")
    go_on.touch()

    async def next_client() -> None:
        async with client(knobbed, actor="tui") as app:
            assert app.welcome.pid != first
            ended = await until(app, lambda now: now.sweep is not None and now.sweep.ended)
            assert ended.sweep is not None
            assert (ended.sweep.state, ended.sweep.counts) == ("DONE", {"ok": 4})

    asyncio.run(next_client())
    screened = (
        "SELECT candidate_id, COUNT(*) FROM trials WHERE purpose = 'screen' AND status = 'ok' GROUP BY 1"
    )
    assert [count for _, count in rows(knobbed.root, screened)] == [1, 1, 1, 1]
    assert rows(knobbed.root, "SELECT status, COUNT(*) FROM trials WHERE status != 'ok' GROUP BY 1") == [
        ("cancelled", 1)
    ]
    assert rows(knobbed.root, "SELECT id, state FROM sweeps") == [(1, "done")]


def test_whoever_was_connected_is_told_and_the_next_command_recovers(deck: Deck) -> None:
    reached, go_on = gated(deck)
    running = command(deck, "run", "--mode", "final", "--json")
    wait_until(reached.exists, "the trial")
    kill(host_pid(deck.root))
    out, _ = running.communicate()
    fault = json.loads(out)["error"]
    assert (fault["code"], running.returncode) == ("session.host", 3)
    assert "the host has ended meanwhile" in fault["sentence"]
    wait_until(lambda: processes_with(str(deck.root)) == [], "the end of its trial")
    go_on.touch()
    done = deck.run("run", "--mode", "final")
    assert "recovered: 1 interrupted trial is cancelled" in done.err
    assert deck.seen()["history"] == {"cancelled": 1, "ok": 1}


def test_a_dead_socket_is_replaced_by_whoever_holds_the_workspace(deck: Deck) -> None:
    first = start_host(deck)
    kill(first)
    assert socket_of(deck.root).exists()
    assert start_host(deck) != first


def test_a_host_that_leaves_takes_its_socket_along(deck: Deck) -> None:
    kill(start_host(deck), signal.SIGTERM)
    assert list(socket_of(deck.root).parent.iterdir()) == [], "and its log, in which nothing was said"
    assert holder(deck.root) is None


def test_a_plain_file_in_the_sockets_place_is_a_sentence(deck: Deck) -> None:
    socket_of(deck.root).write_text("my notes")
    fault = deck.fault("run", code=3)
    assert "is no socket, although the host's is to be there" in fault and "move it away" in fault
    assert socket_of(deck.root).read_text() == "my notes"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_trusted(deck: Deck) -> None:
    folder = socket_of(deck.root).parent
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(socket_of(deck.root)))
        os.chown(socket_of(deck.root), 65534, -1)
        assert "belongs to another user" in deck.fault("run", code=3)
    os.chown(folder, 65534, -1)
    assert "belongs to another user, so no host of yours is asked there" in deck.fault("run", code=3)


def test_a_folder_that_others_may_enter_is_not_trusted(deck: Deck) -> None:
    folder = socket_of(deck.root).parent
    folder.chmod(0o755)
    assert "may be entered by others (mode 0755)" in deck.fault("run", code=3)
    folder.chmod(0o700)
    assert deck.json("run", "--mode", "final")["status"] == "ok"


def test_a_host_is_found_from_another_environment(deck: Deck, tmp_path: Path) -> None:
    pid = start_host(deck)
    elsewhere = {"XDG_RUNTIME_DIR": None, "KERNELDECK_HOST_IDLE_S": "0"}
    assert json.loads(deck.run("host", "status", "--json", env=elsewhere).out)["pid"] == pid
    assert deck.json("run", "--mode", "final", env=elsewhere)["status"] == "ok"
    assert host_pid(deck.root) == pid, "it was asked, not a second one started"


def test_a_client_of_another_version_is_refused_with_what_to_do(deck: Deck) -> None:
    pid = start_host(deck)
    for protocol, version in ((PROTOCOL + 1, VERSION), (PROTOCOL, "99.0")):
        hello = {"protocol": protocol, "version": version, "actor": "tui", "pid": 1, "command": "k"}
        with knock(deck.root, {"hello": hello}) as connection:
            refused = json.loads(read_line(connection))["refused"]
            assert f"Kerneldeck {VERSION}" in refused["sentence"] and version in refused["sentence"]
            assert "kerneldeck host stop" in refused["hint"] and refused["exit_code"] == 3
            assert read_line(connection) == b"", "and that is the end"
    assert f"the host (pid {pid}) is stopped" in deck.run("host", "stop").out


def test_without_a_host_a_client_that_may_start_none_is_told(deck: Deck) -> None:
    with pytest.raises(KerneldeckError, match="no host runs for this workspace"):
        asyncio.run(HostClient.connect(deck.root, may_start=False))
    assert not (deck.root / ".kerneldeck").exists()
    assert "no host runs for this workspace" in deck.fault("sweep", "pause", code=3)
    assert "no host runs for this workspace" in deck.fault("attach", code=3)


def test_a_host_leaves_when_nobody_needs_it(deck: Deck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELDECK_HOST_IDLE_S", "0.2")
    pid = start_host(deck)
    wait_until(lambda: holder(deck.root) is None, f"the end of host {pid}")
    assert not socket_of(deck.root).exists()


def test_a_host_of_many_starting_at_once_is_one(deck: Deck) -> None:
    async def many() -> set[int]:
        made = await asyncio.gather(*(HostClient.connect(deck.root) for _ in range(4)))
        pids = {one.welcome.pid for one in made}
        await asyncio.gather(*(one.close() for one in made))
        return pids

    assert asyncio.run(many()) == {host_pid(deck.root)}
