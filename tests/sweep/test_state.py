"""The sweep's state machine, as a manual: what happens, what it asks for next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.sweep import state as machine
from core.sweep.plan import (
    BaselineFailed,
    BaselineReady,
    Cancel,
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
    RunScreen,
    Stop,
    StopAsked,
    TimePassed,
    TrialEnded,
    VerifyFinal,
    WinnerKept,
)
from core.sweep.standing import SweepState
from core.sweep.state import begin, leaders, replay, step
from core.words import Status


def run_screen(
    plan: Plan, scores: dict[str, float | None], best: str = "best"
) -> tuple[SweepState, Instruction]:
    """A state in which every candidate was screened; None means incorrect."""
    state, _ = begin(plan)
    state, asked = step(state, BaselineReady(best))
    while isinstance(asked, RunScreen):
        score = scores[asked.candidate_id]
        status = Status.INCORRECT if score is None else Status.OK
        state, asked = step(state, TrialEnded(asked.candidate_id, status, score))
    assert asked is not None
    return state, asked


def test_a_sweep_first_sees_to_a_baseline() -> None:
    assert begin(Plan(("a",)))[1] == PrepareBaseline()


def test_a_baseline_that_fails_ends_the_sweep_before_anything_runs() -> None:
    state, _ = begin(Plan(("a", "b")))
    state, asked = step(state, BaselineFailed("incorrect"))
    assert asked == Stop("failed", "incorrect")
    assert state.ended


def test_candidates_run_in_their_order() -> None:
    state, _ = begin(Plan(("b", "a")))
    state, asked = step(state, BaselineReady("best"))
    assert asked == RunScreen("b")
    _, asked = step(state, TrialEnded("b", Status.OK, 2.0))
    assert asked == RunScreen("a")


@pytest.mark.parametrize(
    ("lower", "expected"),
    [(True, ("a", "c")), (False, ("b", "c"))],
    ids=["lower is better", "higher is better"],
)
def test_the_leaders_are_the_best_that_passed(lower: bool, expected: tuple[str, ...]) -> None:
    plan = Plan(("a", "b", "c", "d"), lower_is_better=lower, finalists=2)
    state, _ = run_screen(plan, {"a": 1.0, "b": 3.0, "c": 2.0, "d": None})
    assert leaders(state) == expected


def test_the_standing_best_is_screened_but_never_confirmed_against_itself() -> None:
    state, asked = run_screen(Plan(("best", "a")), {"best": 1.0, "a": 2.0})
    assert asked == Confirm("a", "best", 1)
    assert leaders(state) == ("a",)


def test_an_exact_screen_of_the_deciding_mode_confirms_only_what_beats_the_best() -> None:
    plan = Plan(("best", "a", "b"), screen_decides=True)
    assert run_screen(plan, {"best": 2.0, "a": 1.0, "b": 3.0})[1] == Confirm("a", "best", 1)
    assert run_screen(plan, {"best": 1.0, "a": 1.0, "b": 3.0})[1] == Stop(
        "done", "no candidate passed the screen with a chance against the best"
    )


def test_nothing_is_kept_without_the_gate_and_a_final_verification() -> None:
    state, asked = run_screen(Plan(("a",), keep=True), {"a": 1.0})
    assert asked == Confirm("a", "best", 1)
    state, asked = step(state, Confirmed("a", "best", accepted=True))
    assert asked == VerifyFinal("a")
    state, asked = step(state, FinalVerified("a", passed=True))
    assert asked == Keep("a")
    state, asked = step(state, WinnerKept("a"))
    assert asked == Stop("done", "kept")


def test_a_winner_that_fails_the_final_verification_is_not_kept() -> None:
    state, _ = run_screen(Plan(("a",), keep=True), {"a": 1.0})
    state, _ = step(state, Confirmed("a", "best", accepted=True))
    state, asked = step(state, FinalVerified("a", passed=False))
    assert asked == Stop("done", "the winner failed the final verification")
    assert state.winner == ""


def test_without_keep_the_winner_is_only_told() -> None:
    state, _ = run_screen(Plan(("a",)), {"a": 1.0})
    state, _ = step(state, Confirmed("a", "best", accepted=True))
    state, asked = step(state, FinalVerified("a", passed=True))
    assert isinstance(asked, Stop)
    assert state.winner == "a"


def test_later_finalists_meet_the_champion_and_a_chain_of_wins_is_measured_directly() -> None:
    state, asked = run_screen(Plan(("a", "b"), finalists=2), {"a": 1.0, "b": 2.0})
    assert asked == Confirm("a", "best", 2)
    state, asked = step(state, Confirmed("a", "best", accepted=True))
    assert asked == Confirm("b", "a", 2)
    state, asked = step(state, Confirmed("b", "a", accepted=True))
    assert asked == Confirm("b", "best", 1)
    shown, asked = step(state, Confirmed("b", "best", accepted=True))
    assert asked == VerifyFinal("b")
    unclear, asked = step(state, Confirmed("b", "best", accepted=False))
    assert asked == VerifyFinal("a"), "a beat the best itself, and still has"
    assert (shown.winner, unclear.winner) == ("b", "a")


def test_a_target_lost_in_the_final_verification_is_no_failure_of_the_winner() -> None:
    state, _ = run_screen(Plan(("a",), keep=True), {"a": 1.0})
    state, _ = step(state, Confirmed("a", "best", accepted=True))
    state, asked = step(state, FinalVerified("a", passed=False, lost=True))
    assert asked == Stop("stopped", "the target cannot run trials")


def test_a_trial_that_the_target_could_not_run_is_asked_for_once_more() -> None:
    state, _ = begin(Plan(("a",)))
    state, _ = step(state, BaselineReady("best"))
    state, asked = step(state, TrialEnded("a", Status.INFRA))
    assert asked == RunScreen("a")
    state, asked = step(state, TrialEnded("a", Status.INFRA))
    assert asked == Stop("stopped", "the target cannot run trials")


def test_a_lost_target_is_no_verdict() -> None:
    state, _ = run_screen(Plan(("a",)), {"a": 1.0})
    state, asked = step(state, Confirmed("a", "best", accepted=False, lost=True))
    assert asked == Stop("stopped", "the target cannot run trials")


def test_a_spent_budget_ends_screening_and_confirms_what_there_is() -> None:
    state, _ = begin(Plan(("a", "b", "c"), budget_s=10.0))
    state, _ = step(state, BaselineReady("best"))
    state, nothing = step(state, TimePassed(11.0))
    assert nothing is None
    state, asked = step(state, TrialEnded("a", Status.OK, 1.0))
    assert asked == Confirm("a", "best", 1)


def test_an_event_that_does_not_fit_is_a_programming_error() -> None:
    state, _ = begin(Plan(("a",)))
    with pytest.raises(ValueError, match="does not fit"):
        step(state, WinnerKept("a"))


def answers_to(draw: st.DataObject, asked: Instruction) -> object:
    """Any event that a world could give back to an instruction."""
    statuses = st.sampled_from(list(Status))
    match asked:
        case PrepareBaseline():
            return draw.draw(st.sampled_from([BaselineReady("c0"), BaselineReady("x"), BaselineFailed("no")]))
        case RunScreen(candidate_id):
            status = draw.draw(statuses)
            score = draw.draw(st.floats(0.1, 10.0)) if status is Status.OK else None
            return TrialEnded(candidate_id, status, score)
        case Confirm(candidate_id, against, _):
            accepted, lost = draw.draw(st.sampled_from([(True, False), (False, False), (False, True)]))
            return Confirmed(candidate_id, against, accepted, lost)
        case VerifyFinal(candidate_id):
            return FinalVerified(candidate_id, draw.draw(st.booleans()))
        case Keep(candidate_id):
            return WinnerKept(candidate_id)
    raise AssertionError(asked)


@given(
    data=st.data(),
    count=st.integers(0, 6),
    finalists=st.integers(1, 4),
    keep=st.booleans(),
    lower=st.booleans(),
    decides=st.booleans(),
)
def test_whatever_happens_a_sweep_ends_and_keeps_only_what_was_shown(
    data: st.DataObject, count: int, finalists: int, keep: bool, lower: bool, decides: bool
) -> None:
    plan = Plan(tuple(f"c{n}" for n in range(count)), lower, finalists, keep, 100.0, decides)
    state, asked = begin(plan)
    accepted: set[tuple[str, str]] = set()
    verified: set[str] = set()
    screens: list[str] = []
    following: Instruction | None = asked
    for _ in range(4 * count + 20):
        if isinstance(following, Stop):
            break
        assert following is not None
        if data.draw(st.integers(0, 30)) == 0:
            state, following = step(state, StopAsked("asked"))
            continue
        state, _ = step(state, TimePassed(data.draw(st.sampled_from([0.0, 101.0]))))
        event = answers_to(data, following)
        if isinstance(following, RunScreen):
            screens.append(following.candidate_id)
        if isinstance(following, Keep):
            assert keep
            assert following.candidate_id in verified
            assert (following.candidate_id, state.best_id) in accepted
        if isinstance(event, Confirmed) and event.accepted:
            accepted.add((event.candidate_id, event.against))
        if isinstance(event, FinalVerified) and event.passed:
            verified.add(event.candidate_id)
        state, following = step(state, event)  # type: ignore[arg-type]
    assert isinstance(following, Stop)
    assert state.ended
    assert all(screens.count(candidate) <= 2 for candidate in screens)
    assert step(state, StopAsked("again")) == (state, None)


def test_a_long_sweep_is_replayed_without_a_step_for_each_screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is screened in its order counts together; the state is the one that steps lead to."""
    names = tuple(f"c{number}" for number in range(400))
    events: list[Event] = [BaselineReady("best", 1)]
    for number, name in enumerate(names[:392]):  # the budget is spent while the last of them runs
        status = Status.INFRA if number == 100 else Status.CRASH if number % 7 == 0 else Status.OK
        score = float(number) if status is Status.OK else None
        events += [TrialEnded(name, status, score, number + 2), TimePassed(number / 10)]
        if number == 100:
            events.append(TrialEnded(name, Status.OK, 0.5, number + 2))
    plan = Plan(names, budget_s=39.0)
    stepped, _ = begin(plan)
    for event in events:
        stepped, _ = step(stepped, event)
    assert stepped.phase == "confirm" and len(stepped.screened) == 392

    counted: list[Event] = []

    def counting(before: SweepState, event: Event) -> tuple[SweepState, Instruction | None]:
        counted.append(event)
        return step(before, event)

    monkeypatch.setattr(machine, "step", counting)
    assert replay(plan, events) == stepped
    assert len(counted) < 30


OK_A, OK_B = TrialEnded("a", Status.OK, 2.0, 1), TrialEnded("b", Status.OK, 1.0, 2)
NO_C = TrialEnded("c", Status.INFRA, trial_id=3)


@pytest.mark.parametrize(
    "events",
    [
        [OK_A, Pause("tui"), OK_B],
        [OK_A, Pause("tui"), OK_B, TimePassed(3.0), Resume("tui"), NO_C],
        [TrialEnded("a", Status.INFRA), OK_A, OK_B, NO_C, NO_C],
        [OK_A, Cancel("b", "cli"), OK_B],
        [TimePassed(1.0), Move("d", -5, "cli"), OK_A, TrialEnded("d", Status.OK, 3.0), OK_B],
        [OK_A, OK_B, TimePassed(5.0), TrialEnded("c", Status.CRASH)],
        [OK_A, TimePassed(5.0), OK_B],
    ],
    ids=["paused", "resumed", "infra", "cancelled", "moved", "last", "budget"],
)
def test_a_replay_is_the_steps_whatever_comes_between(events: list[Event]) -> None:
    plan = Plan(("a", "b", "c", "d"), budget_s=5.0, waits_for_target=True)
    heard = [BaselineReady("best"), *events]
    stepped, _ = begin(plan)
    for event in heard:
        stepped, _ = step(stepped, event)
    assert replay(plan, heard) == stepped
