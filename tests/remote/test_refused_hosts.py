"""A host that takes no trial leaves the call in the history, and an address in digits leaves a name."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import TargetFault
from core.targets.ssh.address import parse_address
from core.targets.ssh.connect import connect
from core.targets.ssh.host_keys import HostKeyQuestion
from core.targets.ssh.user_config import effective
from sessions.session import Caller, open_session
from tests.cli.deck import Deck, configured
from tests.remote.conftest import Serve
from tests.remote.far import Far, far_of
from tests.remote.sshd import User


@pytest.fixture
def closed(tmp_path: Path, user: User, closed_port: int) -> Iterator[Far]:
    yield far_of(tmp_path, user, None, closed_port)


def rows(deck: Deck, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(deck.root / ".kerneldeck" / "state.sqlite3")) as database:
        return database.execute(query).fetchall()


CALLS = (
    "SELECT operation, outcome, exit_code, json_extract(arguments, '$.target') FROM operations ORDER BY id"
)


def test_calls_on_a_refused_host_are_in_the_history_with_their_stage(closed: Far, tmp_path: Path) -> None:
    deck = configured(tmp_path / "knobs")
    words = (["run"], ["verify", "--target", "gpu"], ["sweep", "config"])
    for each in words:
        assert "refused the connection" in deck.fault(*each, env=closed.env, code=3)
    assert rows(deck, CALLS) == [
        ("run_objective", "target.connect", 3, "ssh:gpu"),
        ("guarded_final_verify", "target.connect", 3, "ssh:gpu"),
        ("sweep_kernel_config", "target.connect", 3, "ssh:gpu"),
    ]
    assert rows(deck, "SELECT count(*) FROM trials") == [(0,)]
    assert rows(deck, "SELECT count(*) FROM contracts") == [(0,)]
    story = deck.seen()["story"]
    assert len(story) == 3 and "cli called run_objective: exit 3 infra at connect of ssh:gpu" in story[0]


def test_the_best_and_the_candidate_are_left_as_they_are(closed: Far) -> None:
    deck = closed.deck
    deck.run("verify", "--target", "local", env=closed.env)
    deck.kernel("score=300")
    before, best = deck.files(), deck.seen()["best"]
    deck.fault("verify", env=closed.env, code=3)
    assert (deck.files(), deck.seen()["best"]) == (before, best)
    assert "infra at connect" in deck.seen()["story"][-1]


def test_a_call_beside_one_that_holds_the_workspace_connects_to_nobody(closed: Far) -> None:
    with open_session(closed.deck.root, Caller(), lambda _: None):
        done = closed.deck.run("run", env=closed.env, code=3)
    assert "is held by" in done.err and "refused" not in done.said


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "::1",
        "fe80::1%eth0",
        "127.1",
        "0x7f.1",
        "2130706433",
        "2001:DB8::1",
        "１２７.0.0.1",
        "①0．0.0.1",
    ],
)
def test_digits_are_called_by_a_name_made_of_them(host: str) -> None:
    address = parse_address(f"ssh:me@[{host}]:22" if ":" in host else f"ssh:me@{host}:22")
    assert address.name.startswith("host-") and len(address.name) == len("host-") + 6
    assert address.label == f"ssh:{address.name}:22"
    assert host not in f"{address.name} {address.label} {address.by_hand}"
    assert parse_address(str(address)).name == address.name


def test_wide_digits_are_the_digits_that_they_stand_for() -> None:
    wide, plain = (parse_address(f"ssh:{host}") for host in ("１２７.0.0.1", "127.0.0.1"))
    assert (wide, wide.name) == (plain, plain.name)


def test_a_listing_names_no_address_in_digits(closed: Far) -> None:
    closed.deck.run("target", "add", "bare", "me@10.1.2.3:22", env=closed.env)
    shown = closed.deck.run("target", "list", "--json", env=closed.env).out
    name = parse_address("ssh:10.1.2.3").name
    assert "10.1.2.3" not in shown and f"ssh:{name}:22" in shown
    assert f"bare: ssh:{name}:22" in closed.deck.run("target", "list", env=closed.env).out


@pytest.mark.parametrize("host", ["gpu1", "10.example", "face", "host-1a2b3c", "a.b.c"])
def test_names_are_called_as_they_are(host: str) -> None:
    address = parse_address(f"ssh:me@{host}")
    assert (address.name, address.label, address.by_hand) == (host, f"ssh:{host}", host)


def test_a_jump_host_in_digits_has_such_a_name_too(user: User) -> None:
    user.config.write_text("Host box\n ProxyJump me@10.0.0.7\n")
    jump, _ = effective(parse_address("ssh:box"), user.config).hops
    assert (jump.name, jump.host) == (parse_address("ssh:10.0.0.7").name, "10.0.0.7")


def test_an_address_in_digits_is_in_no_history_and_no_sentence(
    tmp_path: Path, user: User, serve: Serve, closed_port: int
) -> None:
    server = serve()
    user.trusts(server)
    user.writes("127.0.0.1", server.port)
    far = far_of(tmp_path, user, None, closed_port)
    target = f"ssh:127.0.0.1:{server.port}"
    assert far.deck.json("run", "--target", target, env=far.env)["score"] == 100
    name = parse_address(target).name
    assert rows(far.deck, "SELECT DISTINCT target FROM trials") == [(f"ssh:{name}:{server.port}",)]
    said = far.deck.run("run", "--target", f"ssh:127.0.0.1:{closed_port}", "--json", env=far.env, code=3).said
    assert f"{name} refused the connection" in said and "127.0.0.1" not in said
    assert b"127.0.0.1" not in far.kept_bytes()
    shown = json.loads(far.deck.run("health", "--target", target, "--json", env=far.env, code=3).out)
    assert shown["target"] == f"ssh:{name}:{server.port}" and "127.0.0.1" not in json.dumps(shown)


def test_the_person_who_is_asked_about_a_key_sees_the_address(user: User, serve: Serve) -> None:
    server = serve()
    user.writes("127.0.0.1", server.port)
    asked: list[HostKeyQuestion] = []

    async def no(question: HostKeyQuestion) -> bool:
        asked.append(question)
        return False

    with pytest.raises(TargetFault) as caught:
        asyncio.run(connect(parse_address("ssh:127.0.0.1"), ask=no, config_path=user.config))
    assert [question.hop for question in asked] == ["127.0.0.1"]
    assert caught.value.stage == "hostkey" and "127.0.0.1" not in str(caught.value)
