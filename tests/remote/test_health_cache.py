"""Before a run the machine is looked at; what was found well is believed for a minute."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core.targets.ssh.address import parse_address
from core.targets.ssh.health_cache import FRESH_S, FoundWell, HealthCache, cache_folder
from core.targets.ssh.places import Place
from tests.cli.deck import Deck
from tests.remote.conftest import Serve
from tests.remote.far import Far, far_of
from tests.remote.sshd import User
from tests.remote.test_agent_gpu import EIGHT, ROW, UUID, script

PLACE = Place("gpu", parse_address("ssh:someone@box.example:2222"), key_file=Path("/home/someone/key"))
FOUND = FoundWell("boot", True, ({"index": "0", "name": "H200", "uuid": "GPU-0", "driver": "1"},))


@dataclass(frozen=True)
class Counted:
    """A target whose nvidia-smi writes down that it was asked for its cards."""

    far: Far
    folder: Path

    def answers(self, body: str) -> None:
        """A trial asks for its own card alone."""
        count = f'case "$*" in *--id=*) ;; *gpu=*) echo >> {self.folder}/asked;; esac'
        script(self.folder, f"{count}\n{body}")

    def shows(self, cards: str, processes: str = "") -> None:
        (self.folder / "cards").write_text(cards)
        (self.folder / "processes").write_text(processes)
        body = f'case "$1" in *gpu=*) cat {self.folder}/cards;; *) cat {self.folder}/processes;; esac'
        self.answers(body)

    @property
    def asked(self) -> int:
        asked = self.folder / "asked"
        return len(asked.read_text().splitlines()) if asked.exists() else 0

    @property
    def entries(self) -> list[Path]:
        folder = self.far.user.folder / ".cache" / "kerneldeck-health"
        return list(folder.iterdir()) if folder.is_dir() else []

    def change_entry(self, **values: object) -> None:
        (entry,) = self.entries
        entry.write_text(json.dumps({**json.loads(entry.read_text()), **values}))

    def sent(self) -> list[Path]:
        return [path for path in (self.far.scratch / "blobs").rglob("*") if path.is_file()]

    def run(self, *words: str, code: int = 0) -> dict[str, Any]:
        return self.far.deck.run(*(words or ("run",)), "--json", env=self.far.env, code=code).answer


@pytest.fixture
def there(tmp_path: Path, user: User, serve: Serve) -> Counted:
    folder = tmp_path / "bin"
    folder.mkdir()
    home = tmp_path / "sshd1" / "home"
    server = serve(f"SetEnv HOME={home} PATH={folder}:/usr/local/bin:/usr/bin:/bin")
    counted = Counted(far_of(tmp_path, user, server), folder)
    counted.shows(ROW.format(0, 0, 1))
    return counted


def test_runs_in_a_row_ask_once_until_the_entry_is_old(there: Counted) -> None:
    for words in (["run"], ["verify"]):
        there.run(*words)
    assert there.asked == 1
    there.change_entry(wall_s=there.entries[0].stat().st_mtime - FRESH_S)
    there.run()
    assert there.asked == 2


def test_a_sweep_pays_for_it_once(there: Counted, knobbed: Deck) -> None:
    swept = knobbed.json("sweep", "config", env=there.far.env)
    assert swept["screened"] and there.asked == 1


def test_a_machine_that_was_restarted_is_looked_at_again(there: Counted) -> None:
    there.run()
    there.change_entry(boot_id="of another machine")
    there.run()
    assert there.asked == 2


def test_the_facts_are_the_same_whether_remembered_or_asked(there: Counted) -> None:
    there.shows(EIGHT)
    there.far.describe(gpu=3)
    there.run()
    there.run()
    with closing(sqlite3.connect(there.far.deck.root / ".kerneldeck" / "state.sqlite3")) as database:
        rows = database.execute("SELECT contract_id, count(*) FROM trials GROUP BY contract_id").fetchall()
    assert [count for _, count in rows] == [2] and there.asked == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo 'Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error'; exit 15", "15"),
        (f"echo '{ROW.format(0, 0, 1).replace('143771', '[GPU is lost]')}'", "[GPU is lost]"),
    ],
    ids=["no handle", "fallen off the bus"],
)
def test_a_sick_gpu_starts_no_sync_and_is_never_taken_for_well(there: Counted, body: str, words: str) -> None:
    there.answers(body)
    error = there.run(code=3)["error"]
    assert error["code"] == "target.gpu" and words in error["sentence"]
    assert there.entries == [] and there.sent() == [] and there.far.left() == []
    assert there.run("health", code=3)["stage"] == "gpu"
    assert there.entries == [] and there.asked == 2


def test_a_lost_card_beside_the_one_in_use_stops_nothing(there: Counted) -> None:
    there.shows(EIGHT.replace(UUID.format(5), "[GPU is lost]"))
    there.far.describe(gpu=3)
    assert there.run()["status"] == "ok" and there.run("health")["status"] == "ok"
    there.far.describe(gpu=5)
    assert "does not work: [GPU is lost]" in there.run(code=3)["error"]["sentence"]


def test_too_little_room_starts_no_sync_even_when_all_was_well(there: Counted) -> None:
    there.run("health")
    there.far.describe(min_free_mb=1e8)
    error = there.run(code=3)["error"]
    assert error["code"] == "target.scratch" and "100,000,000 wanted" in error["sentence"]
    assert error["hint"] and there.sent() == []
    assert there.run("health", "--min-free-mb", "1")["status"] == "ok"


def test_a_crash_that_a_sick_gpu_could_have_caused_is_followed_by_a_look(there: Counted) -> None:
    there.far.deck.kernel("exit 7")
    assert there.far.deck.json("run", env=there.far.env, code=None)["status"] == "crash"
    assert there.asked == 1 and there.entries == []


def test_a_fault_forgets_the_entry(there: Counted) -> None:
    toml = there.far.deck.read("kerneldeck.toml")
    there.far.deck.write("kerneldeck.toml", toml.replace('["./benchmark.sh", "dev"]', '["no-such-program"]'))
    there.run("health")
    assert len(there.entries) == 1
    assert there.run(code=3)["stage"] == "spawn"
    assert there.entries == []


def test_health_looks_afresh_unless_told_that_a_minute_does_not_matter(there: Counted) -> None:
    there.shows(ROW.format(0, 0, 1), f"{UUID.format(0)}, 4242, 1024, /home/someone/bin/python3\n")
    first, second = there.run("health"), there.run("health")
    assert there.asked == 2 and (first["cached"], second["age_s"]) == (False, None)
    timed = [stage["stage"] for stage in first["stages"] if stage["ms"] is not None]
    assert timed == ["dns", "connect", "auth", "shell", "scratch", "gpu"]
    there.far.user.config.write_text("")  # nobody is connected to for what is known
    known = there.run("health", "--cached")
    assert known["cached"] and 0 <= known["age_s"] < FRESH_S
    assert known["gpus"] == second["gpus"] and known["processes"][0]["name"] == "python3"
    assert {stage["state"] for stage in known["stages"]} == {"ok"} and there.asked == 2
    assert " s ago" in there.far.deck.run("target", "check", "gpu", "--cached", env=there.far.env).out
    assert there.run("health", "--cached", "--min-free-mb", "1e9", code=3)["cached"] is False


def test_an_entry_names_neither_address_nor_user_nor_key(there: Counted) -> None:
    there.far.describe(key_file=str(there.far.user.key))
    there.run("health")
    (entry,) = there.entries
    assert entry.stat().st_mode & 0o777 == 0o600
    kept = f"{entry.name} {entry.read_text()}"
    for private in ("127.0.0.1", "box", str(there.far.user.key), str(there.far.scratch), "someone"):
        assert private not in kept


@dataclass
class Clocks:
    wall_s: float = 1e9
    since_start_s: float = 5e3

    def cache(self, folder: Path) -> HealthCache:
        return HealthCache(folder, wall_s=lambda: self.wall_s, since_start_s=lambda: self.since_start_s)

    def tick(self, wall_s: float, since_start_s: float) -> None:
        self.wall_s += wall_s
        self.since_start_s += since_start_s


@pytest.fixture
def clocks() -> Iterator[Clocks]:
    yield Clocks()


@pytest.mark.parametrize(
    ("wall_s", "since_start_s", "is_fresh"),
    [
        (59, 59, True),
        (61, 61, False),
        (-3600, 30, False),  # put back by an hour: not young for an hour more
        (30, 61, False),  # put back by half a minute
        (3600, 30, False),
        (30, -4000, False),  # restarted
    ],
)
def test_no_clock_makes_an_entry_younger(
    tmp_path: Path, clocks: Clocks, wall_s: float, since_start_s: float, is_fresh: bool
) -> None:
    cache = clocks.cache(tmp_path / "c")
    cache.keep(PLACE, FOUND)
    clocks.tick(wall_s, since_start_s)
    assert (cache.fresh(PLACE) is not None) is is_fresh


def test_places_do_not_share_an_entry_but_its_names_do(tmp_path: Path, clocks: Clocks) -> None:
    cache = clocks.cache(tmp_path / "c")
    cache.keep(PLACE, FOUND)
    assert cache.fresh(replace(PLACE, name="ssh:box", source="elsewhere")) == FOUND
    for other in ({"gpu": "1"}, {"scratch": "/s"}, {"wrapper": ("docker",)}, {"environment": {"A": "1"}}):
        assert cache.fresh(replace(PLACE, **other)) is None  # type: ignore[arg-type]
    cache.forget(PLACE)
    assert cache.fresh(PLACE) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_bytes(b"\xff" * 2_000_000),
        lambda path: path.write_text(path.read_text().replace('"wall_s": ', '"wall_s": 1')),
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: changed(path, gpus=[{}]),
        lambda path: changed(path, gpus=[{**FOUND.gpus[0], "index": 0}]),
        lambda path: changed(path, gpus=[{**FOUND.gpus[0], "throttle_reasons": 3}]),
        lambda path: changed(path, processes=[{"pid": 1, "name": "x", "memory_mib": "much"}]),
        lambda path: changed(path, processes=[{}]),
        lambda path: changed(path, free_mb=float("inf")),
        lambda path: changed(path, ms={"dns": float("nan")}),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text(path.read_text().replace('"free_mb": 0', '"free_mb": ' + "9" * 5000)),
    ],
)
def test_what_cannot_be_read_is_not_known(
    tmp_path: Path, clocks: Clocks, spoil: Callable[[Path], object]
) -> None:
    cache = clocks.cache(tmp_path / "c")
    cache.keep(PLACE, FOUND)
    spoil(next((tmp_path / "c").iterdir()))
    assert cache.fresh(PLACE) is None
    cache.keep(PLACE, FOUND)  # no matter whether that works


def changed(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_without_a_home_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.targets.ssh.home.expanded", none_here)
    assert cache_folder({}) is None
    cache = HealthCache(cache_folder({}))
    cache.keep(PLACE, FOUND)
    assert cache.fresh(PLACE) is None
    cache.forget(PLACE)


def none_here(text: str) -> Path:
    raise ValueError(text)


def test_a_folder_that_cannot_be_made_only_means_that_nothing_is_known(
    tmp_path: Path, clocks: Clocks
) -> None:
    (tmp_path / "file").touch()
    cache = clocks.cache(tmp_path / "file" / "c")
    cache.keep(PLACE, FOUND)
    cache.forget(PLACE)
    assert cache.fresh(PLACE) is None


def test_entries_of_long_ago_are_removed(tmp_path: Path, clocks: Clocks) -> None:
    cache = HealthCache(tmp_path / "c")
    cache.keep(PLACE, FOUND)
    (old,) = (tmp_path / "c").iterdir()
    os.utime(old, (1, 1))
    cache.keep(replace(PLACE, gpu="1"), FOUND)
    assert not old.exists() and len(list((tmp_path / "c").iterdir())) == 1


def test_the_users_cache_folder_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder({}) == Path("/home/someone/.cache/kerneldeck-health")
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/kerneldeck-health")
    assert cache_folder({"XDG_CACHE_HOME": "relative"}) == cache_folder({})
