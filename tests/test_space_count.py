"""Counting valid combinations without listing them, against listing them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConfigFault
from core.space import Space
from core.space_count import Count, count_valid
from core.workspace.config import Knob
from core.workspace.constraints import parse
from core.workspace.toml_reader import read_workspace

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
CONSTRAINTS = ("a <= b", "a + b < 2 * c", "d != 2 or a == 1", "c % 2 == 0", "b == d", "a < e")


def space_of(sizes: dict[str, int], constraints: list[str]) -> Space:
    knobs = tuple(Knob(name, tuple(range(1, size + 1))) for name, size in sizes.items())
    return Space(knobs, tuple(parse(text, frozenset(sizes)) for text in constraints))


@given(
    st.fixed_dictionaries({name: st.integers(1, 5) for name in "abcde"}),
    st.lists(st.sampled_from(CONSTRAINTS), max_size=4, unique=True),
    st.sets(st.sampled_from("abcde")),
    st.fixed_dictionaries({name: st.integers(1, 5) for name in "abcde"}),
)
def test_it_counts_what_listing_finds(
    sizes: dict[str, int], constraints: list[str], names: set[str], held: dict[str, int]
) -> None:
    space = space_of(sizes, constraints)
    chosen = {knob.name: knob.values for knob in space.knobs if knob.name in names}
    listed = [
        overlay
        for overlay in space.overlays(chosen)
        if all(constraint.holds({**held, **overlay}) for constraint in space.constraints)
    ]
    raw = math.prod(len(values) for values in chosen.values())
    assert count_valid(space, held, chosen) == Count(raw, len(listed))


def test_a_constraint_with_a_knob_of_neither_is_left_out() -> None:
    space = space_of({"a": 4, "b": 4}, ["a < b"])
    assert count_valid(space, {}, {"a": (1, 2, 3, 4)}) == Count(4, 4)
    assert count_valid(space, {"b": 3}, {"a": (1, 2, 3, 4)}) == Count(4, 2)


def test_a_space_of_many_millions_is_counted_in_a_few_thousand_steps() -> None:
    space = Space.of(read_workspace(KERNELS / "tensor_plan").config)
    chosen = {knob.name: knob.values for knob in space.knobs}
    found = count_valid(space, {}, chosen, most_steps=5000)
    assert found.exact and found.raw == space.raw_count() > 10**10
    # block_k <= 2 block_n: 18 of 24; persistent needs 4 warps: 15 of 16; split_k 4 is not scalar: 8 of 9.
    assert found.valid == found.raw * 18 * 15 * 8 // (24 * 16 * 9)


def test_what_is_too_tangled_to_count_is_estimated() -> None:
    names = [f"k{number}" for number in range(8)]
    space = space_of(dict.fromkeys(names, 8), [f"({' + '.join(names)}) % 2 == 0"])
    found = count_valid(space, {}, {knob.name: knob.values for knob in space.knobs}, most_steps=1000)
    assert not found.exact
    assert found.valid == pytest.approx(8**8 / 2, rel=0.1)


def test_a_constraint_that_cannot_be_computed_is_told() -> None:
    space = space_of({"a": 2, "b": 2}, ["a / (b - b) > 1"])
    with pytest.raises(ConfigFault, match="cannot be computed"):
        count_valid(space, {}, {"a": (1, 2), "b": (1, 2)})
