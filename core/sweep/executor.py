"""Carries the sweep's instructions out, one at a time, and feeds back what happened."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

from core.decide import Question, compare
from core.engine import Engine
from core.errors import ChangedMeanwhile, ConfigFault, KerneldeckError, StorageFault
from core.guard import Ending, Report, checkpoint_of, guarded_verify, restore_files, verify_candidate
from core.measure.rule import SWEEP
from core.records import Candidate, Checkpoint, SweepRecord
from core.sweep import outcomes, report
from core.sweep.course import Course, started
from core.sweep.mailbox import Mailbox
from core.sweep.plan import (
    BaselineFailed,
    BaselineReady,
    Confirm,
    Keep,
    Outcome,
    PrepareBaseline,
    RunScreen,
    StopAsked,
    TimePassed,
    VerifyFinal,
    WinnerKept,
    Work,
)
from core.sweep.report import SweepReport, recalled_trial
from core.sweep.request import SweepRequest
from core.sweep.resume import resumed
from core.trials import run_scored
from core.words import NEVER_RESTORE

INTERRUPTED = "interrupted"


class SweepExecutor:
    """Runs one sweep. The workspace's files change only when a winner is kept.

    Commands come through `mailbox` while it runs. A cancelled `run` stops the sweep, unless it is a
    detached one: that stays as it is on record, for another process to go on with.
    """

    def __init__(
        self,
        engine: Engine,
        request: SweepRequest,
        mailbox: Mailbox | None = None,
        course: Course | None = None,
    ) -> None:
        self.engine = engine
        self.request = request
        self.mailbox = mailbox or Mailbox()
        self.course = course or started(engine, request)
        self.baseline: Report | None = None
        self.known: dict[str, Candidate] = dict(request.candidates)

    @classmethod
    def resumed(cls, engine: Engine, record: SweepRecord, mailbox: Mailbox | None = None) -> SweepExecutor:
        """To go on with a sweep on record; see `core.sweep.resume.resumed` for what refuses that."""
        course, request = resumed(engine, record)
        executor = cls(engine, request, mailbox, course)
        executor._go_on()
        return executor

    @property
    def record(self) -> SweepRecord:
        return self.course.record

    def _go_on(self) -> None:
        """Feed in what came of the instruction that was out, where that is on record."""
        state = self.course.state
        best = self.engine.store.best(self.engine.contract_id)
        if best is not None and state.best_id:
            self.known[best.id] = Candidate(best.files, best.overlay)
        unheard = None if state.ended else outcomes.unheard(self.engine, self.record.id, state)
        if unheard is not None:
            self.course.hear(unheard)

    async def run(self) -> SweepReport:
        """Carry the sweep to its end, and report it."""
        try:
            while not self.course.state.ended:
                await self._turn()
        except asyncio.CancelledError:
            with suppress(StorageFault):
                if not self.course.detached:
                    self._interrupted()
            raise
        except KerneldeckError as fault:
            with suppress(StorageFault):
                self.course.close("failed", fault.sentence)
            raise
        finally:
            self.mailbox.close()
        return self._close()

    def _interrupted(self) -> None:
        """Stopped, on record; a winner that was being kept is, whatever of that was done before."""
        out, stopped = self.course.state.out, StopAsked(INTERRUPTED, self.engine.actor)
        self.course.hear(self._keep(out.candidate_id) if isinstance(out, Keep) else stopped)
        self._close()

    def _close(self) -> SweepReport:
        state = self.course.state
        self.course.close(state.phase, state.reason)
        start = Candidate(self.request.current)
        return report.report_of(self.engine.store, self.record, state, self.known, start, self.baseline)

    async def _turn(self) -> None:
        """Until the instruction that is out has an outcome, or, while paused, until the next command."""
        state = self.course.state
        if state.out is None:
            asked = await self.mailbox.next()
            asked.answer(self.course.obey(asked.command))
            return
        began_s = time.monotonic()
        outcome = await self._carried_out(state.out)
        if outcome is not None:
            elapsed_s = state.elapsed_s + time.monotonic() - began_s
            self.course.hear(TimePassed(elapsed_s), outcome)

    async def _carried_out(self, work: Work) -> Outcome | None:
        """What came of the work, commands being obeyed meanwhile; of cancelled work what is on record.

        None once the sweep has ended.
        """
        try:
            async with asyncio.TaskGroup() as group:
                working = group.create_task(self._carry_out(work))
                obeying = group.create_task(self._obey_during(working))
                working.add_done_callback(lambda _: obeying.cancel())
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        if self.course.state.ended:
            return None
        if not working.cancelled():
            return working.result()
        return outcomes.unheard(self.engine, self.record.id, self.course.state)

    async def _obey_during(self, working: asyncio.Task[Outcome]) -> None:
        while True:
            asked = await self.mailbox.next()
            asked.answer(self.course.obey(asked.command))
            state = self.course.state
            # Only once: a second one would cut the ending short that the first began.
            if (state.ended or state.ending) and not working.cancelling():
                working.cancel()

    async def _carry_out(self, work: Work) -> Outcome:
        match work:
            case PrepareBaseline():
                return await self._prepare_baseline()
            case RunScreen(candidate_id):
                return await self._screen(candidate_id)
            case Confirm():
                return await self._confirm(work)
            case VerifyFinal(candidate_id):
                settings = replace(self.request.final, sweep_id=self.record.id)
                final = await verify_candidate(self.engine, self.known[candidate_id], settings)
                return outcomes.verified(final.record)
            case Keep(candidate_id):
                return self._keep(candidate_id)

    async def _prepare_baseline(self) -> Outcome:
        """The standing best, else what the workspace holds, once it has passed the final verification."""
        best = self.engine.store.best(self.engine.contract_id)
        if best is None:
            settings = replace(self.request.final, restore=False, sweep_id=self.record.id)
            self.baseline = await guarded_verify(self.engine, Candidate(self.request.current), settings)
            if self.baseline.ending is not Ending.FIRST_BEST or self.baseline.best is None:
                return self._baseline_failed(self.baseline)
            best = self.baseline.best
        self.known[best.id] = Candidate(best.files, best.overlay)
        return BaselineReady(best.id, self._own_trial(best))

    def _baseline_failed(self, baseline: Report) -> BaselineFailed:
        final = baseline.final
        lost = final is not None and final.outcome.status in NEVER_RESTORE
        return BaselineFailed(f"the workspace's own files: {baseline.reason}", lost)

    def _own_trial(self, best: Checkpoint) -> int:
        """The trial by which this sweep, perhaps before it was cut off, made the first best; 0 otherwise."""
        trial = recalled_trial(self.engine.store, best.trial_id or 0)
        return trial.record.id if trial and trial.record.sweep_id == self.record.id else 0

    async def _screen(self, candidate_id: str) -> Outcome:
        may_fork = not self.request.plan.screen_decides
        asked = replace(self.request.screen, sweep_id=self.record.id, may_fork=may_fork)
        trial = await run_scored(self.engine, self.known[candidate_id], asked)
        return outcomes.screened(trial.record)

    async def _confirm(self, asked: Confirm) -> Outcome:
        rule = replace(SWEEP, finalists=asked.finalists, min_gain=self.engine.config.gate.min_gain,
                       case_gate=self.engine.config.gate.case_gate)  # fmt: skip
        seed = self.request.final.seed + len(self.course.state.confirmed) + 1
        candidate, against = self.known[asked.candidate_id], self.known[asked.against]
        question = Question(candidate, against, rule, "sweep", seed, self.record.id)
        return outcomes.confirmed(await compare(self.engine, question))

    def _keep(self, candidate_id: str) -> Outcome:
        """First the checkpoint, then the files: neither a crash nor an edit in between loses anything.

        What was done of it before a crash is not done again.
        """
        store, winner, state = self.engine.store, self.known[candidate_id], self.course.state
        standing = store.best(self.engine.contract_id)
        if standing is None or standing.id != winner.id:
            told = next(
                one
                for one in reversed(state.confirmed)
                if one.candidate_id == candidate_id and one.decision_id
            )
            final = recalled_trial(store, state.final_trial)
            assert final is not None
            comparison = report.comparison_of(store, told)
            store.keep(checkpoint_of(self.engine, winner, final, comparison), told.decision_id)
        return WinnerKept(candidate_id, self._written(winner))

    def _written(self, winner: Candidate) -> str:
        """Write the winner into the workspace; a sentence when that could not be."""
        try:
            if self.engine.files.current() != dict(winner.files):
                reason = f"sweep #{self.record.id} kept a better one"
                restore_files(self.engine, winner.files, self.request.current, reason)
        except (ChangedMeanwhile, StorageFault, ConfigFault) as fault:
            return f"{fault.sentence}; to write it: kerneldeck restore"
        return ""
