"""What a call may say, for every face alike."""

from __future__ import annotations

import pytest

from core.errors import ArgumentFault
from core.operations.arguments import bind
from core.operations.catalogue import APPLY, OPERATIONS, REPEAT, RUN, SWEEP_CONFIG, VERIFY


def test_what_is_not_given_has_its_published_default() -> None:
    assert bind(RUN, {}) == {
        "mode": "dev", "verifier": False, "warmup": 20, "repeats": 50, "remote": "auto",
        "target": "", "timeout_seconds": None, "workspace_tag": "",
    }  # fmt: skip
    sweep = bind(SWEEP_CONFIG, {})
    assert (sweep["warmup"], sweep["repeats"], sweep["keep_best"], sweep["max_configs"]) == (
        5,
        15,
        False,
        120,
    )
    verify = bind(VERIFY, {})
    assert (verify["mode"], verify["verifier"], verify["restore_on_regression"]) == ("final", True, True)
    assert bind(REPEAT, {})["runs"] == 3
    assert bind(APPLY, {})["dry_run"] is True


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mod": "dev"}, "did you mean mode"),
        ({"mode": 1}, "not a text"),
        ({"warmup": 1.5}, "not a whole number"),
        ({"warmup": True}, "not a whole number"),
        ({"repeats": 0}, "at least 1"),
        ({"remote": "maybe"}, "one of auto, true, false"),
        ({"timeout_seconds": float("nan")}, "not a finite number"),
        ({"verifier": "yes"}, "not true or false"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, object], said: str) -> None:
    with pytest.raises(ArgumentFault) as fault:
        bind(RUN, given)
    assert said in str(fault.value)


def test_bounds_hold_for_everyone() -> None:
    with pytest.raises(ArgumentFault, match="at most 10"):
        bind(REPEAT, {"runs": 11})


def test_ids_and_verbs_are_unique_and_documented() -> None:
    assert len({one.id for one in OPERATIONS}) == len(OPERATIONS)
    assert len({one.verb for one in OPERATIONS}) == len(OPERATIONS)
    assert all(one.doc.endswith(".") for one in OPERATIONS)
    assert all(argument.doc for one in OPERATIONS for argument in one.arguments)
