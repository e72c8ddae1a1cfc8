"""Which configurations a sweep chooses from the space, and which it refuses."""

from __future__ import annotations

import json

import pytest

from tests.cli.deck import CONFIG_TOML, Deck

# Twelve knobs of ten values: 10¹² combinations.
HUGE = "".join(f"k{number} = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n" for number in range(12))
ALL_EQUAL = ", ".join(f'"k{number} == k0"' for number in range(1, 12))


def spacious(deck: Deck, constraints: str = "") -> Deck:
    head = f"constraints = [{constraints}]\n" + CONFIG_TOML.partition("[knobs]")[0]
    deck.write("kerneldeck.toml", f"{head}[knobs]\n{HUGE}")
    return deck


def chosen(deck: Deck, *words: str) -> list[dict[str, int]]:
    return deck.json("sweep", "config", "--dry-run", *words)["configs"]


def test_constraints_leave_out_what_they_forbid(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", 'constraints = ["block * warps <= 4", "block != 1"]\n' + CONFIG_TOML)
    assert chosen(knobbed) == [{"block": 2, "warps": 1}, {"block": 2, "warps": 2}, {"block": 4, "warps": 1}]
    fault = knobbed.fault("sweep", "config", "--config", '{"block": 8}')
    assert "constraint broken, with the other knobs as they are: block * warps <= 4" in fault
    fault = knobbed.fault("sweep", "config", "--config", '{"block": 4, "warps": 2}')
    assert "constraint broken: block * warps <= 4 (block = 4, warps = 2)" in fault


def test_a_sample_is_the_same_for_the_same_seed(knobbed: Deck) -> None:
    first = chosen(knobbed, "--max-configs", "4", "--seed", "1")
    assert len(first) == 4 and first == chosen(knobbed, "--max-configs", "4", "--seed", "1")
    assert first != chosen(knobbed, "--max-configs", "4", "--seed", "2")


def test_a_sample_of_10_to_the_12_is_quick_distinct_and_reproducible(knobbed: Deck) -> None:
    spacious(knobbed)
    done = knobbed.run("sweep", "config", "--dry-run", "--seed", "3")
    assert "120 configurations drawn from 1,000,000,000,000 combinations, seed 3" in done.out
    assert "and 100 more (--json prints all)" in done.out
    sample = chosen(knobbed, "--seed", "3")
    assert len({json.dumps(one) for one in sample}) == 120
    assert sample == chosen(knobbed, "--seed", "3")


def test_ten_valid_ones_among_10_to_the_12_are_found(knobbed: Deck) -> None:
    spacious(knobbed, ALL_EQUAL)
    found = chosen(knobbed, "--seed", "3")
    assert len(found) == 10 and all(len(set(one.values())) == 1 for one in found)


def test_a_space_without_any_valid_one_is_refused(knobbed: Deck) -> None:
    spacious(knobbed, '"k0 + k1 > 100"')
    fault = knobbed.fault("sweep", "config")
    assert "none of the 1,000,000,000,000 combinations was found to satisfy the constraints" in fault
    knobbed.write("kerneldeck.toml", 'constraints = ["block > 8"]\n' + CONFIG_TOML)
    assert "none of the 8 combinations" in knobbed.fault("sweep", "config")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "block=3"], "block: 3 is not one of 1, 2, 4, 8"),
        (["--set", "block=true"], "block: True is not one of 1, 2, 4, 8"),
        (["--set", "blok=1"], "blok is no knob of this workspace (knobs: block, warps)"),
        (["--set", "block="], "'block=' names no values"),
        (["--num-warps", ""], "num_warps: no value is named"),
        (["--config", "{"], "'{' is no JSON"),
        (["--config", '{"block": NaN}'], "NaN is no number that JSON knows"),
        (["--config", '{"block": 5}'], 'configuration {"block": 5}: block: 5 is not one of'),
        (["--max-configs", "0"], "max_configs: 0 is not at least 1"),
        (["--max-seconds", "0.5"], "max_seconds: 0.5 is not at least 1"),
        (["--seed", "-1"], "seed: -1 is not at least 0"),
        (["--mode", "nightly"], "there is no mode 'nightly'"),
        (["--verifier"], "mode dev has no verifier"),
    ],
)  # fmt: skip
def test_what_is_not_legal_is_refused_before_anything_runs(
    knobbed: Deck, words: list[str], said: str
) -> None:
    before = knobbed.files()
    assert said in knobbed.fault("sweep", "config", *words)
    assert knobbed.files() == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "config.json is missing"),
        (b'{"block": 1,\n "warps": }\n', "config.json:2:"),
        (b"[1, 2]\n", "config.json: holds no JSON object"),
        (b'{"block": "\xff"}', "config.json: no JSON"),
        (b"[" * 100_000, "config.json: no JSON"),
    ],
)
def test_a_config_file_that_cannot_be_used_is_named(knobbed: Deck, content: bytes | None, said: str) -> None:
    if content is None:
        (knobbed.root / "config.json").unlink()
    else:
        knobbed.write("config.json", content)
    assert said in knobbed.fault("sweep", "config")
    assert said in knobbed.fault("apply", "--config", '{"block": 4}')
    assert knobbed.run("inspect").out, "looking still works"


def test_without_knobs_keys_of_the_config_file_may_be_set_one_by_one(knobbed: Deck) -> None:
    knobbed.write("kerneldeck.toml", CONFIG_TOML.partition("[knobs]")[0])
    assert "no knobs are declared in kerneldeck.toml" in knobbed.fault("sweep", "config")
    answer = knobbed.json("sweep", "config", "--config", '{"block": 4}')
    assert answer["winner"]["config"] == {"block": 4}
    fault = knobbed.fault("sweep", "config", "--config", '{"blok": 4}')
    assert "blok is no key of the config file (keys: block, warps)" in fault
    assert "not a number, a word or a truth value" in knobbed.fault(
        "sweep", "config", "--config", '{"block": {}}'
    )


def test_a_workspace_without_config_file_has_nothing_to_sweep(deck: Deck) -> None:
    assert "names no config file, so there is nothing to sweep" in deck.fault("sweep", "config")
