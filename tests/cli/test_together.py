"""Two commands on one workspace: one waits or is told who holds it; looking is always possible."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.deck import Deck, interrupt, wait_until

NETWORK = {"KERNELDECK_ASSUME_NETWORK_FS": "1"}


@pytest.fixture
def held(deck: Deck) -> Iterator[Path]:
    """The workspace is held by a run that ends when the file that this gives is there."""
    reached, go_on = deck.root.parent / "reached", deck.root.parent / "go-on"
    deck.run("verify")
    deck.kernel(f"touch {reached}; while [ ! -e {go_on} ]; do sleep 0.01; done; score=100")
    command = deck.start("run", "--mode", "final", "--timeout", "120")
    wait_until(reached.exists, "the run")
    yield go_on
    go_on.touch()
    command.communicate(timeout=60)


def test_a_second_command_is_told_who_holds_the_workspace(deck: Deck, held: Path) -> None:
    for words in (["run"], ["verify"], ["restore"], ["result"], ["gc"], ["reseal"]):
        fault = deck.fault(*words, code=3)
        assert "is held by `kerneldeck run` (pid " in fault and "since" in fault
        assert "wait with --wait SECONDS, or end that command" in fault
    done = deck.run("run", "--wait", "0.3", "--json", code=3)
    assert done.answer["error"]["code"] == "session.busy"


def test_looking_is_possible_meanwhile(deck: Deck, held: Path) -> None:
    assert deck.seen()["history"] == {"ok": 1, "running": 1}
    assert "#2 run final running -" in deck.run("inspect").out
    assert deck.json("rank")["rows"][0]["median_score"] == 100


def test_waiting_ends_when_the_other_command_does(deck: Deck, held: Path) -> None:
    waiting = deck.start("run", "--wait", "60", "--json")
    held.touch()
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, err
    assert json.loads(out)["status"] == "ok"


def test_one_who_waits_can_be_interrupted(deck: Deck, held: Path) -> None:
    waiting = deck.start("run", "--wait", "600")
    lock = deck.root / ".kerneldeck/lock"
    wait_until(lambda: opens(waiting.pid, lock.parent / "lock") or waiting.poll() is not None, "its attempts")
    assert interrupt(waiting).code == 130


def opens(pid: int, path: Path) -> bool:
    """Whether the process has the workspace's modules loaded and looks at its lock."""
    try:
        maps = (Path("/proc") / str(pid) / "maps").read_text()
    except OSError:
        return False
    return "_sqlite3" in maps and path.exists()


def test_it_all_works_on_a_network_file_system(deck: Deck) -> None:
    assert deck.json("verify", env=NETWORK)["outcome"] == "first_best"
    deck.kernel("score=120")
    assert deck.json("verify", env=NETWORK, code=1)["outcome"] == "restored"
    assert deck.json("inspect", env=NETWORK)["best"]["score"] == 100
    assert list((deck.root / ".kerneldeck").glob("state.sqlite3-*")) == [], "no write-ahead log there"


def test_another_machine_is_refused_until_a_person_releases_it(deck: Deck) -> None:
    deck.run("verify", env=NETWORK)
    on_another_machine(deck)
    fault = deck.fault("run", env=NETWORK, code=3)
    assert "is held by `kerneldeck sweep config` (pid 4711" in fault and "on elsewhere" in fault
    assert "`kerneldeck unlock` frees the workspace" in fault
    assert deck.json("inspect", env=NETWORK)["best"]["score"] == 100
    assert "released the lock" in deck.run("unlock", env=NETWORK).out
    assert deck.json("run", env=NETWORK)["status"] == "ok"
    assert "no other machine holds this workspace" in deck.run("unlock", env=NETWORK).out


def on_another_machine(deck: Deck) -> None:
    """What a command that runs on another machine has written of itself."""
    holder = {
        "pid": 4711, "command": "kerneldeck sweep config", "since_s": 1_700_000_000.0, "user": "ann",
        "host": "elsewhere", "machine": "m", "boot": "b", "started": "1",
    }  # fmt: skip
    database = sqlite3.connect(deck.root / ".kerneldeck/state.sqlite3")
    with database:
        database.execute(
            "INSERT OR REPLACE INTO holder (id, description) VALUES (1, ?)", (json.dumps(holder),)
        )
    database.close()
