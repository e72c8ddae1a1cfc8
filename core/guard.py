"""The guarded final verification: keep what is better, put the best back when a run regresses.

What leads to a restore, and what never does, is `core.words` (RESTORE_AT_ONCE, RESTORE_WHEN_REPRODUCED,
NEVER_RESTORE) and the gate's restore rule; nothing else writes into the workspace here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from core.decide import Comparison, Question, compare
from core.engine import Engine
from core.errors import ArgumentFault, ChangedMeanwhile, ConfigFault, StorageFault
from core.events import Note
from core.figures import figure
from core.measure.anchor import Anchor
from core.measure.rule import Rule
from core.records import Candidate, Checkpoint, FileSet
from core.trials import Asked, Trial, run_scored
from core.words import NEVER_RESTORE, RESTORE_AT_ONCE, RESTORE_WHEN_REPRODUCED

LIMIT_RUNS = 3


class Ending(StrEnum):
    """How a guarded verification ended."""

    FIRST_BEST = "first_best"  # nothing stood for the contract; this passed and now does
    CONFIRMED = "confirmed"  # the workspace holds the best, and it passed again
    KEPT = "kept"  # better than the best by the gate; now the best
    NOT_BETTER = "not_better"  # passed, but the gate did not call it faster; files and best stay
    UNCLEAR = "unclear"  # the gate could not tell; files and best stay
    RESTORED = "restored"  # regressed; the best is back and verified
    RESTORED_UNVERIFIED = "restored_unverified"
    REGRESSED = "regressed"  # would have been restored, but was not asked to or could not be
    FAILED = "failed"  # no best to restore, or the best itself fails
    PENDING = "pending"  # infrastructure or noise: nothing decided, nothing touched


@dataclass(frozen=True, slots=True)
class Report:
    """What a guarded verification did; `reason` is a sentence, `final` the verification's trial."""

    ending: Ending
    reason: str
    candidate: Candidate
    best: Checkpoint | None
    final: Trial | None = None
    comparison: Comparison | None = None
    restored_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How a verification was asked for.

    `max_score`: the objective may not be worse than this, whatever the gate says of the best.
    """

    rule: Rule
    seed: int
    mode: str
    verifier: bool = True
    warmup: int | None = None
    repeats: int | None = None
    restore: bool = True
    restore_files: tuple[str, ...] = ()  # only these, when given
    max_score: float | None = None
    purpose: str = "verify"
    sweep_id: int | None = None


async def verify_candidate(engine: Engine, candidate: Candidate, settings: Settings) -> Trial:
    """The final verification: from nothing, alone, sealed files; with a score also where the verifier
    only says whether it passed."""
    asked = Asked(
        settings.mode, settings.purpose, settings.verifier, settings.warmup, settings.repeats,
        sweep_id=settings.sweep_id,
    )  # fmt: skip
    return await run_scored(engine, candidate, asked)


async def guarded_verify(engine: Engine, candidate: Candidate, settings: Settings) -> Report:
    """Verify what the workspace holds, and leave the best standing whatever it was."""
    best = engine.store.best(engine.contract_id)
    if best is not None:
        chosen_files(best.files, candidate.files, settings.restore_files)
    final = await verify_candidate(engine, candidate, settings)
    base = Report(Ending.PENDING, final.record.reason, candidate, best, final)
    if not final.ok:
        return await _not_passed(engine, settings, base)
    too_bad, final = await _beyond_limit(engine, candidate, settings, final)
    base = replace(base, final=final)
    if not final.ok:
        return await _not_passed(engine, settings, base)
    if too_bad:
        return await _too_bad(engine, settings, replace(base, reason=too_bad))
    return _mind_edits(engine, await _passed(engine, settings, base))


async def _passed(engine: Engine, settings: Settings, report: Report) -> Report:
    """The final trial passed: it is the first best, the best itself, or the gate is asked."""
    assert report.final is not None
    decide, best, candidate = engine.config.objective.decide, report.best, report.candidate
    if settings.mode != decide:
        reason = f"{settings.mode} passed; only {decide} decides about the best, which stays as it was"
        return replace(report, ending=Ending.NOT_BETTER, reason=reason)
    if best is None:
        kept = checkpoint_of(engine, candidate, report.final)
        engine.store.keep(kept, None)
        reason = "it is the best now, the first of this contract"
        return replace(report, ending=Ending.FIRST_BEST, reason=reason, best=kept)
    if best.id == candidate.id:
        _anchor(engine, best, report.final)
        reason = "the workspace holds the best, and it passed again"
        return replace(report, ending=Ending.CONFIRMED, reason=reason)
    comparison = await compare(engine, _question(candidate, best, settings))
    return await _judged(engine, settings, replace(report, comparison=comparison))


def _question(candidate: Candidate, best: Checkpoint, settings: Settings) -> Question:
    return Question(
        candidate, _as_candidate(best), settings.rule, settings.purpose, settings.seed,
        warmup=settings.warmup, repeats=settings.repeats,
    )  # fmt: skip


def _mind_edits(engine: Engine, report: Report) -> Report:
    """Say so when the workspace no longer holds what was verified."""
    if report.ending in (Ending.RESTORED, Ending.RESTORED_UNVERIFIED, Ending.REGRESSED):
        return report
    try:
        edited = engine.files.current() != dict(report.candidate.files)
    except ConfigFault:
        edited = True
    if not edited:
        return report
    return replace(report, reason=f"{report.reason}; the files were edited meanwhile, which was not verified")


def checkpoint_of(
    engine: Engine, candidate: Candidate, final: Trial, comparison: Comparison | None = None
) -> Checkpoint:
    """The candidate as a checkpoint; its score is the gate's estimate where a noisy one was compared."""
    decision = comparison.decision if comparison else None
    estimate = None
    if comparison and decision and not decision.exact:
        values = tuple(engine.store.anchor_values(engine.contract_id, comparison.best_id))
        estimate = Anchor(values).estimate(decision.objective.m, decision.objective.direction)
    return Checkpoint(
        id=candidate.id,
        contract_id=engine.contract_id,
        files=candidate.files,
        overlay=candidate.overlay,
        created_s=time.time(),
        trial_id=final.record.id,
        anchor=final.outcome.score if estimate is None else estimate,
    )


def _as_candidate(best: Checkpoint) -> Candidate:
    return Candidate(best.files, best.overlay)


def _anchor(engine: Engine, best: Checkpoint, final: Trial) -> None:
    if final.outcome.score is not None:
        engine.store.add_anchor_value(engine.contract_id, best.id, final.outcome.score)


async def _beyond_limit(
    engine: Engine, candidate: Candidate, settings: Settings, final: Trial
) -> tuple[str, Trial]:
    """A sentence when the score is worse than `max_score`: of a noisy objective the median of three runs.

    With it the last trial, which is the one to tell when a run gave no score: then nothing is known.
    """
    limit, score = settings.max_score, final.outcome.score
    if limit is None or score is None or not _worse(engine, score, limit):
        return "", final
    scores = [score]
    while not engine.config.objective.deterministic and len(scores) < LIMIT_RUNS:
        again = await verify_candidate(engine, candidate, settings)
        if again.outcome.score is None:
            return "", again
        scores.append(again.outcome.score)
    middle = median(scores)
    if not _worse(engine, middle, limit):
        return "", final
    runs = f", median of {len(scores)} runs" if len(scores) > 1 else ""
    return f"the score {figure(middle)}{runs} is worse than max_score {figure(limit)}", final


async def _too_bad(engine: Engine, settings: Settings, report: Report) -> Report:
    """Beyond `max_score`: the best goes back, unless this is the better one all the same."""
    best = report.best
    if best is None or best.id == report.candidate.id or not settings.restore:
        return await _regressed(engine, settings, report)
    question = _question(report.candidate, best, settings)
    comparison = await compare(engine, question)
    report = replace(report, comparison=comparison)
    if comparison.decision is None:
        return await _undecided(engine, settings, report, comparison)
    if comparison.decision.verdict == "faster":
        return _not_restored(report, "but it is better than the best, so nothing was put back or kept")
    return await _regressed(engine, settings, report)


def _worse(engine: Engine, score: float, limit: float) -> bool:
    return score > limit if engine.lower_is_better else score < limit


async def _not_passed(engine: Engine, settings: Settings, report: Report) -> Report:
    """The final trial ended with another status than ok."""
    assert report.final is not None
    status, reason = report.final.outcome.status, report.final.told
    report = replace(report, reason=reason)
    if status in NEVER_RESTORE:
        return report
    if report.best is None or report.best.id == report.candidate.id:
        what = "this is the best itself" if report.best else "no best stands to go back to"
        return replace(report, ending=Ending.FAILED, reason=f"{reason}; {what}")
    if status in RESTORE_WHEN_REPRODUCED:
        return await _reproduce(engine, settings, report)
    assert status in RESTORE_AT_ONCE
    return await _regressed(engine, settings, report)


async def _reproduce(engine: Engine, settings: Settings, report: Report) -> Report:
    """A crash, oom or timeout counts when it happens again while the best passes in between."""
    assert report.best is not None
    assert report.final is not None
    # What failed is what is run again: the verifier, or the benchmark.
    same = replace(settings, verifier=report.final.record.verifier)
    between = await verify_candidate(engine, _as_candidate(report.best), replace(same, purpose="gate"))
    if not between.ok:
        reason = f"{report.reason}; the best ended {between.outcome.status} after it: the machine is in doubt"
        return replace(report, ending=Ending.PENDING, reason=reason)
    again = await verify_candidate(engine, report.candidate, same)
    if again.ok or again.outcome.status in NEVER_RESTORE:
        reason = f"{report.reason}; it did not happen again ({again.outcome.status})"
        return replace(report, ending=Ending.PENDING, reason=reason, final=again)
    return await _regressed(engine, settings, replace(report, reason=f"{report.reason}, twice", final=again))


async def _judged(engine: Engine, settings: Settings, report: Report) -> Report:
    """The gate has spoken, or a process of it failed."""
    comparison = report.comparison
    assert comparison is not None and report.final is not None
    decision, record = comparison.decision, comparison.record
    if decision is None or record is None:
        return await _undecided(engine, settings, report, comparison)
    if decision.accepted:
        kept = checkpoint_of(engine, report.candidate, report.final, comparison)
        engine.store.keep(kept, record.id)
        return replace(report, ending=Ending.KEPT, reason="better than the best, and the best now", best=kept)
    if decision.restore:
        return await _regressed(engine, settings, replace(report, reason="slower than the best"))
    if decision.verdict == "unclear" and not decision.rejected:
        reason = "it could not be told from the best; files and best stay as they are"
        return replace(report, ending=Ending.UNCLEAR, reason=reason)
    lost = f"a case loses too much ({', '.join(decision.blocked)})" if decision.blocked else ""
    reason = f"{lost or 'not better than the best'}; files and best stay as they are"
    return replace(report, ending=Ending.NOT_BETTER, reason=reason)


async def _undecided(engine: Engine, settings: Settings, report: Report, comparison: Comparison) -> Report:
    failed = comparison.failed
    if comparison.at_fault == "candidate" and failed is not None:
        status = failed.outcome.status
        report = replace(report, reason=f"while it was measured: {failed.told}", final=failed)
        if status in RESTORE_AT_ONCE:
            return await _regressed(engine, settings, report)
        if status in RESTORE_WHEN_REPRODUCED:
            return await _reproduce(engine, settings, report)
    who = "the best failed, " if comparison.at_fault == "best" else ""
    return replace(report, ending=Ending.PENDING, reason=f"no verdict: {who}{comparison.reason}")


async def _regressed(engine: Engine, settings: Settings, report: Report) -> Report:
    """Put the best back, then verify what stands; or say why that was not done."""
    if report.best is None:
        return _not_restored(report, "no best stands to go back to")
    if not settings.restore:
        return _not_restored(report, "no restore was asked for")
    found = report.candidate.files
    wanted = chosen_files(report.best.files, found, settings.restore_files)
    if wanted == found:
        what = "the workspace holds the best" if not settings.restore_files else "those files are the best's"
        return _not_restored(report, f"{what}, so there is nothing to restore")
    try:
        written = restore_files(engine, wanted, found, report.reason)
    except (ChangedMeanwhile, StorageFault, ConfigFault) as fault:
        return _not_restored(report, fault.sentence)
    engine.tell(Note(f"restored {', '.join(written)} ({report.reason}); verifying"))
    put_back = Candidate(wanted, report.best.overlay)
    again = await verify_candidate(engine, put_back, replace(settings, purpose="restore"))
    ending = Ending.RESTORED if again.ok else Ending.RESTORED_UNVERIFIED
    reason = report.reason if again.ok else f"{report.reason}; verified again: {again.told}"
    return replace(report, ending=ending, reason=reason, restored_files=written)


def _not_restored(report: Report, why: str) -> Report:
    return replace(report, ending=Ending.REGRESSED, reason=f"{report.reason}; {why}")


def restore_files(engine: Engine, wanted: FileSet, found: FileSet, reason: str) -> tuple[str, ...]:
    """Write `wanted` over `found` by the journal, and check the result; the paths that changed."""
    absent = dict.fromkeys(engine.config.files.mutable, "")
    expected = absent | {path: version.sha256 for path, version in found.items()}
    engine.files.write(wanted, expected, reason)
    if engine.files.current() != dict(wanted):
        raise StorageFault(
            "the files do not hold what was just written", "check the disk, then: kerneldeck restore"
        )
    return tuple(sorted(path for path in {*wanted, *found} if wanted.get(path) != found.get(path)))


def chosen_files(best: FileSet, found: FileSet, names: Sequence[str]) -> FileSet:
    """The best's files; with `names` only those of them, and the rest as found."""
    if not names:
        return best
    unknown = sorted(set(names) - {*best, *found})
    if unknown:
        raise ArgumentFault(f"{unknown[0]} is no mutable file", f"mutable files: {', '.join(sorted(best))}")
    kept = {path: version for path, version in found.items() if path not in names}
    return kept | {path: version for path, version in best.items() if path in names}
