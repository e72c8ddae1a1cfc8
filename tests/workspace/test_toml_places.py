"""Where a key stands in a kerneldeck.toml, and that what is written is read back the same."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.workspace.config import (
    Extras,
    Files,
    Gate,
    Knob,
    Mode,
    Objective,
    Options,
    WorkspaceConfig,
)
from core.workspace.toml_positions import line_of
from core.workspace.toml_reader import AGGREGATES, parse_toml
from core.workspace.toml_writer import to_toml


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb.c.d = 2\n", ("b", "c", "d"), 2),
        ("a = 1\nb.c.d = 2\n", ("b", "c"), 2),
        ("a = 1\nb.c.d = 2\n", ("b", "x"), 2),
        ("a = 1\n", ("x", "y"), 0),
        ("[t]\n# x\n'x' = 1\n", ("t", "x"), 3),
        ('[t]\n"x.y" = 1\n', ("t", "x.y"), 2),
        ('[t]\n"a\\u0062" = 1\n', ("t", "ab"), 2),
        ("[t . u]\nv = 1\n", ("t", "u", "v"), 2),
        ("t = { a = 1, b = { c = 2 } }\n", ("t", "b", "c"), 1),
        ('t = [\n 1,\n # k\n 2]\nk = """\nk = 3\n"""\n', ("k",), 5),
        ("[[t]]\na = 1\n[[t]]\nb = 2\n", ("t",), 1),
        ("[a.b]\nx = 1\n[a]\ny = 2\n", ("a",), 1),
        ("[a.b]\nx = 1\n[a]\ny = 2\n", ("a", "y"), 4),
        ('s = "a\u2028b\x85c"\nk = 1\n', ("k",), 2),
        ("a = 1\r\nb = 2\r\n", ("b",), 2),
        ("a = 1", ("a",), 1),
    ],
)
def test_a_key_is_found_however_it_is_written(text: str, path: tuple[str, ...], line: int) -> None:
    assert line_of(text, path) == line


def test_an_item_is_found_in_its_own_list() -> None:
    text = 'x = ["two"]\nlist = [\n  "one",\n  "two",\n]\ny = ["three"]\n'
    assert line_of(text, ("list",), "two") == 4
    assert line_of(text, ("list",), "three") == 2


def test_a_long_file_is_searched_in_time() -> None:
    text = "".join(f"[t{number}]\nlist = [\n  1,\n  2,\n]\n" for number in range(600))
    began_s = time.process_time()
    assert line_of(text, ("t599", "list")) == 2997
    assert line_of(text, ("t300", "list"), "2") == 1504
    assert time.process_time() - began_s < 2


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
plain = st.text(st.characters(codec="utf-8"), max_size=8)
parts = st.text("abc xyz-_é\"'", min_size=1, max_size=5).filter(lambda part: part not in (".", ".."))
paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | plain
)
values = st.lists(scalars, min_size=1, max_size=4, unique_by=lambda value: (isinstance(value, bool), value))
commands = st.lists(names, min_size=1, max_size=3).map(tuple)
seconds = st.floats(min_value=0.001, max_value=1e9)
cpu_seconds = st.none() | st.floats(min_value=1, max_value=1e9)
identifiers = st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True)


@st.composite
def configs(draw: st.DrawFn) -> WorkspaceConfig:
    files = draw(st.lists(paths, min_size=1, max_size=4, unique=True))
    cut = draw(st.integers(1, len(files)))
    mode_names = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    knob_names = draw(st.lists(names, max_size=3, unique=True))
    simple = [name for name in knob_names if name.isidentifier() and name.isascii() and name.islower()]
    fractions = st.floats(0, 1, exclude_max=True)
    few = st.lists(plain, max_size=2).map(tuple)
    no_command = st.just(())
    config_anyway = draw(st.booleans())
    return WorkspaceConfig(
        name=draw(names),
        objective=Objective(
            draw(names), draw(st.sampled_from(["lower", "higher"])), draw(st.sampled_from(mode_names)),
            draw(plain), draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from(["median", "minimum"])),
            draw(st.booleans()), draw(st.none() | st.floats(-1e9, 1e9)),
        ),
        files=Files(tuple(files[:cut]), tuple(files[cut:]), draw(few)),
        modes={
            name: Mode(name, draw(commands), draw(commands | no_command), draw(seconds), draw(cpu_seconds))
            for name in mode_names
        },
        config_file=files[0] if knob_names or config_anyway else "",
        knobs=tuple(Knob(name, tuple(draw(values)), draw(plain)) for name in knob_names),
        constraints=tuple(f"{name} == {name}" for name in simple if name not in ("true", "false")),
        options=Options(draw(plain), draw(plain)),
        gate=Gate(draw(fractions), draw(fractions)),
        extras=Extras(draw(plain), draw(plain), draw(st.booleans()), draw(few)),
        state_dir=draw(plain),
    )  # fmt: skip


@given(configs())
def test_what_is_written_is_read_back_the_same(config: WorkspaceConfig) -> None:
    text = to_toml(config)
    again = parse_toml(text)
    assert again == config
    assert [type(value) for knob in again.knobs for value in knob.values] == [
        type(value) for knob in config.knobs for value in knob.values
    ]
    assert to_toml(again) == text


@given(configs(), st.data())
def test_any_written_key_is_found_on_its_line(config: WorkspaceConfig, drawn: st.DataObject) -> None:
    text = to_toml(config)
    name = drawn.draw(st.sampled_from(sorted(config.modes)))
    line = text.split("\n")[line_of(text, ("modes", name, "timeout_s")) - 1]
    assert line.startswith("timeout_s = ")
    assert float(line.removeprefix("timeout_s = ")) == config.modes[name].timeout_s
