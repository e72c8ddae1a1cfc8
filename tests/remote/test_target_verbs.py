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
    assert added["next"] == ["kerneldeck target check gpu"] and added["warning"] == ""
    assert added["targets"] == [
        {
            "name": "gpu", "host": "ssh:box:2222", "gpu": "2", "description": "the big one", "in_use": False,
            "wrapper": ["docker", "exec", "-i", "box"], "environment": ["A"], "scratch": "", "python": "",
            "own_key": False, "min_free_mb": 256.0, "scratch_limit_mb": 10_000.0,
        }
    ]  # fmt: skip
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
    assert [row["in_use"] for row in listed["targets"]] == [False]
    listed = deck.json("target", "list", env={**env, "HARNESSGYM_GPU_HOST": "third"})
    assert listed["default"] == "ssh:third"
    deck.run("target", "use", "local", env=env)
    listed = deck.json("target", "list", env={**env, "KERNELDECK_GPU_HOST": "gpu"})
    assert (listed["default"], listed["default_from"]) == ("gpu", "KERNELDECK_GPU_HOST")
    assert [row["in_use"] for row in listed["targets"]] == [True]
    assert deck.run("call", "list_targets", env=env).answer["default"] == "local"


def test_what_a_target_is_made_of_is_listed_without_its_secrets(
    deck: Deck, env: dict[str, str | None], tmp_path: Path
) -> None:
    words = ["--python", "/opt/py/bin/python3", "--scratch", "/big", "--env", "TOKEN=secret", "--use"]
    key = tmp_path / "no-key"
    limits = ["--scratch-limit-mb", "500", "--min-free-mb", "1000", "--key-file", str(key)]
    said = deck.run("target", "add", "gpu", "box", *words, *limits, env=env).out
    assert f"warning: there is no key file {key}" in said and "next: kerneldeck target check gpu" in said
    shown = deck.run("target", "list", env=env).out
    details = "python /opt/py/bin/python3, scratch /big, variables TOKEN, key its own, scratch below 500 MB"
    assert f"{details}, free at least 1,000 MB" in shown
    assert "secret" not in shown and "no-key" not in shown
    assert "secret" not in deck.run("target", "list", "--json", env=env).out


def test_a_target_is_described_anew(deck: Deck, env: dict[str, str | None]) -> None:
    deck.run("target", "add", "gpu", "box", "--gpu", "1", "--use", env=env)
    assert "the same with --replace" in deck.fault("target", "add", "gpu", "other", env=env)
    (row,) = deck.json("target", "add", "gpu", "other", "--replace", env=env)["targets"]
    assert (row["host"], row["gpu"], row["in_use"]) == ("ssh:other", "", True)


def test_a_described_name_may_be_written_with_the_scheme(
    deck: Deck, env: dict[str, str | None], tmp_path: Path
) -> None:
    env = {**env, "HOME": str(tmp_path)}
    deck.run("target", "add", "h200", "box", "--gpu", "1", env=env)
    at = {**env, "KERNELDECK_GPU_HOST": "ssh:h200"}
    assert deck.json("target", "list", env=at)["default"] == "h200"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").symlink_to(tmp_path / "dotfile")
    (tmp_path / ".ssh/config").write_text("Host *\n  User me\nInclude more/*.conf\n")
    assert deck.json("target", "list", env=at)["default"] == "h200"
    (tmp_path / ".ssh/more").mkdir()
    (tmp_path / ".ssh/more/a.conf").write_text("Host other h2??\n")
    assert deck.json("target", "list", env=at)["default"] == "ssh:h200", "a host of ~/.ssh/config goes first"


def test_a_name_that_is_not_described_leads_to_add(deck: Deck, env: dict[str, str | None]) -> None:
    for verb in ("use", "remove"):
        for name in ("gpu1", "ssh:gpu1"):
            said = deck.fault("target", verb, name, env=env)
            assert "add it first: kerneldeck target add NAME HOST; targets: local" in said
            assert "write ssh:" not in said
    assert "see: kerneldeck target use --help" in deck.fault("target", "use", env=env)


def test_health_takes_a_target_by_name_or_option(deck: Deck, env: dict[str, str | None]) -> None:
    deck.run("target", "add", "gpu", "box", env=env)
    for words in (["health", "gpu"], ["health", "--target", "gpu"], ["target", "check", "--target", "gpu"]):
        assert deck.json(*words, "--dry-run", env=env)["target"] == "ssh:gpu"
    said = deck.fault("health", "gpu", "--target", "local", env=env)
    assert "two targets are named: gpu and local" in said
    said = deck.fault("health", "--target", "gpu", "--host", "box", env=env)
    assert "kerneldeck health gpu, or kerneldeck health --host box" in said
    assert "add --host HOST" in deck.fault("health", "--target", "gpu", "--port", "1", env=env)


def test_what_is_of_this_machine_is_a_usage_fault(deck: Deck, env: dict[str, str | None]) -> None:
    assert "kerneldeck gc" in deck.fault("target", "clean", "local", env=env)
    said = deck.fault("run", "--remote", "true", "--target", "local", env=env)
    assert "--target local does not" in said and not (deck.root / ".kerneldeck").exists()


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
