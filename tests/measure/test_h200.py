"""The gate's answers on three recorded processes of an H200, pinned.

The published objective of that task is nine-tenths launch: it cannot show what the graph figure shows at
once, and where both are read together the verdict says which one spoke.
"""

from __future__ import annotations

import json

import pytest

from core.measure.floor import Floor
from core.measure.gate import decide
from core.measure.reading import Channel
from core.measure.rule import Rule
from core.measure.texts import verdict_text
from core.words import JsonObject
from tests.measure.h200 import FOLDER, PROCESSES, kernels, launches

ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
SOURCES = {"launch_us": launches, "kernel_us": kernels}


def answer(question: JsonObject) -> JsonObject:
    """What a rule with one look, at the three processes there are, says from an unlearned floor."""
    channels = [
        Channel(
            tuple(
                SOURCES[kind](process, question["best"], question["candidate"], tuple(question["cases"]))
                for process in PROCESSES
            ),
            Floor(),
        )
        for kind in question["kinds"]
    ]
    decision = decide(Rule(looks=(3,), first_stop=0.0, channels=len(channels)), *channels)
    assert decision is not None
    return {
        "text": verdict_text(decision),
        "verdict": decision.verdict,
        "accepted": decision.accepted,
        "by": decision.by,
        "restore": decision.restore,
        "gain": decision.gain,
        "interval": list(decision.interval),
        "noise": decision.noise,
    }


def name_of(pinned: JsonObject) -> str:
    cases = pinned["cases"][0] if len(pinned["cases"]) == 1 else "all"
    return f"{cases}-{pinned['best']}-{pinned['candidate']}-{'+'.join(pinned['kinds'])}"


@pytest.mark.parametrize("pinned", ANSWERS, ids=name_of)
def test_the_gate_answers_as_pinned(pinned: JsonObject) -> None:
    found, expected = answer(pinned), pinned["answer"]
    numbers = ("gain", "noise", "interval")
    assert {name: found[name] for name in found if name not in numbers} == {
        name: expected[name] for name in expected if name not in numbers
    }
    for name in numbers:
        assert found[name] == pytest.approx(expected[name], rel=1e-6)


def test_event_pairs_cannot_tell_what_replays_show_at_once() -> None:
    """32 warps at 1,024 columns take 2.7 times the kernel time of 4."""
    question = {"cases": ["1536x1024"], "best": "w4r1", "candidate": "w32r1"}
    by_event, by_graph = (
        answer(question | {"kinds": ["launch_us"]}),
        answer(question | {"kinds": ["kernel_us"]}),
    )
    assert by_event["verdict"] == "unclear" and by_event["interval"][0] < 0 < by_event["interval"][1]
    assert by_graph["verdict"] == "slower" and 1 - by_graph["gain"] == pytest.approx(2.65, abs=0.05)


def test_the_default_rule_needs_more_than_these_three_processes_of_event_pairs() -> None:
    evidence = tuple(launches(process, "w4r1", "w32r1", ("1536x1024",)) for process in PROCESSES)
    assert decide(Rule(), Channel(evidence, Floor())) is None


def test_the_default_rule_accepts_by_replay_after_two_processes_and_rejects_after_one() -> None:
    def replays(best: str, candidate: str) -> Channel:
        return Channel(tuple(kernels(one, best, candidate, ("192x8192",)) for one in PROCESSES), Floor())

    better, worse = decide(Rule(), replays("w1r1", "w8r1")), decide(Rule(), replays("w8r1", "w1r1"))
    assert better is not None and (better.accepted, better.processes) == (True, 2)
    assert worse is not None and (worse.rejected, worse.processes) == (True, 1)


def test_a_candidate_compared_with_itself_is_not_accepted() -> None:
    for source in (launches, kernels):
        evidence = tuple(source(one, "w8r1", "w8r1", ("192x8192",)) for one in PROCESSES)
        decision = decide(Rule(looks=(3,), first_stop=0.0), Channel(evidence, Floor()))
        assert decision is not None and not decision.accepted and not decision.restore
