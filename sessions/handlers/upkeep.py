"""reseal_workspace, collect_garbage and release_lock: what only a person, or nobody, decides."""

from __future__ import annotations

import difflib
from dataclasses import asdict, replace

from core.engine import contract_id, contract_of
from core.guard import Settings, checkpoint_of, verify_candidate
from core.measure.rule import PERSON
from core.operations.declaration import Answer
from core.records import Candidate, Checkpoint, FileSet
from core.words import JsonObject
from sessions.gc import Quotas, collect
from sessions.handlers.run import exit_code_of_trial
from sessions.lock import release_foreign
from sessions.reports import trial_json
from sessions.session import Reading, Session, materials, read_protected
from sessions.where import Parts

MEGABYTE = 1_000_000
DIFF_LINES = 40


async def reseal_workspace(session: Session, arguments: JsonObject) -> Answer:
    """A new seal, a new contract, and the old best measured in it as its anchor."""
    found = read_protected(session.workspace)
    changed = sorted(n for n in {*found, *session.sealed} if found.get(n) != session.sealed.get(n))
    content: JsonObject = {"changed": changed, "difference": _difference(session, found, changed)}
    waiting = _waiting_best(session)
    if arguments["dry_run"] or not (changed or waiting):
        return Answer({"outcome": "dry_run" if changed else "unchanged", **content})
    old_best = session.store.best(session.engine.contract_id) if changed else waiting
    description = contract_of(session.workspace.config, found, session.facts)
    fresh = contract_id(description)
    session.store.put_contract(fresh, description)
    if changed:
        session.store.put_seal(found, fresh)
    content |= {"outcome": "resealed", "contract": fresh, "best": None}
    if old_best is None or session.store.best(fresh) is not None:
        return Answer(content)
    resealed = _under(session, found, fresh)
    try:
        settings = Settings(PERSON, seed=0, mode=session.engine.config.objective.decide, purpose="anchor")
        candidate = Candidate(old_best.files, old_best.overlay)
        final = await verify_candidate(resealed.engine, candidate, settings)
        content["measured_again"] = trial_json(resealed, final)
        if final.ok:
            session.store.keep(checkpoint_of(resealed.engine, candidate, final), None)
            content["best"] = candidate.id
        return Answer(content, exit_code_of_trial(final))
    finally:
        await resealed.engine.target.close()


def _waiting_best(session: Session) -> Checkpoint | None:
    """The best of the last seal's contract, when an earlier reseal could not measure it in this one."""
    store = session.store
    if store.best(session.engine.contract_id) is not None:
        return None
    before = [seal.contract_id for seal in store.seals(2)[1:]]
    older = [contract.id for contract in store.contracts() if contract.id != session.engine.contract_id]
    bests = (store.best(contract) for contract in [*before, *older] if len(store.seals(2)) > 1)
    return next((best for best in bests if best is not None), None)


def _under(session: Session, protected: FileSet, contract: str) -> Session:
    """The same session under another seal."""
    parts = Parts(
        session.place, materials(session.workspace, protected), session.store.blobs,
        session.engine.config.objective,
    )  # fmt: skip
    target = session.where.target(parts)
    return replace(
        session, engine=replace(session.engine, target=target, contract_id=contract), sealed=protected
    )


def _difference(session: Session, found: FileSet, changed: list[str]) -> list[str]:
    lines: list[str] = []
    for name in changed:
        before, after = (_lines(session, files, name) for files in (session.sealed, found))
        lines += list(difflib.unified_diff(before, after, f"sealed/{name}", name, lineterm="", n=1))
    left_out = len(lines) - DIFF_LINES
    return lines[:DIFF_LINES] + ([f"[{left_out} more lines]"] if left_out > 0 else [])


def _lines(session: Session, files: FileSet, name: str) -> list[str]:
    content = session.store.blobs.get(files[name].sha256) if name in files else b""
    return content.decode("utf-8", "replace").splitlines()


async def collect_garbage(session: Session, arguments: JsonObject) -> Answer:
    """Oldest first, and never what a checkpoint, a seal or an unfinished write needs."""
    quotas = Quotas(*(int(arguments[f"{what}_mb"] * MEGABYTE) for what in ("samples", "blobs", "staging")))
    report = collect(session.store, quotas, dry_run=arguments["dry_run"])
    areas = {name: asdict(getattr(report, name)) for name in ("samples", "blobs", "staging")}
    return Answer({"dry_run": report.dry_run, "freed_bytes": report.freed_bytes, **areas})


def release_lock(reading: Reading, arguments: JsonObject) -> Answer:
    """Free a workspace from a holder on another machine."""
    holder = release_foreign(reading.place)
    who = f"process {holder.pid} on {holder.host}" if holder else ""
    return Answer({"outcome": "released" if holder else "nothing_to_release", "holder": who})
