"""A kerneldeck.toml that is wrong: the place, what is wrong there, and what to write."""

from __future__ import annotations

import pytest

from tests.cli.deck import CONFIG_TOML, Deck

MUTABLE = 'mutable = ["kernel.sh", "config.json"]'
BLOCK = "block = [1, 2, 4, 8]"
UNIT = 'unit = "ms"'


def constrained(text: str) -> str:
    return f"schema = 1\nconstraints = [{text}]"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "sums"', "name = ", "toml:2: Invalid value"),
        ('name = "sums"', "", "name: is missing\n  write name as a text in quotes"),
        ('name = "sums"', 'nam = "sums"', "toml:2: nam: is not a key of this table\n  did you mean name?"),
        ("schema = 1", "schema = 2", "toml:1: schema: 2 is not a schema this version reads"),
        (UNIT, 'direction = "down"', "toml:6: objective.direction: 'down' is not one of lower, higher"),
        (UNIT, 'decide = "x"', "toml:6: objective.decide: there is no mode 'x'\n  modes: dev, final"),
        (MUTABLE, 'mutable = ["../x"]', "toml:10: files.mutable: '../x' leaves the workspace"),
        (MUTABLE, 'mutable = ["kernel.sh"]', "config.json is not mutable"),
        ("timeout_s = 60", "timeout_s = inf", "modes.dev.timeout_s: inf is not a finite number"),
        ('benchmark = ["./benchmark.sh", "dev"]', "", "modes.dev: has no benchmark command"),
        ("[modes.dev]", "[modes.dev]\nbenchmrk = []", "did you mean benchmark?"),
        (BLOCK, "block = []", "knobs.block: has no list of values"),
        ("schema = 1", constrained('"blok < 3"'), "'blok' is no knob of this workspace"),
        ("schema = 1", constrained("\"open('x')\""), "only min, max and abs may be called"),
    ],
)
def test_a_fault_in_the_toml_is_told_with_its_place(knobbed: Deck, old: str, new: str, said: str) -> None:
    assert old in CONFIG_TOML
    knobbed.write("kerneldeck.toml", CONFIG_TOML.replace(old, new, 1))
    before = knobbed.files()
    fault = knobbed.fault("inspect")
    assert said in fault
    assert knobbed.files() == before and not (knobbed.root / ".kerneldeck").exists()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00" * 50, b"[[[[", b"a = " + b"[" * 5000])
def test_no_toml_at_all_is_a_sentence(knobbed: Deck, content: bytes) -> None:
    knobbed.write("kerneldeck.toml", content)
    assert "kerneldeck.toml" in knobbed.fault("run")


def test_every_command_says_the_same_of_a_wrong_toml(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", CONFIG_TOML.replace("metric", "metrics"))
    verbs = (["inspect"], ["run"], ["verify"], ["sweep", "config"], ["reseal"], ["unlock"])
    faults = {knobbed.fault(*words) for words in verbs}
    assert len(faults) == 1 and "did you mean metric?" in faults.pop()


def test_a_benchmark_command_that_is_not_there_is_infrastructure_with_its_name(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", CONFIG_TOML.replace("./verifier.sh", "./check.sh"))
    answer = knobbed.json("verify", code=3)
    assert answer["outcome"] == "pending" and answer["final"]["stage"] == "spawn"
    assert "./check.sh could not be started" in answer["reason"]


def test_needed_globs_that_match_nothing_are_told(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", CONFIG_TOML.replace("[files]", '[files]\nneeded = ["src/*.cu"]'))
    assert "files.needed: 'src/*.cu' matches nothing" in knobbed.fault("run")
