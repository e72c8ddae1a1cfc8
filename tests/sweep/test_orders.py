"""Events and commands in any order: what holds of a sweep whatever happens to it."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.sweep.commands import refusal
from core.sweep.json_form import event_json, event_of, state_json, state_of
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
    Outcome,
    Pause,
    Plan,
    PrepareBaseline,
    Resume,
    Retry,
    RunScreen,
    Stop,
    StopAsked,
    TimePassed,
    TrialEnded,
    VerifyFinal,
    WinnerKept,
)
from core.sweep.standing import TARGET
from core.sweep.state import INFRA_RETRIES, begin, replay, step
from core.sweep.story import faults, story
from core.words import Status

NAMES = tuple(f"c{number}" for number in range(5))
ANY_NAME = st.sampled_from([*NAMES, "", "nobody"])
ACTORS = st.sampled_from(["cli", "tui", "mcp"])
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(Pause, ACTORS),
    st.builds(Resume, ACTORS),
    st.builds(Cancel, ANY_NAME, ACTORS),
    st.builds(Move, ANY_NAME, st.integers(-6, 6), ACTORS),
    st.builds(Retry, ANY_NAME, ACTORS),
)
PLANS = st.builds(
    Plan,
    candidates=st.sampled_from([NAMES[:count] for count in range(6)]),
    lower_is_better=st.booleans(),
    finalists=st.integers(1, 3),
    keep=st.booleans(),
    budget_s=st.sampled_from([None, 100.0]),
    screen_decides=st.booleans(),
    waits_for_target=st.booleans(),
)
TRIALS = st.one_of(
    st.tuples(st.just(Status.OK), st.floats(0.1, 9.0)),
    st.tuples(st.sampled_from([one for one in Status if one is not Status.OK]), st.none()),
)


# Functions, since Hypothesis would read the source of lambdas, and of other modules in a thread beside that.


def has_begun(sweep: AnyOrder) -> bool:
    return len(sweep.heard) > 3


def goes_on(sweep: AnyOrder) -> bool:
    return not sweep.state.ended


def something_is_out(sweep: AnyOrder) -> bool:
    return sweep.out is not None


class AnyOrder(RuleBasedStateMachine):
    """A sweep with its clients, its target and its clock; the rules are what each of them may do."""

    @initialize(plan=PLANS)
    def start(self, plan: Plan) -> None:
        self.plan = plan
        self.state, first = begin(plan)
        self.heard: list[Event] = []
        self.runs: Counter[str] = Counter()
        self.grants: Counter[str] = Counter()
        self.out: Instruction | None = None
        self.handed(first)

    def handed(self, following: Instruction | None) -> None:
        """Something may be handed out only while nothing is out, and nothing is paused."""
        if following is None:
            return
        assert self.out is None or isinstance(following, Stop)
        assert not self.state.paused_by
        self.out = None if isinstance(following, Stop) else following
        if isinstance(following, RunScreen):
            self.runs[following.candidate_id] += 1
            counted = {one.candidate_id for one in self.state.screened}
            assert following.candidate_id not in counted
        if isinstance(following, Keep):
            self.check_kept(following.candidate_id)

    def check_kept(self, winner: str) -> None:
        assert self.plan.keep
        assert Confirmed(winner, self.state.best_id, True) in self.heard
        assert FinalVerified(winner, True) in self.heard

    def hear(self, event: Event) -> None:
        before = self.state
        self.state, following = step(before, event)
        self.heard.append(event)
        assert not before.ended
        self.handed(following)

    @rule(command=COMMANDS)
    def ask(self, command: Command) -> None:
        if refusal(self.state, command):
            assert step(self.state, command) == (self.state, None)
            return
        if isinstance(command, Retry):
            self.grants[command.candidate_id] += 1
        if isinstance(command, Resume) and self.state.paused_by == TARGET:
            self.grants.update(NAMES)
        self.hear(command)

    @precondition(has_begun)
    @rule()
    def stop(self) -> None:
        if not refusal(self.state, StopAsked("asked")):
            self.hear(StopAsked("asked"))
            assert (self.state.phase, self.state.reason) == ("stopped", "asked")
        if self.state.ended:
            assert step(self.state, Resume("late")) == (self.state, None)

    @precondition(goes_on)
    @rule(elapsed_s=st.sampled_from([1.0, 101.0]))
    def pass_time(self, elapsed_s: float) -> None:
        self.hear(TimePassed(elapsed_s))

    @precondition(something_is_out)
    @rule(draw=st.data())
    def end_what_is_out(self, draw: st.DataObject) -> None:
        assert self.out is not None
        outcome = answered(draw, self.out)
        self.out = None
        self.hear(outcome)

    @precondition(something_is_out)
    @rule(draw=st.data(), times=st.integers(1, 3))
    def end_well(self, draw: st.DataObject, times: int) -> None:
        """Often enough for a sweep to come to its last steps."""
        for _ in range(times):
            if self.out is not None:
                outcome = good_answer(draw, self.out)
                self.out = None
                self.hear(outcome)

    @invariant()
    def the_state_is_sound(self) -> None:
        assert faults(self.state) == []
        assert self.state.out == self.out

    @invariant()
    def tries_are_bounded(self) -> None:
        for name, runs in self.runs.items():
            assert runs <= (1 + INFRA_RETRIES) * (1 + self.grants[name])

    @invariant()
    def nobody_counts_twice(self) -> None:
        counted = Counter(one.candidate_id for one in self.state.screened)
        assert set(counted.values()) <= {1}
        ended = {
            one.candidate_id
            for one in self.heard
            if isinstance(one, TrialEnded) and one.status not in (Status.INFRA, Status.CANCELLED)
        }
        assert counted.keys() == ended

    def teardown(self) -> None:
        """What happened, through JSON and heard again, leads to the same state."""
        if not hasattr(self, "plan"):
            return
        stored = json.loads(json.dumps([event_json(event) for event in self.heard]))
        assert replay(self.plan, map(event_of, stored)) == self.state
        assert state_of(json.loads(json.dumps(state_json(self.state)))) == self.state
        assert len(story(self.plan, self.heard)) == len(self.heard) + 1


def answered(draw: st.DataObject, out: Instruction) -> Outcome:
    """Anything that may come of what is out."""
    lost = st.sampled_from([False, False, False, True])
    match out:
        case PrepareBaseline():
            failed = st.builds(BaselineFailed, st.just("incorrect"), lost)
            ready = st.sampled_from([BaselineReady("c0"), BaselineReady("best", 3)])
            return draw.draw(st.one_of(ready, ready, ready, failed))
        case RunScreen(candidate_id):
            status, score = draw.draw(TRIALS)
            return TrialEnded(candidate_id, status, score)
        case Confirm(candidate_id, against):
            is_lost = draw.draw(lost)
            return Confirmed(candidate_id, against, not is_lost and draw.draw(st.booleans()), is_lost)
        case VerifyFinal(candidate_id):
            is_lost = draw.draw(lost)
            return FinalVerified(candidate_id, not is_lost and draw.draw(st.booleans()), is_lost)
        case Keep(candidate_id):
            return WinnerKept(candidate_id, draw.draw(st.sampled_from(["", "it was edited"])))
    raise AssertionError(out)


def good_answer(draw: st.DataObject, out: Instruction) -> Outcome:
    match out:
        case PrepareBaseline():
            return BaselineReady("best")
        case RunScreen(candidate_id):
            return TrialEnded(candidate_id, Status.OK, draw.draw(st.floats(0.1, 9.0)))
        case Confirm(candidate_id, against):
            return Confirmed(candidate_id, against, True)
        case VerifyFinal(candidate_id):
            return FinalVerified(candidate_id, True)
    return answered(draw, out)


AnyOrder.TestCase.settings = settings(max_examples=250, stateful_step_count=40, deadline=None)
TestAnyOrder = AnyOrder.TestCase
