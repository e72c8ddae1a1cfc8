"""restore_best_checkpoint and apply_candidate: the two ways in which the workspace's files change."""

from __future__ import annotations

import secrets
from string import hexdigits
from typing import TypeVar

from core.candidates import read_config, with_overlay
from core.decide import Comparison, Question, compare
from core.errors import ArgumentFault, ChangedMeanwhile, ConfigFault, StorageFault, WorkFault
from core.guard import Settings, checkpoint_of, chosen_files, restore_files, verify_candidate
from core.measure.rule import PERSON
from core.operations.declaration import Answer
from core.records import Candidate, Checkpoint, FileSet
from core.space import Space
from core.trials import Trial
from core.words import JsonObject, Status
from sessions.handlers.choice import faults_of
from sessions.handlers.run import exit_code_of_trial
from sessions.handlers.verify import SEED_BITS, person_rule
from sessions.reports import comparison_json, trial_json
from sessions.session import Session

SHORTEST_PREFIX, SHORT_ID = 4, 12
T = TypeVar("T")


async def restore_best_checkpoint(session: Session, arguments: JsonObject) -> Answer:
    """Write a checkpoint's files back; what they replace is kept as contents of the journal."""
    engine = session.engine
    checkpoint = _checkpoint(session, arguments["checkpoint"])
    found = engine.files.current()
    wanted = chosen_files(checkpoint.files, found, arguments["files"])
    changed = _changed(wanted, found)
    content: JsonObject = {"checkpoint": checkpoint.id, "files": changed}
    if arguments["dry_run"]:
        return Answer({"dry_run": True, **content})
    if changed:
        restore_files(engine, wanted, found, "restored by hand")
    return Answer({"outcome": "restored" if changed else "unchanged", **content})


def _checkpoint(session: Session, prefix: str) -> Checkpoint:
    contract = session.engine.contract_id
    if not prefix:
        best = session.store.best(contract)
        if best is not None:
            return best
        others = len(session.store.checkpoints())
        hint = "verify what the workspace holds first: kerneldeck verify"
        if others:
            hint = f"{others} of other contracts can be named with --checkpoint; see: kerneldeck inspect"
        raise WorkFault("no best stands for this contract yet", hint)
    _check_prefix(prefix)
    found = {one.id: one for one in session.store.checkpoints() if one.id.startswith(prefix)}
    for candidate_id in session.store.candidate_ids(prefix):
        found.setdefault(candidate_id, _replaced(session, candidate_id))
    return _only(list(found.values()), prefix, "checkpoint or candidate")


def _replaced(session: Session, candidate_id: str) -> Checkpoint:
    """What was tried once, an edit that a restore replaced say: a person may have it back, as it was."""
    candidate = _stored(session, candidate_id)
    return Checkpoint(candidate_id, session.engine.contract_id, candidate.files, candidate.overlay, 0.0)


async def apply_candidate(session: Session, arguments: JsonObject) -> Answer:
    """Verification first, then the gate, then the files; a dry run ends before anything runs."""
    engine = session.engine
    candidate = _named_candidate(session, arguments)
    found = engine.files.current()
    content: JsonObject = {"candidate": candidate.id, "files": _changed(candidate.files, found)}
    if arguments["dry_run"]:
        return Answer({"dry_run": True, "outcome": "dry_run", **content})
    settings = _settings(session, arguments)
    final = await verify_candidate(engine, candidate, settings)
    content["final"] = trial_json(session, final)
    if not final.ok and arguments["require_final_pass"]:
        reason = f"the final verification ended {final.told}"
        return Answer({"outcome": "refused", "reason": reason, **content}, exit_code_of_trial(final))
    best = session.store.best(engine.contract_id)
    comparison = await _gate(session, candidate, best, settings)
    content["gate"] = comparison_json(session, comparison)
    refusal, code = _refusal(comparison, final, arguments["require_improvement"])
    if refusal:
        return Answer({"outcome": "refused", "reason": refusal, **content}, code)
    better = comparison is not None and comparison.decision is not None and comparison.decision.accepted
    if final.ok and (better or best is None):
        decision_id = comparison.record.id if comparison and comparison.record else None
        session.store.keep(checkpoint_of(engine, candidate, final, comparison), decision_id)
        content["best"] = candidate.id
    return _written(session, candidate, found, content)


def _written(session: Session, candidate: Candidate, found: FileSet, content: JsonObject) -> Answer:
    """The files last, so that what was kept is kept even when a file was edited meanwhile."""
    try:
        if content["files"]:
            restore_files(
                session.engine, candidate.files, found, f"applied candidate {candidate.id[:SHORT_ID]}"
            )
    except (ChangedMeanwhile, StorageFault, ConfigFault) as fault:
        return Answer({"outcome": "not_written", "reason": fault.sentence, **content}, 1)
    return Answer({"outcome": "applied", **content})


def _settings(session: Session, arguments: JsonObject) -> Settings:
    seed = arguments["seed"]
    return Settings(
        rule=person_rule(session.engine, PERSON),
        seed=secrets.randbits(SEED_BITS) if seed is None else seed,
        mode=session.engine.config.objective.decide,
        purpose="apply",
    )


async def _gate(
    session: Session, candidate: Candidate, best: Checkpoint | None, settings: Settings
) -> Comparison | None:
    if best is None or best.id == candidate.id:
        return None
    standing = Candidate(best.files, best.overlay)
    return await compare(session.engine, Question(candidate, standing, settings.rule, "apply", settings.seed))


def _refusal(comparison: Comparison | None, final: Trial, must_improve: bool) -> tuple[str, int]:
    """Why the gate lets it not through, and the exit code.

    Without a best to beat (none stands, or this is it) only a passed final verification lets it through.
    """
    if comparison is None:
        return (
            ("", 0) if final.ok else (f"the final verification ended {final.told}", exit_code_of_trial(final))
        )
    decision, failed = comparison.decision, comparison.failed
    if decision is None and comparison.at_fault == "candidate" and failed is not None:
        return f"while it was measured: {failed.told}", exit_code_of_trial(failed)
    if decision is None:
        lost = failed is not None and failed.outcome.status is Status.INFRA
        who = "the best failed, " if comparison.at_fault == "best" else ""
        return f"no verdict: {who}{comparison.reason}", 3 if lost else 5
    if decision.accepted:
        return "", 0
    if decision.blocked:
        return f"faster, but a case loses too much: {', '.join(decision.blocked)}", 1
    if must_improve:
        unclear = decision.reason in ("looks_spent", "not_deterministic")
        return "the gate does not call it faster than the best", 5 if unclear else 1
    if decision.verdict == "slower" or decision.restore:
        return "the gate calls it slower than the best", 1
    return "", 0


def _named_candidate(session: Session, arguments: JsonObject) -> Candidate:
    given = [name for name in ("config", "trial", "candidate") if arguments[name]]
    if len(given) != 1:
        raise ArgumentFault(
            "say which candidate: exactly one of config, trial, candidate",
            "for example: kerneldeck apply --trial 12, or --config '{\"num_warps\": 4}'",
        )
    if arguments["config"]:
        return _from_config(session, arguments["config"])
    if arguments["trial"]:
        trial = session.store.trial(arguments["trial"])
        if trial is None:
            raise ArgumentFault(f"there is no trial #{arguments['trial']}", "see: kerneldeck rank")
        return _stored(session, trial.candidate_id)
    prefix = arguments["candidate"]
    _check_prefix(prefix)
    ids = [found.id for found in session.store.checkpoints()] + session.store.candidate_ids(prefix)
    matching = sorted({one for one in ids if one.startswith(prefix)})
    return _stored(session, _only(matching, prefix, "candidate"))


def _from_config(session: Session, overlay: JsonObject) -> Candidate:
    engine = session.engine
    if not engine.config.config_file:
        raise ArgumentFault("this workspace names no config file to set knobs in", "apply a --trial instead")
    best = session.store.best(engine.contract_id)
    base: FileSet = best.files if best else engine.files.current()
    now = read_config(base, session.store.blobs, engine.config.config_file)
    faults = faults_of(Space.of(engine.config), now, overlay)
    if faults:
        raise ArgumentFault(faults[0], "; ".join(faults[1:]))
    return with_overlay(base, session.store.blobs, engine.config.config_file, overlay)


def _stored(session: Session, candidate_id: str) -> Candidate:
    candidate = session.store.candidate(candidate_id)
    if candidate is not None:
        return candidate
    checkpoint = session.store.checkpoint(candidate_id)
    if checkpoint is None:
        raise WorkFault(f"candidate {candidate_id[:SHORT_ID]} is no longer in the store")
    return Candidate(checkpoint.files, checkpoint.overlay)


def _check_prefix(prefix: str) -> None:
    if len(prefix) < SHORTEST_PREFIX or set(prefix) - set(hexdigits.lower()):
        raise ArgumentFault(
            f"{prefix!r} is no beginning of an id", f"give at least {SHORTEST_PREFIX} of its digits 0-9 a-f"
        )


def _only(found: list[T], prefix: str, what: str) -> T:
    if not found:
        raise ArgumentFault(f"no {what} begins with {prefix!r}", "see: kerneldeck inspect, kerneldeck rank")
    if len(found) > 1:
        raise ArgumentFault(f"{len(found)} {what}s begin with {prefix!r}", "give more of its digits")
    return found[0]


def _changed(wanted: FileSet, found: FileSet) -> list[str]:
    return sorted(path for path in {*wanted, *found} if wanted.get(path) != found.get(path))
