"""Finding the result in what a benchmark printed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.targets.json_output import last_object

RESULT = {"status": "passed", "score": 2.5, "cases": [{"name": "a", "score": 1}, {"name": "b", "score": 1.5}]}


@pytest.mark.parametrize("indent", [None, 0, 1, 2, "\t"])
@pytest.mark.parametrize(
    "before",
    ["", "warming up\n", "took {1, 2} s\n", "[INFO] ", "result: ", "\r 50%\r", "\ufeff", '{"a": 1}\n'],
)
@pytest.mark.parametrize("after", ["", "\n", "\r\n", "\n\n  \n", "\ndone\n", "\n{unfinished\n", '\n{"a": '])
def test_a_whole_object_is_found_between_other_words(before: str, after: str, indent: Any) -> None:
    assert last_object(before + json.dumps(RESULT, indent=indent) + after) == RESULT


def test_the_last_of_several_counts() -> None:
    assert last_object('{"n": 1}\nlog\n{"n": 2}\n{"n": 3}\nbye') == {"n": 3}
    assert last_object('{"n": 1}\n' * 50_000 + '{"n": 2}') == {"n": 2}


@pytest.mark.parametrize("indent", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "trace", ["", "\n", "\nTraceback (most recent call last):\n  File x\nValueError: y\n", "\nKilled\n"]
)
def test_a_cut_off_object_never_gives_one_of_its_cases(indent: int | None, trace: str) -> None:
    text = json.dumps(RESULT, indent=indent)
    for length in range(len(text) - 1, 0, -1):
        assert last_object(text[:length] + trace) is None


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_the_end_of_an_object_whose_beginning_was_left_out_is_no_result(indent: int | None) -> None:
    text = json.dumps(RESULT, indent=indent)
    for start in range(1, len(text)):
        assert last_object(f"log\n[99 bytes left out]\n{text[start:]}\n") is None


def test_a_hole_inside_an_object_is_not_read_over() -> None:
    text = json.dumps(RESULT, indent=0)
    for start in range(1, len(text) - 20):
        assert last_object(f"{text[:start]}\n[20 bytes left out]\n{text[start + 20 :]}\n") is None


@pytest.mark.parametrize(
    "text",
    ["", "passed", "[1]", '[{"n": 1}]', '[\n{"n": 1}\n]', '{"n": 1} more', "{'n': 1}", '"{}"', '  {"n": 1}'],
)
def test_what_is_no_object_on_lines_of_its_own_is_none(text: str) -> None:
    assert last_object(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"n": ' + "9" * 5000 + "}\n",
        '{"n":' * 100_000 + "\n",
        "{\n" * 500_000,
        '{"' + "a" * 4_000_000 + "\n",
        "x" * 4_000_000 + "\n",
        '{"n": "' + "\\u0000" * 600_000 + "\n",
        "\n" * 4_000_000,
        "\0\x1b\ufffd\n" * 100_000,
    ],
    ids=["digits", "deep", "braces", "string", "line", "escapes", "newlines", "controls"],
)
def test_rubbish_of_the_largest_size_is_passed_over_in_time(text: str) -> None:
    began_s = time.process_time()
    assert last_object(text + '{"n": 1}\n') == {"n": 1}
    assert time.process_time() - began_s < 2


def test_many_broken_objects_leave_the_last_to_be_found() -> None:
    assert last_object('{"\n' * 30_000 + json.dumps(RESULT)) == RESULT


@given(st.lists(st.text(st.sampled_from('{}[]",:\n a1'), max_size=30), max_size=5))
def test_whatever_came_before_a_result_of_its_own_line_counts(lines: list[str]) -> None:
    # Only words that leave an object or array open can swallow it: they are what a crash leaves.
    text = "\n".join(lines) + "\n"
    found = last_object(text + "end of log.\n" + json.dumps(RESULT) + "\n")
    assert found == RESULT
