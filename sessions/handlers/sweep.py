"""sweep_kernel_config: which candidates to run, and the report of what came of them."""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.candidates import read_config, value_at, with_overlay
from core.errors import ArgumentFault
from core.events import Note
from core.guard import Settings
from core.measure.rule import SWEEP
from core.operations.declaration import Answer
from core.records import Candidate, FileSet
from core.space import Space
from core.sweep.executor import SweepExecutor, SweepReport, SweepRequest
from core.sweep.state import Plan
from core.trials import Asked, mode_named
from core.words import JsonObject, Overlay, Scalar
from core.workspace.batch import top
from sessions.handlers.verify import SEED_BITS, person_rule, report_json
from sessions.reports import comparison_json
from sessions.session import Session

ENUMERATE_UP_TO = 200_000
SAMPLE_TRIES_EACH = 200
SHOWN_LEADERS = 10
NAMED_KNOBS = ("num_warps", "num_stages", "block_size")


@dataclass(frozen=True, slots=True)
class Choice:
    """The overlays to run, how many combinations they were chosen from, and a sentence on how."""

    overlays: list[Overlay]
    raw: int
    how: str
    batch: JsonObject = field(default_factory=dict)


async def sweep_kernel_config(session: Session, arguments: JsonObject) -> Answer:
    """Screen, confirm by the gate, and keep the winner when asked to."""
    engine = session.engine
    mode = mode_named(engine, arguments["mode"])
    if not engine.config.config_file:
        raise ArgumentFault(
            "this workspace names no config file, so there is nothing to sweep",
            'add to kerneldeck.toml: [config] file = "…" and [knobs]',
        )
    seed = secrets.randbits(SEED_BITS) if arguments["seed"] is None else arguments["seed"]
    current = engine.files.current()
    choice = await _choose(session, current, arguments, seed)
    if arguments["dry_run"]:
        return Answer({"dry_run": True, "how": choice.how, "configs": choice.overlays, "seed": seed})
    engine.tell(Note(choice.how))
    request = _request(session, current, choice, arguments, seed, mode.name)
    report = await SweepExecutor(engine, request).run()
    return Answer(_report(session, report, choice, seed), 3 if report.outcome == "stopped" else _code(report))


def _code(report: SweepReport) -> int:
    return 1 if report.outcome == "failed" else 0


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
        ),
        description={
            "how": choice.how, "seed": seed, "mode": mode, "candidates": list(candidates),
            "finalists": arguments["finalists"], "keep_best": arguments["keep_best"],
        },
    )  # fmt: skip


async def _choose(session: Session, current: FileSet, arguments: JsonObject, seed: int) -> Choice:
    """The configurations asked for, or the product of knobs: whole, by the batch evaluator, or sampled."""
    engine = session.engine
    space = Space.of(engine.config)
    now = read_config(current, engine.store.blobs, engine.config.config_file)
    if arguments["configs"]:
        return _listed(space, now, arguments["configs"])
    knobs = _narrowed(space, arguments)
    raw = math.prod(len(values) for values in knobs.values())
    most = arguments["max_configs"]
    if engine.config.extras.batch and raw > most:
        return await _by_batch(session, space, now, knobs, arguments["mode"], most)
    held = _held(space, now)
    if raw <= ENUMERATE_UP_TO:
        valid = [o for o in space.overlays(knobs) if not _broken(space, {**held, **o})]
        chosen = valid if len(valid) <= most else random.Random(seed).sample(valid, most)
        how = f"{len(chosen)} of {len(valid)} valid configurations ({raw} combinations)"
        return Choice(chosen, raw, how + (f", seed {seed}" if len(chosen) < len(valid) else ""))
    chosen = _sampled(space, held, knobs, most, seed)
    return Choice(chosen, raw, f"{len(chosen)} random configurations of {raw:,} combinations, seed {seed}")


def _listed(space: Space, now: JsonObject, configs: Sequence[Overlay]) -> Choice:
    for overlay in configs:
        known = [name for name in overlay if space.knob(name) or (not space.knobs and name in now)]
        unknown = [name for name in overlay if name not in known]
        faults = space.faults({**_held(space, now), **overlay}) if space.knobs else []
        if unknown and not faults:
            raise ArgumentFault(f"{unknown[0]} is no key of the config file", f"keys: {', '.join(now)}")
        if faults:
            raise ArgumentFault(f"configuration {overlay}: {faults[0]}", "; ".join(faults[1:]))
    return Choice(list(configs), len(configs), f"{len(configs)} configurations as given")


def _narrowed(space: Space, arguments: JsonObject) -> dict[str, list[Scalar]]:
    asked: dict[str, list[Scalar]] = dict(arguments["knobs"] or {})
    asked |= {name: arguments[name] for name in NAMED_KNOBS if arguments[name]}
    if not space.knobs:
        raise ArgumentFault("no knobs are declared in kerneldeck.toml", "add [knobs], or give --config '{…}'")
    if not asked:
        return {knob.name: list(knob.values) for knob in space.knobs}
    for name, values in asked.items():
        for value in values:
            faults = space.faults({name: value})
            if faults:
                raise ArgumentFault(faults[0])
    return {name: list(dict.fromkeys(values)) for name, values in asked.items()}


def _held(space: Space, now: JsonObject) -> dict[str, Scalar]:
    """What the config file says of the knobs; a key it lacks takes no part in constraints."""
    values = {knob.name: value_at(now, knob.name) for knob in space.knobs}
    return {name: value for name, value in values.items() if value is not None}


def _broken(space: Space, values: Mapping[str, Scalar]) -> bool:
    return any(c.names <= values.keys() and not c.holds(values) for c in space.constraints)


def _sampled(
    space: Space, held: Mapping[str, Scalar], knobs: Mapping[str, Sequence[Scalar]], most: int, seed: int
) -> list[Overlay]:
    """Distinct valid combinations by rejection, the same for the same seed."""
    rng = random.Random(seed)
    chosen: dict[tuple[Scalar, ...], Overlay] = {}
    for _ in range(most * SAMPLE_TRIES_EACH):
        if len(chosen) == most:
            break
        overlay = space.sample(rng, knobs)
        if not _broken(space, {**held, **overlay}):
            chosen.setdefault(tuple(overlay.values()), overlay)
    return list(chosen.values())


async def _by_batch(
    session: Session,
    space: Space,
    now: JsonObject,
    knobs: Mapping[str, Sequence[Scalar]],
    mode: str,
    most: int,
) -> Choice:
    """The evaluator ranks the whole product; only its best are run."""
    held = _held(space, now)
    domains = {
        knob.name: list(knobs.get(knob.name, [held.get(knob.name, knob.values[0])])) for knob in space.knobs
    }
    found = await top(session.workspace, mode, domains, most)
    overlays: list[Overlay] = [{name: plan[name] for name in knobs} for plan in found.plans]
    how = (
        f"the batch evaluator ranked {found.valid:,} valid configurations of {found.raw:,} "
        f"in {found.seconds:.1f} s; its best {len(overlays)} are run"
    )
    return Choice(
        overlays, found.raw, how, {"raw": found.raw, "valid": found.valid, "seconds": found.seconds}
    )


def _report(session: Session, report: SweepReport, choice: Choice, seed: int) -> JsonObject:
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
        "reason": report.reason,
        "how": choice.how,
        "batch": choice.batch,
        "seed": seed,
        "metric": session.engine.config.objective.metric,
        "unit": session.engine.config.objective.unit,
        "screened": report.record.summary["screened"],
        "leaders": rows[:SHOWN_LEADERS],
        "baseline": report_json(session, report.baseline) if report.baseline else None,
        "confirmations": [comparison_json(session, one) for one in report.comparisons],
        "winner": _winner(session, report),
        "gate": comparison_json(session, decision),
        "kept": report.kept,
    }


def _winner(session: Session, report: SweepReport) -> JsonObject | None:
    if report.winner is None:
        return None
    trial = report.trials.get(report.winner.id)
    return {
        "candidate": report.winner.id,
        "config": report.winner.overlay,
        "trial": trial.record.id if trial else None,
    }
