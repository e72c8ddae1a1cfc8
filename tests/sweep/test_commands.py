"""What people may ask of a running sweep, as a manual: what it does, and what is refused with which words."""

from __future__ import annotations

import re

import pytest

from core.sweep.commands import refusal
from core.sweep.plan import (
    BaselineFailed,
    BaselineReady,
    Cancel,
    Command,
    Confirm,
    Confirmed,
    Event,
    FinalVerified,
    Instruction,
    Keep,
    Move,
    Pause,
    Plan,
    PrepareBaseline,
    Resume,
    Retry,
    RunScreen,
    Stop,
    StopAsked,
    TrialEnded,
    VerifyFinal,
)
from core.sweep.standing import SweepState
from core.sweep.state import TARGET_LOST, begin, step
from core.sweep.story import faults
from core.words import Status

LOST = TARGET_LOST


def after(plan: Plan, *events: Event) -> tuple[SweepState, Instruction | None]:
    """The state after these events, and what the last one led to; every state on the way is sound."""
    state, asked = begin(plan)
    following: Instruction | None = asked
    for event in events:
        state, following = step(state, event)
        assert faults(state) == []
    return state, following


def screening(*names: str, **more: bool) -> tuple[Plan, BaselineReady]:
    return Plan(names, keep=True, **more), BaselineReady("best")


def ok(name: str, score: float = 1.0) -> TrialEnded:
    return TrialEnded(name, Status.OK, score)


def infra(name: str) -> TrialEnded:
    return TrialEnded(name, Status.INFRA)


def cancelled(name: str) -> TrialEnded:
    return TrialEnded(name, Status.CANCELLED)


def test_a_pause_lets_the_trial_go_on_and_holds_the_next_one_back() -> None:
    plan, ready = screening("a", "b")
    state, asked = after(plan, ready, Pause("tui"))
    assert (state.out, asked, state.paused_by) == (RunScreen("a"), None, "tui")
    state, asked = after(plan, ready, Pause("tui"), ok("a"))
    assert (state.out, asked, state.waiting) == (None, None, ("b",))
    state, asked = after(plan, ready, Pause("tui"), ok("a"), Resume("cli"))
    assert (state.out, asked, state.paused_by) == (RunScreen("b"), RunScreen("b"), "")


def test_going_on_while_the_trial_still_runs_hands_nothing_out_twice() -> None:
    plan, ready = screening("a", "b")
    state, asked = after(plan, ready, Pause("tui"), Resume("tui"))
    assert (state.out, asked) == (RunScreen("a"), None)
    assert after(plan, ready, Pause("tui"), Resume("tui"), ok("a"))[1] == RunScreen("b")


def test_a_pause_holds_confirmation_and_keeping_back_too() -> None:
    plan, ready = screening("a")
    events = [ready, Pause("tui"), ok("a")]
    assert after(plan, *events)[1] is None
    assert after(plan, *events, Resume("tui"))[1] == Confirm("a", "best", 1)
    events = [ready, ok("a"), Confirmed("a", "best", True), Pause("tui"), FinalVerified("a", True)]
    assert after(plan, *events)[1] is None
    assert after(plan, *events, Resume("tui"))[1] == Keep("a")


def test_a_waiting_candidate_is_dropped_and_waits_again_where_it_did() -> None:
    plan, ready = screening("a", "b", "c", "d")
    state, asked = after(plan, ready, Cancel("c"))
    assert (state.waiting, state.place_of("c"), asked) == (("b", "d"), "cancelled", None)
    state, _ = after(plan, ready, Cancel("c"), Retry("c"))
    assert state.waiting == ("b", "c", "d")


@pytest.mark.parametrize("named", ["a", ""], ids=["by its id", "as the running one"])
def test_the_running_trial_is_ended_and_the_sweep_goes_on(named: str) -> None:
    plan, ready = screening("a", "b")
    state, asked = after(plan, ready, Cancel(named))
    assert (state.out, state.ending, asked) == (RunScreen("a"), True, None)
    state, asked = after(plan, ready, Cancel(named), cancelled("a"))
    assert (asked, state.place_of("a"), state.ending) == (RunScreen("b"), "cancelled", False)
    state, _ = after(plan, ready, Cancel(named), cancelled("a"), Retry("a"))
    assert state.waiting == ("a",)


def test_a_trial_that_ended_before_it_could_be_cancelled_counts() -> None:
    plan, ready = screening("a", "b")
    state, asked = after(plan, ready, Cancel("a"), ok("a"))
    assert (asked, state.place_of("a"), state.ending) == (RunScreen("b"), "ok", False)


def test_a_cancelled_confirmation_is_no_verdict_and_the_next_finalist_has_its_turn() -> None:
    plan, ready = screening("a", "b")
    screened = [ready, ok("a", 1.0), ok("b", 2.0)]
    state, _ = after(plan, *screened, Cancel())
    assert (state.out, state.ending) == (Confirm("a", "best", 2), True)
    skipped = Confirmed("a", "best", False, at_fault="nobody", reason="cancelled")
    assert after(plan, *screened, Cancel(), skipped)[1] == Confirm("b", "best", 2)


@pytest.mark.parametrize(
    ("name", "by", "order"),
    [
        ("d", -1, ("b", "d", "c")),
        ("d", -9, ("d", "b", "c")),
        ("b", 1, ("c", "b", "d")),
        ("b", 9, ("c", "d", "b")),
        ("c", 0, ("b", "c", "d")),
    ],
)
def test_waiting_candidates_are_moved(name: str, by: int, order: tuple[str, ...]) -> None:
    plan, ready = screening("a", "b", "c", "d")
    state, _ = after(plan, ready, Move(name, by))
    assert state.waiting == order
    assert state.running == "a"


def test_a_stop_is_at_once_and_final() -> None:
    plan, ready = screening("a", "b")
    state, asked = after(plan, ready, StopAsked("by tui"))
    assert asked == Stop("stopped", "by tui")
    assert (state.waiting, state.out) == (("a", "b"), None)
    for event in (ok("a"), Resume("x"), Retry("a"), StopAsked("again")):
        assert step(state, event) == (state, None)


def test_a_paused_sweep_can_be_stopped() -> None:
    plan, ready = screening("a")
    assert after(plan, ready, Pause("tui"), ok("a"), StopAsked("by tui"))[1] == Stop("stopped", "by tui")


def test_a_candidate_that_the_target_cannot_run_is_set_aside_and_may_be_tried_again() -> None:
    plan, ready = screening("a", "b", "c", waits_for_target=True)
    state, asked = after(plan, ready, infra("a"), infra("a"))
    assert (asked, state.place_of("a")) == (RunScreen("b"), "lost")
    state, asked = after(plan, ready, infra("a"), infra("a"), ok("b"), Retry("a"))
    assert state.waiting == ("a",)
    state, asked = after(plan, ready, infra("a"), infra("a"), ok("b"), Retry("a"), ok("c"), infra("a"))
    assert asked == RunScreen("a"), "with all its tries"


def test_failures_in_a_row_are_the_targets_whichever_the_candidates() -> None:
    plan, ready = screening("a", "b", "c", waits_for_target=True)
    state, asked = after(plan, ready, infra("a"), infra("a"), infra("b"))
    assert (asked, state.paused_by) == (None, "target")
    _, asked = after(plan, ready, infra("a"), ok("a"), infra("b"), ok("b"), infra("c"))
    assert asked == RunScreen("c"), "each ran in the end, so the target can"


def test_a_sweep_of_a_command_ends_with_the_first_that_the_target_cannot_run() -> None:
    plan, ready = screening("a", "b", "c")
    assert after(plan, ready, ok("a"), infra("b"), infra("b"))[1] == Stop("stopped", LOST)


def test_a_detached_sweep_waits_for_its_target_and_then_tries_all_of_it_again() -> None:
    plan, ready = screening("a", "b", "c", waits_for_target=True)
    events = [ready, infra("a"), infra("a"), infra("b")]
    state, asked = after(plan, *events)
    assert (asked, state.paused_by, state.place_of("a")) == (None, "target", "lost")
    state, asked = after(plan, *events, Resume("tui"))
    assert (asked, state.waiting, state.lost) == (RunScreen("a"), ("b", "c"), ())


def test_a_detached_sweep_waits_in_every_phase() -> None:
    plan, ready = screening("a", waits_for_target=True)
    lost = Confirmed("a", "best", False, lost=True)
    steps: list[tuple[list[Event], Instruction]] = [
        ([BaselineFailed("infra: no link", lost=True)], PrepareBaseline()),
        ([ready, ok("a"), lost], Confirm("a", "best", 1)),
        (
            [ready, ok("a"), Confirmed("a", "best", True), FinalVerified("a", False, lost=True)],
            VerifyFinal("a"),
        ),
    ]
    for events, again in steps:
        assert after(plan, *events)[0].paused_by == "target"
        assert after(plan, *events, Resume("tui"))[1] == again


def test_a_target_that_is_lost_at_the_end_of_the_screen_is_not_asked_for_verdicts() -> None:
    plan, ready = screening("a", "b", waits_for_target=True)
    state, asked = after(plan, ready, ok("a"), infra("b"), infra("b"))
    assert (asked, state.phase, state.paused_by) == (None, "screen", "target")


REFUSED: list[tuple[list[Event], Command, str]] = [
    ([], Resume("x"), "the sweep is not paused"),
    ([Pause("tui")], Pause("cli"), "paused already, by tui"),
    ([infra("a"), infra("a"), infra("b")], Pause("cli"), "paused already, by its target"),
    ([], Cancel("z"), "z is no candidate of this sweep"),
    ([], Move("z", 1), "z is no candidate of this sweep"),
    ([], Retry("z"), "z is no candidate of this sweep"),
    ([], Move("", 1), "is no candidate of this sweep"),
    ([], Move("a", 1), "a is running; only waiting candidates can be moved"),
    ([], Retry("b"), "b is waiting; only cancelled ones"),
    ([ok("a")], Cancel("a"), r"a was screened \(ok\); so there is nothing to cancel"),
    ([ok("a")], Retry("a"), r"a was screened \(ok\); only cancelled ones"),
    ([Cancel("b")], Cancel("b"), "b is cancelled"),
    ([Cancel("a")], Cancel("a"), "a is being cancelled already"),
    ([Pause("tui"), ok("a")], Cancel(), "nothing is running"),
    ([Cancel("b"), Cancel("c"), ok("a")], Retry("b"), "screening is over"),
    ([StopAsked("by tui")], Pause("cli"), r"the sweep has ended \(stopped: by tui\)"),
]


@pytest.mark.parametrize(("events", "command", "words"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_does_not_fit_is_refused_with_a_sentence(
    events: list[Event], command: Command, words: str
) -> None:
    plan, ready = screening("a", "b", "c", waits_for_target=True)
    state, _ = after(plan, ready, *events)
    said = refusal(state, command)
    assert re.search(words, said), said
    assert step(state, command) == (state, None)


def test_the_baseline_and_the_winners_verification_cannot_be_skipped() -> None:
    plan, ready = screening("a")
    state, _ = after(plan)
    assert "no sweep can do without" in refusal(state, Cancel())
    won = [ready, ok("a"), Confirmed("a", "best", True)]
    state, _ = after(plan, *won)
    assert "final verification" in refusal(state, Cancel())
    state, _ = after(plan, *won, FinalVerified("a", True))
    assert state.out == Keep("a")
    assert refusal(state, StopAsked("by tui")) == "the winner is being kept, which takes a moment"
