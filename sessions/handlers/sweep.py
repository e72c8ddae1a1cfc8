"""sweep_kernel_config and resume_sweep: which candidates to run, and the report of what came of them."""

from __future__ import annotations

import math
import secrets

from core.candidates import with_overlay
from core.errors import ArgumentFault
from core.events import Note
from core.guard import Settings
from core.measure.rule import SWEEP
from core.operations.declaration import Answer
from core.records import Candidate, FileSet, SweepRecord
from core.sweep.executor import SweepExecutor
from core.sweep.plan import Plan
from core.sweep.report import SweepReport
from core.sweep.request import SweepRequest
from core.sweep.resume import reported
from core.sweep.state import TARGET_LOST
from core.trials import Asked, mode_named, verifying_mode
from core.words import JsonObject
from sessions.handlers.choice import Choice, choose
from sessions.handlers.verify import SEED_BITS, exit_code_of, person_rule, report_json
from sessions.reports import comparison_json
from sessions.session import Session
from sessions.store import SessionStore

SHOWN_LEADERS = 10


async def sweep_kernel_config(session: Session, arguments: JsonObject) -> Answer:
    """Screen, confirm by the gate, and keep the winner when asked to."""
    engine = session.engine
    mode = (verifying_mode if arguments["verifier"] else mode_named)(engine.config, arguments["mode"]).name
    if not engine.config.config_file:
        raise ArgumentFault(
            "this workspace names no config file, so there is nothing to sweep",
            'add to kerneldeck.toml: [config] file = "…" and [knobs]',
        )
    seed = secrets.randbits(SEED_BITS) if arguments["seed"] is None else arguments["seed"]
    current = engine.files.current()
    choice = await choose(session, current, arguments, mode, seed)
    if arguments["dry_run"]:
        content = {"dry_run": True, "how": choice.how, "mode": mode, "configs": choice.overlays, "seed": seed}
        return Answer(content)
    engine.tell(Note(choice.how))
    executor = SweepExecutor(engine, _request(session, current, choice, arguments, seed, mode))
    return await _carried_out(session, executor)


async def resume_sweep(session: Session, arguments: JsonObject) -> Answer:
    """Go on with a sweep whose process has gone; one that has ended is only reported again."""
    record = sweep_meant(session.store, arguments["sweep"])
    if record.state != "running":
        return _answer(session, reported(session.store, record))
    return await _carried_out(session, SweepExecutor.resumed(session.engine, record))


def sweep_meant(store: SessionStore, number: int | None) -> SweepRecord:
    """The sweep of that number, else one that waits to go on, else the last; ArgumentFault for none."""
    if number is not None:
        record = store.sweep(number)
        if record is None:
            raise ArgumentFault(f"there is no sweep {number}", "kerneldeck sweep config starts one")
        return record
    found = [*store.running_sweeps(), *store.sweeps(1)]
    if not found:
        raise ArgumentFault("there was no sweep yet", "kerneldeck sweep config starts one")
    return found[0]


async def _carried_out(session: Session, executor: SweepExecutor) -> Answer:
    if session.caller.on_sweep is not None:
        session.caller.on_sweep(executor.record.id, executor.mailbox)
    return _answer(session, await executor.run())


def _answer(session: Session, report: SweepReport) -> Answer:
    return Answer(_report(session, report), _exit_code(report))


def _exit_code(report: SweepReport) -> int:
    """0 done, 1 nothing passed or not written, 3 target lost, 5 could not tell, 130 stopped."""
    if report.outcome == "failed":
        return exit_code_of(report.baseline) if report.baseline else 1
    if report.outcome == "stopped":
        return 3 if report.reason == TARGET_LOST else 130
    if report.unwritten or not _any_passed(report):
        return 1
    return 5 if report.winner is None and _untold(report) else 0


def _any_passed(report: SweepReport) -> bool:
    """Whether any configuration that was asked for passed; the workspace as it is does not count."""
    start = report.state.plan.candidates[0]
    asked = [trial for candidate, trial in report.trials.items() if candidate != start]
    return not asked or any(trial.ok for trial in asked)


def _untold(report: SweepReport) -> int:
    """How many confirmations gave no verdict, and not for a fault of the candidate."""
    return sum(one.decision is None and one.at_fault != "candidate" for one in report.comparisons)


def _request(
    session: Session, current: FileSet, choice: Choice, arguments: JsonObject, seed: int, mode: str
) -> SweepRequest:
    engine = session.engine
    base = Candidate(current)
    made = [with_overlay(current, engine.store.blobs, engine.config.config_file, o) for o in choice.overlays]
    candidates = {candidate.id: candidate for candidate in [base, *made]}
    candidates[base.id] = next((one for one in made if one.id == base.id), base)
    objective = engine.config.objective
    return SweepRequest(
        candidates=candidates,
        current=current,
        screen=Asked(mode, "screen", arguments["verifier"], arguments["warmup"], arguments["repeats"]),
        final=Settings(person_rule(engine, SWEEP), seed, objective.decide),
        plan=Plan(
            candidates=tuple(candidates),
            lower_is_better=engine.lower_is_better,
            finalists=arguments["finalists"],
            keep=arguments["keep_best"],
            budget_s=arguments["max_seconds"],
            screen_decides=objective.deterministic and mode == objective.decide,
            waits_for_target=session.caller.detached,
        ),
        description={
            "how": choice.how, "batch": choice.batch, "seed": seed, "mode": mode,
            "finalists": arguments["finalists"], "keep_best": arguments["keep_best"],
        },
        detached=session.caller.detached,
    )  # fmt: skip


def _report(session: Session, report: SweepReport) -> JsonObject:
    plan = report.record.plan
    sign = 1.0 if session.engine.lower_is_better else -1.0
    rows: list[JsonObject] = [
        {
            "candidate": candidate_id,
            "config": trial.record.overlay,
            "status": trial.outcome.status,
            "score": trial.outcome.score,
            "reason": trial.record.reason,
            "trial": trial.record.id,
            "is_start": candidate_id == report.state.plan.candidates[0],
        }
        for candidate_id, trial in report.trials.items()
    ]
    rows.sort(key=lambda row: math.inf if row["score"] is None else sign * row["score"])
    decision = report.decision
    return {
        "sweep": report.record.id,
        "outcome": report.outcome,
        "reason": _reason(report),
        "how": plan["how"],
        "batch": plan["batch"],
        "seed": plan["seed"],
        "mode": plan["mode"],
        "metric": session.engine.config.objective.metric,
        "unit": session.engine.config.objective.unit,
        "screened": report.record.summary["screened"],
        "leaders": rows[:SHOWN_LEADERS],
        "baseline": report_json(session, report.baseline) if report.baseline else None,
        "confirmations": [comparison_json(session, one) for one in report.comparisons],
        "winner": _winner(session, report),
        "gate": comparison_json(session, decision),
        "kept": report.kept,
        "unwritten": report.unwritten,
    }


def _reason(report: SweepReport) -> str:
    if report.unwritten:
        return f"kept as the best, but not written into the workspace: {report.unwritten}"
    if report.outcome == "done" and not _any_passed(report):
        return "no configuration passed the screen"
    count = _untold(report)
    if report.outcome == "done" and report.winner is None and count:
        return f"no candidate was shown to be better than the best; {count} could not be told"
    return report.reason


def _winner(session: Session, report: SweepReport) -> JsonObject | None:
    if report.winner is None:
        return None
    trial = report.trials.get(report.winner.id)
    return {
        "candidate": report.winner.id,
        "config": report.winner.overlay,
        "trial": trial.record.id if trial else None,
    }
