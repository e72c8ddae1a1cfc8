"""A workspace that is copied, moved or removed under its host, and a socket that is taken away."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions.host.footing import Listener
from sessions.host.wire import HostFault
from tests.cli.deck import Deck, wait_until
from tests.host.hosting import (
    STAYS,
    client,
    command,
    end_host,
    gated,
    holder,
    host_pid,
    rows,
    socket_of,
    until,
)


@pytest.fixture
def copy(knobbed: Deck, tmp_path: Path) -> Iterator[Deck]:
    """The workspace with all its state, copied while its host runs."""
    knobbed.run("run", env=STAYS)
    made = Deck(tmp_path / "copy")
    shutil.copytree(knobbed.root, made.root)
    yield made
    end_host(made.root)


def test_a_copy_has_nothing_to_do_with_the_originals_host(knobbed: Deck, copy: Deck) -> None:
    original = host_pid(knobbed.root)
    assert not json.loads(copy.run("host", "status", "--json").out)["running"]
    assert "no host runs" in copy.run("host", "stop", "--now").out
    assert copy.json("run", env=STAYS)["status"] == "ok"
    assert host_pid(knobbed.root) == original != host_pid(copy.root)
    assert rows(knobbed.root, "SELECT COUNT(*) FROM trials") == [(1,)], "no work of the copy's"
    assert rows(copy.root, "SELECT COUNT(*) FROM trials") == [(2,)]


def test_a_host_that_serves_another_folder_is_not_asked(knobbed: Deck, copy: Deck) -> None:
    """As on a network file system, where the copy's lock names a process and no file."""
    lock = copy.root / ".kerneldeck/lock"
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "lock": ""}))
    assert copy.json("run", env=STAYS)["status"] == "ok"
    assert rows(knobbed.root, "SELECT COUNT(*) FROM trials") == [(1,)], "no work of the copy's"


def test_a_moved_workspace_gets_a_host_of_its_own_that_goes_on(knobbed: Deck, tmp_path: Path) -> None:
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    command(knobbed, "sweep", "config", "--set", "block=2,4,8", "--detach").communicate()
    wait_until(reached.exists, "the candidate")
    first = host_pid(knobbed.root)
    moved = Deck(tmp_path / "moved")
    knobbed.root.rename(moved.root)
    wait_until(lambda: (found := holder(moved.root)) is None or found.pid != first, "the first host's end")
    go_on.touch()

    async def next_client() -> None:
        async with client(moved) as app:
            ended = await until(app, lambda now: now.sweep is not None and now.sweep.ended)
            assert ended.sweep is not None
            assert (ended.sweep.state, ended.sweep.counts) == ("DONE", {"ok": 4})

    asyncio.run(next_client())
    screened = "SELECT COUNT(*) FROM trials WHERE purpose = 'screen' AND status = 'ok' GROUP BY candidate_id"
    assert rows(moved.root, screened) == [(1,)] * 4
    end_host(moved.root)


def test_a_host_leaves_whose_state_folder_is_removed(deck: Deck) -> None:
    deck.run("run", env=STAYS)
    first = host_pid(deck.root)
    shutil.rmtree(deck.root / ".kerneldeck")
    wait_until(lambda: not Path(f"/proc/{first}/stat").exists(), "the end of the host")
    assert not socket_of(deck.root).exists()
    assert deck.json("run", env=STAYS)["status"] == "ok"


@pytest.mark.parametrize("gone", ["socket", "folder"])
def test_a_host_whose_socket_is_taken_away_is_found_again(deck: Deck, gone: str) -> None:
    """A logout takes the whole folder, a cleaner of temporary files the socket alone."""
    deck.run("run", env=STAYS)
    first, place = host_pid(deck.root), socket_of(deck.root)
    place.unlink()
    if gone == "folder":
        shutil.rmtree(place.parent)
    wait_until(lambda: place.exists(), "the socket")
    assert place.stat().st_mode & 0o777 == 0o600 and place.parent.stat().st_mode & 0o777 == 0o700
    assert deck.json("run", env=STAYS)["status"] == "ok"
    assert host_pid(deck.root) == first


def test_a_host_leaves_what_is_in_its_sockets_place_alone(deck: Deck) -> None:
    deck.run("run", env=STAYS)
    place = socket_of(deck.root)
    place.unlink()
    place.write_text("my notes")
    end_host(deck.root)
    assert place.read_text() == "my notes"


def test_a_place_where_no_socket_can_be_is_a_sentence(tmp_path: Path) -> None:
    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None: ...

    with pytest.raises(HostFault, match=r"the host cannot listen at .*: No such file or directory"):
        asyncio.run(Listener(tmp_path / "nowhere" / "sock", visit).open())
