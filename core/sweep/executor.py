"""Carries the sweep's instructions out, one at a time, and feeds back what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from core.decide import Comparison, Question, compare
from core.engine import Engine
from core.errors import ChangedMeanwhile, ConfigFault, KerneldeckError, StorageFault
from core.events import SweepStep
from core.guard import (
    Ending,
    Report,
    Settings,
    checkpoint_of,
    guarded_verify,
    restore_files,
    verify_candidate,
)
from core.measure.rule import SWEEP
from core.records import Candidate, FileSet, SweepRecord
from core.sweep import state as machine
from core.sweep.state import Event, Instruction, Plan, SweepState
from core.trials import Asked, Trial, run_scored
from core.words import NEVER_RESTORE, JsonObject, Status


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep to run: its candidates by id, the screen's settings, and what to do with a winner.

    `current` are the workspace's mutable files as the sweep found them.
    """

    candidates: Mapping[str, Candidate]
    current: FileSet
    screen: Asked
    final: Settings
    plan: Plan
    description: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep did. `decision` is the winner's direct comparison with the best."""

    record: SweepRecord
    state: SweepState
    outcome: str
    reason: str
    trials: Mapping[str, Trial]
    comparisons: tuple[Comparison, ...]
    baseline: Report | None
    winner: Candidate | None = None
    kept: bool = False
    unwritten: str = ""  # why the winner, although kept, could not be written into the workspace

    @property
    def decision(self) -> Comparison | None:
        """The last comparison of the winner with the best that stood when the sweep began."""
        if self.winner is None:
            return None
        wanted = (self.winner.id, self.state.best_id)
        for comparison in reversed(self.comparisons):
            record = comparison.record
            if record is not None and (record.candidate_id, record.best_id) == wanted:
                return comparison
        return None


class SweepExecutor:
    """Runs one sweep. The workspace's files change only when a winner is kept."""

    def __init__(self, engine: Engine, request: SweepRequest) -> None:
        self.engine = engine
        self.request = request
        self.trials: dict[str, Trial] = {}
        self.comparisons: list[Comparison] = []
        self.baseline: Report | None = None
        self.known: dict[str, Candidate] = dict(request.candidates)
        self.finals: dict[str, Trial] = {}
        self.unwritten = ""
        self.started = time.monotonic()
        self.record = engine.store.add_sweep(
            SweepRecord(request.description, engine.contract_id, engine.actor, time.time())
        )

    async def run(self) -> SweepReport:
        state, instruction = machine.begin(self.request.plan)
        try:
            while not isinstance(instruction, machine.Stop):
                event = await self._carry_out(instruction)
                state, _ = machine.step(state, machine.TimePassed(time.monotonic() - self.started))
                state, following = machine.step(state, event)
                assert following is not None
                instruction = following
                self._tell(state)
        except asyncio.CancelledError:
            state, _ = machine.step(state, machine.StopAsked("interrupted"))
            self._close(state, "stopped", "interrupted")
            raise
        except KerneldeckError as fault:
            with suppress(StorageFault):
                self._close(state, "failed", fault.sentence)
            raise
        return self._close(state, instruction.outcome, instruction.reason)

    async def _carry_out(self, instruction: Instruction) -> Event:
        match instruction:
            case machine.PrepareBaseline():
                return await self._prepare_baseline()
            case machine.RunScreen(candidate_id):
                return await self._screen(candidate_id)
            case machine.Confirm():
                return await self._confirm(instruction)
            case machine.VerifyFinal(candidate_id):
                final = await verify_candidate(self.engine, self.known[candidate_id], self.request.final)
                self.finals[candidate_id] = final
                lost = final.outcome.status in NEVER_RESTORE
                return machine.FinalVerified(candidate_id, final.ok, lost)
            case machine.Keep(candidate_id):
                return self._keep(candidate_id)
        raise AssertionError(f"unknown instruction {instruction}")

    async def _prepare_baseline(self) -> Event:
        """The standing best, else what the workspace holds, once it has passed the final verification."""
        best = self.engine.store.best(self.engine.contract_id)
        if best is None:
            settings = replace(self.request.final, restore=False)
            self.baseline = await guarded_verify(self.engine, Candidate(self.request.current), settings)
            if self.baseline.ending is not Ending.FIRST_BEST or self.baseline.best is None:
                return machine.BaselineFailed(f"the workspace's own files: {self.baseline.reason}")
            best = self.baseline.best
        self.known[best.id] = Candidate(best.files, best.overlay)
        return machine.BaselineReady(best.id)

    async def _screen(self, candidate_id: str) -> Event:
        may_fork = not self.request.plan.screen_decides
        asked = replace(self.request.screen, sweep_id=self.record.id, may_fork=may_fork)
        trial = await run_scored(self.engine, self.known[candidate_id], asked)
        self.trials[candidate_id] = trial
        return machine.TrialEnded(candidate_id, trial.outcome.status, trial.outcome.score)

    async def _confirm(self, asked: machine.Confirm) -> Event:
        rule = replace(SWEEP, finalists=asked.finalists, min_gain=self.engine.config.gate.min_gain,
                       case_gate=self.engine.config.gate.case_gate)  # fmt: skip
        seed = self.request.final.seed + len(self.comparisons) + 1
        candidate, against = self.known[asked.candidate_id], self.known[asked.against]
        question = Question(candidate, against, rule, "sweep", seed, self.record.id)
        comparison = await compare(self.engine, question)
        self.comparisons.append(comparison)
        accepted = comparison.decision is not None and comparison.decision.accepted
        lost = comparison.failed is not None and comparison.failed.outcome.status is Status.INFRA
        return machine.Confirmed(asked.candidate_id, asked.against, accepted, lost)

    def _keep(self, candidate_id: str) -> Event:
        """First the checkpoint, then the files: neither a crash nor an edit in between loses anything."""
        winner = self.known[candidate_id]
        comparison = next(
            c for c in reversed(self.comparisons) if c.record and c.record.candidate_id == candidate_id
        )
        assert comparison.record is not None
        checkpoint = checkpoint_of(self.engine, winner, self.finals[candidate_id], comparison)
        self.engine.store.keep(checkpoint, comparison.record.id)
        reason = f"sweep #{self.record.id} kept a better one"
        try:
            restore_files(self.engine, winner.files, self.request.current, reason)
        except (ChangedMeanwhile, StorageFault, ConfigFault) as fault:
            self.unwritten = f"{fault.sentence}; to write it: kerneldeck restore"
        return machine.WinnerKept(candidate_id)

    def _tell(self, state: SweepState) -> None:
        done = len(state.screened)
        self.engine.tell(SweepStep(state.phase, done, len(self.request.plan.candidates)))

    def _close(self, state: SweepState, outcome: str, reason: str) -> SweepReport:
        winner = self.known.get(state.winner)
        statuses: dict[str, int] = {}
        for trial in self.trials.values():
            statuses[trial.outcome.status] = statuses.get(trial.outcome.status, 0) + 1
        summary: JsonObject = {
            "outcome": outcome,
            "reason": reason,
            "screened": statuses,
            "confirmed": len(self.comparisons),
            "winner": state.winner,
            "kept": state.phase == "done" and reason == "kept",
            "unwritten": self.unwritten,
        }
        self.record = replace(self.record, state=outcome, summary=summary, ended_s=time.time())
        self.engine.store.update_sweep(self.record)
        return SweepReport(
            self.record, state, outcome, reason, dict(self.trials), tuple(self.comparisons),
            self.baseline, winner, summary["kept"], self.unwritten,
        )  # fmt: skip
