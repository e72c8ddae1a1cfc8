"""One trial from its row to its outcome: begun in the store before it runs, ended there whatever happens."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from core.engine import Engine
from core.errors import ArgumentFault
from core.events import TrialBegan, TrialEnded
from core.records import Candidate, TrialRecord
from core.targets.job import Job, Layout, Outcome
from core.words import Status
from core.workspace.config import Mode, WorkspaceConfig


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a trial beside its candidate.

    `warmup` and `repeats` reach the command only where the toml names flags for them. What decides is
    started from nothing: only a screening trial `may_fork`.
    """

    mode: str
    purpose: str
    verifier: bool = False
    warmup: int | None = None
    repeats: int | None = None
    timeout_s: float | None = None
    sweep_id: int | None = None
    may_fork: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """An ended trial: its row and the outcome behind it."""

    record: TrialRecord
    outcome: Outcome

    @property
    def ok(self) -> bool:
        return self.outcome.status is Status.OK

    @property
    def told(self) -> str:
        """`timeout: still running after 2.0 s, ended`: the status, and why when that is known."""
        status = self.outcome.status.value
        return f"{status}: {self.record.reason}" if self.record.reason else status


async def run_trial(engine: Engine, candidate: Candidate, asked: Asked) -> Trial:
    """Run the candidate alone, once, from nothing."""
    return await run_job(engine, candidate, asked, (Layout(candidate.files),))


async def run_scored(engine: Engine, candidate: Candidate, asked: Asked) -> Trial:
    """A run that ends with a score, also where the verifier only says whether it passed."""
    trial = await run_trial(engine, candidate, asked)
    if trial.ok and trial.outcome.score is None:
        return await run_trial(engine, candidate, replace(asked, verifier=False))
    return trial


async def run_job(
    engine: Engine,
    candidate: Candidate,
    asked: Asked,
    slots: tuple[Layout, ...],
    visits: str = "",
    score_slot: int = 0,
) -> Trial:
    """Run one process for the candidate; with the best beside it, `score_slot` is the candidate's."""
    mode = mode_named(engine.config, asked.mode)
    verifier = asked.verifier and bool(mode.verifier)
    record = _begin(engine, candidate, replace(asked, mode=mode.name, verifier=verifier))
    job = Job(
        command=_command(engine, mode, verifier, asked),
        mode=mode.name,
        timeout_s=len(slots) * (asked.timeout_s or mode.timeout_s),
        cpu_s=mode.cpu_s and len(slots) * mode.cpu_s,
        slots=slots,
        output_dir=engine.outputs / str(record.id),
        visits=visits,
        needs_score=not verifier,
        own_channel=engine.arms_in_one_process and not verifier,
        score_slot=score_slot,
        prefork=engine.config.extras.prefork if asked.may_fork else (),
    )
    began_s = time.monotonic()
    try:
        outcome = await engine.target.run(job)
    except asyncio.CancelledError:
        stopped = Outcome(Status.CANCELLED, "interrupted", duration_s=time.monotonic() - began_s)
        _end(engine, record, stopped)
        raise
    if outcome.status is Status.INFRA and not outcome.duration_s:  # of a lost process nobody knows it
        outcome = replace(outcome, duration_s=time.monotonic() - began_s)
    return Trial(_end(engine, record, outcome), outcome)


def mode_named(config: WorkspaceConfig, name: str) -> Mode:
    """The mode of that name; ArgumentFault names those there are.

    In a workspace without modes of these names, `final` means the deciding one, and `dev` the first of
    the others (the only one, when there is but one).
    """
    decide = config.objective.decide
    stand_in = {"final": decide, "dev": next((one for one in config.modes if one != decide), decide)}
    mode = config.modes.get(name) or config.modes.get(stand_in.get(name, ""))
    if mode is None:
        raise ArgumentFault(f"there is no mode {name!r}", f"modes: {', '.join(config.modes)}")
    return mode


def verifying_mode(config: WorkspaceConfig, name: str) -> Mode:
    """The mode of that name, which must have a verifier."""
    mode = mode_named(config, name)
    if not mode.verifier:
        raise ArgumentFault(
            f"mode {mode.name} has no verifier",
            f"add it to kerneldeck.toml: [modes.{mode.name}] verifier = […]",
        )
    return mode


def _begin(engine: Engine, candidate: Candidate, asked: Asked) -> TrialRecord:
    engine.store.add_candidate(candidate)
    record = engine.store.begin_trial(
        TrialRecord(
            candidate_id=candidate.id,
            contract_id=engine.contract_id,
            mode=asked.mode,
            purpose=asked.purpose,
            target=engine.target.name,
            actor=engine.actor,
            verifier=asked.verifier,
            overlay=candidate.overlay,
            started_s=time.time(),
            sweep_id=asked.sweep_id,
        )
    )
    engine.tell(TrialBegan(record))
    return record


def _end(engine: Engine, record: TrialRecord, outcome: Outcome) -> TrialRecord:
    reason = "; ".join(part for part in (outcome.reason, *outcome.notes) if part)
    ended = replace(
        record,
        status=outcome.status,
        reason=reason,
        stage=outcome.stage,
        score=outcome.score,
        duration_s=outcome.duration_s,
        exit_code=outcome.exit_code,
        channel=outcome.channel,
        output_dir=str(record.id),
    )
    engine.store.end_trial(ended, outcome.result)
    engine.tell(TrialEnded(ended))
    return ended


def _command(engine: Engine, mode: Mode, verifier: bool, asked: Asked) -> tuple[str, ...]:
    command = mode.verifier if verifier else mode.benchmark
    options = engine.config.options
    for flag, value in ((options.warmup, asked.warmup), (options.repeats, asked.repeats)):
        if flag and value is not None:
            command = (*command, flag, str(value))
    return command
