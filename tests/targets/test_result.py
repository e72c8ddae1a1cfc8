"""When a result counts and as which status: the judge alone, without a process."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.targets.job import Outcome
from core.targets.result import Asked, Ended, judge
from core.words import Status
from core.workspace.config import Objective

ASKED = Asked(Objective("score"), "final", "this-nonce", 20.0)
CLEAN, FAILED = Ended(0, None), Ended(1, None)
KILLED = Ended(None, 9)


def judged(
    result: object,
    ended: Ended = CLEAN,
    stderr: str = "",
    asked: Asked = ASKED,
    file: Path = Path("/nonexistent/result"),
) -> Outcome:
    return judge(asked, ended, file, json.dumps(result) if result is not None else "", stderr)


@pytest.mark.parametrize("word", ["passed", "pass", "ok", "OK", "success", "succeeded", True, None])
def test_a_pass_with_a_score_is_ok(word: object) -> None:
    outcome = judged({"status": word, "score": 2.5, "extra": 1})
    assert (outcome.status, outcome.score, outcome.channel) == (Status.OK, 2.5, "stdout")
    assert outcome.result == {"status": word, "score": 2.5, "extra": 1}


@pytest.mark.parametrize(
    "word", ["incorrect", "invalid", "compile_error", "crash", "oom", "timeout", "unstable"]
)
def test_a_status_of_the_word_list_is_taken_from_the_result(word: str) -> None:
    for ended in (CLEAN, FAILED):
        outcome = judged({"status": word, "errors": ["because"]}, ended)
        assert (outcome.status, outcome.reason, outcome.score) == (word, "because", None)


@pytest.mark.parametrize("word", ["tampered", "cancelled", "sideways", 5, ["ok"], {"a": 1}])
def test_any_other_status_word_is_a_bad_result(word: object) -> None:
    outcome = judged({"status": word, "score": 1})
    assert outcome.status is Status.CRASH
    assert outcome.reason.startswith("bad_result: status ")


def test_infra_carries_a_known_stage() -> None:
    assert judged({"status": "infra", "stage": "gpu", "errors": ["lost it"]}).stage == "gpu"
    assert judged({"status": "infra", "stage": "nowhere"}).stage == "spawn"
    assert judged({"status": "infra", "stage": ["gpu"]}).stage == "spawn"


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"errors": ["tile 3 is not one of 1, 2"]}, Status.INVALID, "tile 3 is not one of 1, 2"),
        ({"errors": "one text"}, Status.INVALID, "one text"),
        ({"error": "singular"}, Status.INVALID, "singular"),
        ({"cases": [{"errors": ["inner"]}]}, Status.INVALID, "inner"),
        ({"errors": ["CompilationError: at 3:4"]}, Status.COMPILE_ERROR, "CompilationError: at 3:4"),
        ({"errors": ["CUDA out of memory"]}, Status.OOM, "CUDA out of memory"),
        ({"cases": [{"name": "a", "status": "oom"}]}, Status.OOM, "case a: oom"),
        ({"cases": [{"name": "a", "status": "failed"}]}, Status.INCORRECT, "case a: failed"),
        ({"verified": False}, Status.INCORRECT, "the result says verified: false"),
        ({"correctness": False}, Status.INCORRECT, "the result says correctness: false"),
        ({"compiled": False}, Status.COMPILE_ERROR, "the result says compiled: false"),
        (
            {"cases": [{"name": "a", "status": "passed", "max_abs": 0.5, "tolerance": 0.1}], "errors": ["x"]},
            Status.INCORRECT,
            "case a: max_abs 0.5 is not within 0.1",
        ),
        (
            {"arms": [{"slot": 0, "status": "passed"}, {"slot": 1, "status": "incorrect"}]},
            Status.INCORRECT,
            "arm 1: incorrect",
        ),
        (
            {"arms": [{"cases": [{"name": "b", "max_abs": 2, "tolerance": 1}]}]},
            Status.INCORRECT,
            "case b: max_abs 2 is not within 1",
        ),
    ],
)
@pytest.mark.parametrize("word", ["failed", "passed", None])
def test_what_a_result_says_against_itself_counts_whatever_its_status(
    fields: dict[str, Any], status: Status, reason: str, word: str | None
) -> None:
    for ended in (CLEAN, FAILED):
        outcome = judged({"status": word, "score": 1.0, **fields}, ended)
        assert (outcome.status, outcome.reason, outcome.score) == (status, reason, None)


def test_failed_without_a_reason_is_incorrect() -> None:
    outcome = judged({"status": "failed", "score": 3}, FAILED)
    assert (outcome.status, outcome.reason) == (Status.INCORRECT, "the result says failed, and not why")


@pytest.mark.parametrize("error", [None, "nan", True, float("nan"), float("inf"), -1.0, 10**400])
def test_a_passed_case_needs_an_error_within_its_tolerance(error: object) -> None:
    case = {"name": "a", "status": "passed", "max_abs": error, "tolerance": 0.1}
    assert judged({"status": "passed", "score": 1, "cases": [case]}).status is Status.INCORRECT


def test_errors_of_numbers_are_no_sentences() -> None:
    assert judged({"status": "passed", "score": 1, "errors": [0.0, 1e-6]}).status is Status.OK
    assert judged({"status": "passed", "score": 1, "errors": [], "error": None}).status is Status.OK


def test_a_time_below_its_floor_is_unstable() -> None:
    case = {"name": "a", "best_us": 7.9, "floor_us": 10.0}
    outcome = judged({"score": 7.9, "cases": [case]})
    assert outcome.status is Status.UNSTABLE
    assert outcome.reason == "case a: 7.9 us is below 0.8 of its floor 10 us"
    assert judged({"score": 8.1, "cases": [{**case, "best_us": 8.1}]}).status is Status.OK


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (float("nan"), "score is nan, not a finite number above 0"),
        (float("inf"), "score is inf, not a finite number above 0"),
        (-1, "score is -1, not a finite number above 0"),
        (0, "score is 0, not a finite number above 0"),
        (10**400, "score is inf, not a finite number above 0"),
        (True, "score is 'True', no number"),
        ("1.5", "score is '1.5', no number"),
        ([1], "score is '[1]', no number"),
        (None, "the result has no score"),
    ],
)
def test_a_bad_score_is_a_crash_that_says_so(score: object, said: str) -> None:
    outcome = judged({"status": "passed", "score": score})
    assert (outcome.status, outcome.reason, outcome.score) == (Status.CRASH, f"bad_score: {said}", None)


@pytest.mark.parametrize("value", [-1, 0, float("nan"), float("inf")])
def test_a_case_with_a_bad_value_of_the_objective_spoils_the_score(value: float) -> None:
    cases = [{"name": "a", "score": 3.0}, {"name": "b", "score": value}]
    outcome = judged({"status": "passed", "score": 3.0, "cases": cases})
    assert outcome.reason.startswith("bad_score: case b: score is ")


def test_a_nested_objective_is_found_by_its_dotted_name() -> None:
    asked = replace(ASKED, objective=Objective("metrics.total.ms"))
    assert judged({"metrics": {"total": {"ms": 4}}}, asked=asked).score == 4.0
    assert judged({"metrics": [1]}, asked=asked).reason == "bad_score: the result has no metrics.total.ms"


def test_of_several_arms_the_one_asked_for_gives_the_score() -> None:
    result = {"status": "passed", "score": 9, "arms": [{"slot": 0, "score": 9}, {"slot": 1, "score": 7}]}
    assert judged(result, asked=replace(ASKED, score_slot=1)).score == 7.0
    assert judged(result, asked=replace(ASKED, score_slot=2)).score == 9.0


def test_a_verifier_needs_no_score_but_a_good_one_where_it_gives_one() -> None:
    asked = replace(ASKED, needs_score=False)
    assert judged({"status": "passed"}, asked=asked).status is Status.OK
    assert judged({"status": "passed", "score": -1}, asked=asked).status is Status.CRASH


@pytest.mark.parametrize("mode", ["dev", 5, ["final"]])
@pytest.mark.parametrize("word", ["passed", "failed", "incorrect"])
def test_a_result_of_another_mode_says_nothing_of_this_one(mode: object, word: str) -> None:
    outcome = judged({"status": word, "mode": mode, "score": 1})
    assert outcome.status is Status.CRASH
    assert outcome.reason.startswith("wrong_mode: the result says ")


def test_a_pass_counts_only_when_the_process_ended_well() -> None:
    passed = {"status": "passed", "score": 1}
    assert judged(passed, FAILED).reason == "exit 1, although the result says passed"
    assert judged(passed, Ended(None, 11)).reason == "signal 11 (SIGSEGV), although the result says passed"
    assert judged(passed, Ended(None, 9, oom_kills=1)).status is Status.OOM
    assert judged({"score": 1}, FAILED, "Traceback\nValueError: no").reason == (
        "exit 1 without a result: ValueError: no"
    )


@pytest.mark.parametrize(
    ("ended", "stderr", "status", "reason"),
    [
        (CLEAN, "", Status.CRASH, "no_result: it exited 0 without a JSON object"),
        (CLEAN, "warning\n\n", Status.CRASH, "no_result: it exited 0 without a JSON object: warning"),
        (FAILED, "", Status.CRASH, "exit 1 without a result"),
        (KILLED, "", Status.CRASH, "signal 9 (SIGKILL)"),
        (Ended(None, 9, oom_kills=1), "", Status.OOM, "the kernel ended it for memory"),
        (Ended(137, None, oom_kills=1), "Killed\n", Status.OOM, "the kernel ended it for memory: Killed"),
        (Ended(None, 11, oom_kills=1), "", Status.CRASH, "signal 11 (SIGSEGV)"),
        (FAILED, "x\nMemoryError\n", Status.OOM, "MemoryError"),
        (FAILED, "CompilationError: at 1:1\n", Status.COMPILE_ERROR, "CompilationError: at 1:1"),
        (FAILED, "sh: No space left on device\n", Status.INFRA, "sh: No space left on device"),
        (FAILED, "out of memory" + "\n" * 5000 + "No", Status.CRASH, "exit 1 without a result: No"),
    ],
)  # fmt: skip
def test_without_a_result_the_end_is_told(ended: Ended, stderr: str, status: Status, reason: str) -> None:
    outcome = judged(None, ended, stderr)
    assert (outcome.status, outcome.reason, outcome.channel) == (status, reason, "")


def test_output_that_the_disk_did_not_take_is_no_fault_of_the_candidate() -> None:
    lost = Ended(0, None, stdout_lost=10)
    assert (judged(None, lost).status, judged(None, lost).stage) == (Status.INFRA, "scratch")
    assert judged({"status": "passed", "score": 1}, lost).status is Status.INFRA, "it may be an earlier one"


def test_the_result_file_counts_even_when_output_was_lost(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"nonce": "this-nonce", "status": "passed", "score": 2}))
    outcome = judged({"score": 1}, Ended(0, None, stdout_lost=10), file=file)
    assert (outcome.score, outcome.channel) == (2.0, "file")


def test_an_end_from_outside_is_told_before_any_result() -> None:
    passed = {"status": "passed", "score": 1}
    assert judged(passed, Ended(0, None, "cancel")).status is Status.CANCELLED
    outcome = judged(passed, Ended(0, None, "timeout", 23.0))
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, "still running after 20 s, ended")


def test_what_was_left_behind_is_noted() -> None:
    passed = {"status": "passed", "score": 1}
    assert judged(passed, Ended(0, None, left_behind=1)).notes == ("left 1 process behind, ended",)
    assert judged(passed, Ended(0, None, left_behind=3, survivors=(7,))).notes == (
        "left 2 processes behind, ended",
        "could not be ended: process 7",
    )


def test_a_reason_is_one_short_line_without_control_characters() -> None:
    outcome = judged({"status": "invalid", "errors": ["a\x1b[31m\nb\0" + "c" * 9000, "\ud800"]})
    assert outcome.reason.startswith("a [31m b c")
    assert len(outcome.reason) == 600
    assert outcome.reason.isprintable()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"null", b"\xff\xfe\xfa", b"9" * 5000, b"[" * 100_000]
)
def test_a_result_file_that_is_no_json_object_is_a_bad_result(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "result.json"
    file.write_bytes(content)
    outcome = judged({"status": "passed", "score": 1}, file=file)
    assert outcome.status is Status.CRASH
    assert outcome.reason.startswith("bad_result: the result file ")
    crashed = judged(None, FAILED, "ValueError: no", file=file)
    assert crashed.reason.startswith("exit 1 without a result: bad_result: the result file ")
    assert crashed.reason.endswith(": ValueError: no")


@pytest.mark.parametrize("nonce", [None, "", "another", 5, ["this-nonce"]])
def test_a_result_file_without_the_nonce_does_not_count(tmp_path: Path, nonce: object) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"nonce": nonce, "status": "passed", "score": 2}))
    assert judged({"status": "passed", "score": 1}, file=file).reason.startswith(
        "wrong_nonce: the result file"
    )


def test_a_result_on_stdout_may_lack_the_nonce_but_not_carry_another() -> None:
    assert judged({"nonce": "this-nonce", "score": 1}).status is Status.OK
    assert judged({"nonce": "another", "score": 1}).reason.startswith("wrong_nonce: the result on stdout")


def test_a_result_file_of_another_schema_does_not_count(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({"schema": 2, "nonce": "this-nonce", "status": "passed", "score": 2}))
    assert judged(None, file=file).reason == "bad_result: the result file has schema 2, not 1"


def test_a_result_nested_too_deep_to_be_kept_does_not_count(tmp_path: Path) -> None:
    deep = '{"nonce": "this-nonce", "score": 1, "x": ' + "[" * 65 + "]" * 65 + "}"
    file = tmp_path / "result.json"
    file.write_text(deep)
    reason = "bad_result: the result is nested deeper than 64 levels"
    assert judged(None, file=file).reason == reason
    assert judge(ASKED, CLEAN, tmp_path / "absent", deep, "").reason == reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "ok", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)
keys = st.sampled_from(
    ["status", "mode", "score", "errors", "error", "cases", "arms", "name", "max_abs", "tolerance", "slot",
     "best_us", "floor_us", "verified", "stage", "nonce"]
)  # fmt: skip
parts = st.dictionaries(keys, json_values | st.sampled_from(["passed", "failed", "infra", "final", "oom"]))
results = st.builds(
    lambda top, cases, arms: top | ({"cases": cases} if cases else {}) | ({"arms": arms} if arms else {}),
    parts,
    st.lists(parts, max_size=2),
    st.lists(parts, max_size=2),
)


@given(results, st.sampled_from([CLEAN, FAILED, KILLED, Ended(0, None, stdout_lost=1)]))
def test_any_object_gets_one_status_and_a_score_only_with_ok(result: dict[str, Any], ended: Ended) -> None:
    outcome = judged(result, ended)
    assert isinstance(outcome.status, Status)
    assert (outcome.score is not None) == (outcome.status is Status.OK)
    assert (outcome.reason == "") == (outcome.status is Status.OK)
    if outcome.status is Status.OK:
        assert ended.clean and outcome.score is not None and outcome.score > 0
