"""The space that knobs and constraints span."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigFault
from core.space import Space, same
from core.workspace.config import Files, Knob, Mode, Objective, WorkspaceConfig

KNOBS = (Knob("tile", (16, 32, 64)), Knob("order", ("row", "column")), Knob("fast", (True, False)))


def space(*constraints: str, knobs: tuple[Knob, ...] = KNOBS) -> Space:
    modes = {"final": Mode("final", ("b",))}
    return Space.of(
        WorkspaceConfig("n", Objective("m"), Files(("c",), ()), modes, "c", knobs, tuple(constraints))
    )


def test_the_raw_count_is_the_product_of_the_domains() -> None:
    assert space().raw_count() == 12
    assert space(knobs=()).raw_count() == 1


def test_legal_values_have_no_faults_whole_or_in_part() -> None:
    some = space("tile < 64 or fast")
    assert some.faults({"tile": 32, "order": "row", "fast": False}) == []
    assert some.faults({"tile": 64}) == [], "a constraint is tested once all it names is known"
    assert some.faults({}) == []


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"tile": 48}, "tile: 48 is not one of 16, 32, 64"),
        ({"tile": "16"}, "tile: '16' is not one of 16, 32, 64"),
        ({"tile": True}, "tile: True is not one of 16, 32, 64"),
        ({"fast": 1}, "fast: 1 is not one of True, False"),
        ({"fast": 0.0}, "fast: 0.0 is not one of True, False"),
        ({"order": "Row"}, "order: 'Row' is not one of row, column"),
        ({"tyle": 16}, "tyle is no knob of this workspace (knobs: tile, order, fast)"),
        (
            {"tile": 64, "fast": False},
            "constraint broken: tile < 64 or fast (fast = False, tile = 64)",
        ),
    ],
)
def test_a_fault_names_the_value_and_what_is_legal(values: dict[str, object], fault: str) -> None:
    assert space("tile < 64 or fast").faults(values) == [fault]  # type: ignore[arg-type]


def test_every_fault_is_named() -> None:
    faults = space("tile < 64", "order == 'row'").faults({"tile": 64, "order": "column"})
    assert faults == [
        "constraint broken: tile < 64 (tile = 64)",
        "constraint broken: order == 'row' (order = 'column')",
    ]
    assert len(space().faults({"tile": 1, "order": 2, "x": 3})) == 3


def test_constraints_are_not_asked_about_values_outside_their_domains() -> None:
    assert space("tile % (tile - 48) == 0").faults({"tile": 48}) == ["tile: 48 is not one of 16, 32, 64"]


def test_a_constraint_that_cannot_be_computed_is_a_fault_of_the_toml() -> None:
    with pytest.raises(ConfigFault, match="cannot be computed"):
        space("order < 3").faults({"order": "row"})


def test_a_space_without_knobs_says_so() -> None:
    assert space(knobs=()).faults({"a": 1}) == ["a is no knob of this workspace (knobs: none are declared)"]


@pytest.mark.parametrize(
    ("value", "legal", "equal"),
    [(1, 1, True), (1.0, 1, True), (1, True, False), (True, True, True), (0, False, False), ("1", 1, False)],
)  # fmt: skip
def test_truth_values_are_no_numbers(value: object, legal: object, equal: bool) -> None:
    assert same(value, legal) is equal  # type: ignore[arg-type]


def test_overlays_are_every_combination_in_order() -> None:
    overlays = list(space().overlays({"order": ["row", "column"], "tile": [16, 64]}))
    assert overlays == [
        {"order": "row", "tile": 16},
        {"order": "row", "tile": 64},
        {"order": "column", "tile": 16},
        {"order": "column", "tile": 64},
    ]
    assert list(space().overlays({})) == [{}]
    assert list(space().overlays({"tile": []})) == []


def test_overlays_of_a_vast_space_come_one_by_one() -> None:
    vast = {f"k{number}": list(range(10)) for number in range(12)}
    first = next(iter(space().overlays(vast)))
    assert first == dict.fromkeys(vast, 0)


def test_a_sample_is_drawn_from_the_domains_and_repeats_with_its_seed() -> None:
    narrowed = {"tile": (16, 32), "order": ("row",)}
    samples = [space().sample(random.Random(seed), narrowed) for seed in (1, 1, *range(50))]
    assert samples[0] == samples[1]
    assert {sample["tile"] for sample in samples} == {16, 32}
    assert {sample["order"] for sample in samples} == {"row"}


domains = st.lists(st.integers(-4, 4), min_size=1, max_size=3, unique=True)


@given(domains, domains)
def test_what_has_no_faults_is_what_python_calls_legal(tiles: list[int], warps: list[int]) -> None:
    knobs = (Knob("tile", tuple(tiles)), Knob("warps", tuple(warps)))
    some = space("tile * warps <= 4", "tile != warps or tile > 0", knobs=knobs)
    legal = [o for o in some.overlays({"tile": tiles, "warps": warps}) if not some.faults(o)]
    assert legal == [
        {"tile": tile, "warps": warp}
        for tile, warp in itertools.product(tiles, warps)
        if tile * warp <= 4 and (tile != warp or tile > 0)
    ]
