"""guarded_final_verify."""

from __future__ import annotations

import secrets
from dataclasses import replace

from core.engine import Engine
from core.guard import Ending, Report, Settings, guarded_verify
from core.measure.rule import VERIFY, Rule
from core.operations.declaration import Answer
from core.records import Candidate
from core.trials import mode_named
from core.words import JsonObject, Status
from sessions.earlier import other_bests
from sessions.reports import comparison_json, trial_json
from sessions.session import Session

EXIT_CODES = {
    Ending.FIRST_BEST: 0,
    Ending.CONFIRMED: 0,
    Ending.KEPT: 0,
    Ending.NOT_BETTER: 0,
    Ending.UNCLEAR: 5,
    Ending.RESTORED: 1,
    Ending.RESTORED_UNVERIFIED: 1,
    Ending.REGRESSED: 1,
    Ending.FAILED: 1,
    Ending.PENDING: 3,
}
SEED_BITS = 31


async def guarded_final_verify(session: Session, arguments: JsonObject) -> Answer:
    """Keep or restore, by what the final verification and the gate say."""
    engine = session.engine
    arguments = arguments | {"mode": mode_named(engine.config, arguments["mode"]).name}
    candidate = Candidate(engine.files.current())
    if arguments["dry_run"]:
        return Answer(_plan(session, candidate, arguments))
    report = await run_guarded(session, candidate, arguments)
    return Answer(report_json(session, report), exit_code_of(report))


async def run_guarded(session: Session, candidate: Candidate, arguments: JsonObject) -> Report:
    return await guarded_verify(session.engine, candidate, settings_of(session.engine, arguments))


def settings_of(engine: Engine, arguments: JsonObject) -> Settings:
    seed = arguments.get("seed")
    return Settings(
        rule=person_rule(engine, VERIFY),
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        mode=arguments["mode"],
        verifier=arguments["verifier"],
        warmup=arguments["warmup"],
        repeats=arguments["repeats"],
        restore=arguments["restore_on_regression"],
        restore_files=tuple(arguments["restore_files"]),
        max_score=arguments["max_score"],
    )


def person_rule(engine: Engine, rule: Rule) -> Rule:
    """`rule` with the workspace's own gate settings."""
    gate = engine.config.gate
    return replace(rule, min_gain=gate.min_gain, case_gate=gate.case_gate)


def exit_code_of(report: Report) -> int:
    """0 stands, 1 regressed or failed, 3 infrastructure, 4 time-out, 5 could not tell."""
    failed = report.comparison.failed if report.comparison else None
    ended = failed or report.final
    status = ended.outcome.status if ended else Status.OK
    if report.ending is Ending.PENDING:
        pending = {
            Status.UNSTABLE: 5,
            Status.CANCELLED: 130,
            Status.TIMEOUT: 4,
            Status.CRASH: 5,
            Status.OOM: 5,
        }
        return pending.get(status, 5 if status is Status.OK else 3)
    if report.ending in (Ending.FAILED, Ending.REGRESSED) and status is Status.TIMEOUT:
        return 4
    return EXIT_CODES[report.ending]


def report_json(session: Session, report: Report) -> JsonObject:
    """What happened, for every face."""
    return {
        "outcome": report.ending.value,
        "reason": report.reason,
        "candidate": report.candidate.id,
        "best": report.best.id if report.best else None,
        "final": trial_json(session, report.final) if report.final else None,
        "gate": comparison_json(session, report.comparison),
        "restored_files": list(report.restored_files),
        "other_contracts": _passed_over(session, report),
    }


def _passed_over(session: Session, report: Report) -> list[JsonObject]:
    """What stands in other contracts when this one got its first best: nobody compared the two."""
    if report.ending is not Ending.FIRST_BEST:
        return []
    contract = session.store.contract(session.engine.contract_id)
    return other_bests(session.store, contract.id, contract.description) if contract else []


def _plan(session: Session, candidate: Candidate, arguments: JsonObject) -> JsonObject:
    best = session.store.best(session.engine.contract_id)
    standing = best.id if best else None
    return {
        "dry_run": True,
        "candidate": candidate.id,
        "best": standing,
        "would_verify": arguments["mode"],
        "would_compare_with_best": standing is not None and standing != candidate.id,
        "would_restore_on_regression": arguments["restore_on_regression"],
    }
