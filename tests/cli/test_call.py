"""`kerneldeck call OPERATION [JSON]`: what it refuses, and in which words."""

from __future__ import annotations

import json

import pytest

from tests.cli.deck import Deck


def refused(deck: Deck, *words: str, **more: object) -> dict[str, object]:
    """The error object, on standard output alone."""
    done = deck.run("call", *words, code=2, **more)
    assert done.err == ""
    error: dict[str, object] = done.answer["error"]
    assert error["exit_code"] == 2
    return error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no_such_operation"], "there is no operation 'no_such_operation'"),
        (["__class__"], "there is no operation '__class__'"),
        (["run_objective", '{"mod": "dev"}'], "run_objective has no argument 'mod'"),
        (["run_objective", '{"mode": 1}'], "run_objective: mode: 1 is not a text"),
        (["run_objective", '{"timeout_seconds": 1e300}'], "timeout_seconds: 1e+300 is not at most"),
        (["run_objective", '{"timeout_seconds": 1e999}'], "timeout_seconds: inf is not a finite number"),
        (["run_objective", '{"remote": "maybe"}'], "'maybe' is not one of auto, true, false"),
        (["repeat_objective", '{"runs": 11}'], "repeat_objective: runs: 11 is not at most 10"),
        (["sweep_kernel_config", '{"knobs": {"a": []}}'], "is not an object of lists, one a knob"),
        (["sweep_kernel_config", '{"num_warps": []}'], "num_warps: no value is named"),
        (["guarded_final_verify", '{"restore_files": "kernel.sh"}'], "is not a list of texts"),
        (["run_objective", "{"], "is no JSON"),
        (["run_objective", "[]"], "'[]' is no JSON object"),
        (["run_objective", '{"max": NaN}'], "NaN is no number that JSON knows"),
        (["run_objective", "[" * 20_000], "nested too deeply"),
    ],
)
def test_a_wrong_call_is_named_and_nothing_runs(knobbed: Deck, words: list[str], said: str) -> None:
    assert said in str(refused(knobbed, *words)["sentence"])
    assert list(knobbed.root.glob(".kerneldeck/outputs/*")) == []


def test_what_is_near_is_proposed(deck: Deck) -> None:
    assert refused(deck, "run_objective", '{"mod": "dev"}')["hint"] == "did you mean mode?"
    assert "repeat_objective" in str(refused(deck, "nothing")["hint"])


def test_arguments_come_from_standard_input_too(deck: Deck) -> None:
    answer = deck.run("call", "run_objective", "-", stdin='{"mode": "final"}').answer
    assert answer["mode"] == "final" and answer["operation"] == "run_objective"
    assert "no UTF-8" in str(refused(deck, "run_objective", "-", stdin=b"\xff\xff")["sentence"])
    assert "is no JSON" in str(refused(deck, "run_objective", "-", stdin="")["sentence"])


def test_a_fault_is_an_object_for_those_who_asked_for_json(deck: Deck) -> None:
    done = deck.run("run", "--mode", "nightly", "--json", code=2)
    assert done.err == "" and done.answer["error"]["code"] == "usage.argument"
    assert deck.run("run", "--no-such", "--json", code=2).answer["error"]["code"] == "usage"
    deck.write("kerneldeck.toml", "")
    assert deck.run("run", "--json", code=2).answer["error"]["code"] == "workspace.config"


def test_usage_errors_of_the_command_line_point_to_help(deck: Deck) -> None:
    assert "see: kerneldeck run --help" in deck.fault("run", "--no-such")
    assert "see: kerneldeck --help" in deck.fault("no-such")
    assert "Missing command" in deck.fault("sweep")
    assert "'x' is not a valid float" in deck.fault("run", "--timeout", "x")
    assert "not in the range" in deck.fault("run", "--wait", "-1")
    assert "Missing argument" in str(refused(deck)["sentence"])
    assert deck.run().out == deck.run("--help").out


def test_what_json_cannot_say_is_null(deck: Deck) -> None:
    """A benchmark that reports an infinite case still gives an answer that every parser reads."""
    deck.kernel('score=5; status=incorrect; extra=\', "worst": Infinity, "cases": [{"best": NaN}]\'')
    done = deck.run("run", "--json", code=1)
    assert done.answer["result"]["worst"] is None and done.answer["result"]["cases"] == [{"best": None}]


def test_a_word_is_kept_with_the_record_whatever_it_holds(deck: Deck) -> None:
    answer = json.loads(deck.run("run", "--tag", "a\nb\x1b☃", "--json").out)
    assert answer["workspace_tag"] == "a\nb\x1b☃"
    deck.run("run", before=("bash", "-c", "exec \"$@\" --tag $'\\xff'", "bash"))


def test_a_remote_run_without_a_host_is_told_so(deck: Deck) -> None:
    fault = deck.fault("run", "--remote", "true", code=3)
    assert "no GPU host is configured" in fault and "run it here: --remote auto" in fault


def test_a_time_limit_of_the_call_ends_the_run(deck: Deck) -> None:
    deck.kernel("sleep 60")
    answer = deck.json("run", "--timeout", "0.3", code=4)
    assert answer["status"] == "timeout"
