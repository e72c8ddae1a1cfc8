"""`kerneldeck target add|list|use|remove`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.deck import Deck


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str | None]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_a_target_is_added_used_and_removed(deck: Deck, env: dict[str, str | None], tmp_path: Path) -> None:
    words = [
        "--gpu",
        "2",
        "--wrapper",
        "docker exec -i box",
        "--env",
        "A=b=c",
        "--description",
        "the big one",
    ]
    added = deck.json("target", "add", "gpu", "me@box:2222", *words, env=env)
    assert added["outcome"] == "added" and added["default"] == "local"
    assert added["targets"] == [
        {"name": "gpu", "host": "ssh:box:2222", "gpu": "2", "description": "the big one", "in_use": False}
    ]
    path = tmp_path / "config/kerneldeck/targets.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert '"docker",' in text and 'A = "b=c"' in text and 'host = "me@box:2222"' in text
    assert deck.json("target", "use", "gpu", env=env)["default"] == "gpu"
    shown = deck.run("target", "list", env=env).out
    assert "* gpu: ssh:box:2222, GPU 2  the big one" in shown and "trials run on: gpu" in shown
    assert deck.json("target", "use", "local", env=env)["default"] == "local"
    assert deck.json("target", "remove", "gpu", env=env)["targets"] == []


def test_the_environment_goes_before_the_one_in_use(deck: Deck, env: dict[str, str | None]) -> None:
    deck.run("target", "add", "gpu", "box", "--use", env=env)
    listed = deck.json("target", "list", env={**env, "KERNELDECK_GPU_HOST": "other"})
    assert (listed["default"], listed["default_from"]) == ("ssh:other", "KERNELDECK_GPU_HOST")
    listed = deck.json("target", "list", env={**env, "HARNESSGYM_GPU_HOST": "third"})
    assert listed["default"] == "ssh:third"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add"], "the name is missing"),
        (["add", "gpu"], "the host is missing"),
        (["add", "local", "box"], "local"),
        (["add", "gpu", "a b"], "no host name"),
        (["add", "gpu", "box", "--gpu", "first"], "neither an index"),
        (["add", "gpu", "box", "--env", "A"], "sets no variable"),
        (["add", "gpu", "box", "--wrapper", "'open"], "wrapper"),
        (["add", "gpu", "box", "--env", "A=\udcff"], "environment: is no UTF-8"),
        (["add", "gpu", "box", "--description", "\udcff"], "description: is no UTF-8"),
        (["use", "gpv"], "no target is called"),
        (["remove", "gpv"], "no target is called"),
        (["check", "gpv"], "no target is called"),
    ],
)
def test_what_cannot_be_is_refused(
    deck: Deck, env: dict[str, str | None], words: list[str], told: str
) -> None:
    assert told in deck.fault("target", *words, env=env)


def test_an_unknown_target_is_refused_before_anything_runs(deck: Deck, env: dict[str, str | None]) -> None:
    assert "for a host of ~/.ssh/config write ssh:box" in deck.fault("run", "--target", "box", env=env)
    assert not (deck.root / ".kerneldeck").exists()
