"""One decision: fresh processes, three arms side by side, until the gate speaks."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.engine import Engine
from core.events import GateStep, Note
from core.measure.anchor import case_anchors
from core.measure.arms import from_arms
from core.measure.decision import Decision
from core.measure.errors import EvidenceFault, RuleFault
from core.measure.evidence import Instrument, ProcessEvidence
from core.measure.gate import decide
from core.measure.plan import ProcessPlan, plan_process
from core.measure.reading import Channel
from core.measure.rule import Rule
from core.measure.samples import Blocks
from core.measure.scores import ArmScore, from_scores
from core.measure.texts import unstable_text
from core.records import Candidate, DecisionRecord
from core.targets.job import Layout
from core.trials import Asked, Trial, run_job
from core.words import JsonObject, Status

CASE_KEYS = ("name", "case", "id", "label", "shape")
CANDIDATE_ARM = 2  # after the best and the best again
PROCESS_TRIES = 2  # an unstable process is run again this often before the decision is given up


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a decision: `record` and `decision` when the gate spoke, else the trial that failed.

    `at_fault` is "candidate", "best" or "target" when there is no decision.
    """

    candidate_id: str
    best_id: str
    record: DecisionRecord | None = None
    decision: Decision | None = None
    failed: Trial | None = None
    at_fault: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """Who is compared with whom, by which rule, and for what.

    `case_weights`: the best's long-run value of each case, for objectives that sum cases; None while it
    has none.
    """

    candidate: Candidate
    best: Candidate
    rule: Rule
    purpose: str  # verify | apply | sweep
    seed: int
    sweep_id: int | None = None
    case_weights: Mapping[str, float] | None = None
    warmup: int | None = None
    repeats: int | None = None


class _Failed(Exception):
    """A process that gave no evidence: its trial's own words, or `reason`."""

    def __init__(self, at_fault: str, trial: Trial | None = None, reason: str = "") -> None:
        super().__init__(reason)
        self.at_fault = at_fault
        self.reason = reason or (trial.told if trial else "")
        self.trial = trial


async def compare(engine: Engine, question: Question) -> Comparison:
    """Ask the gate; the decision and its evidence are stored, its noise learned, the best anchored."""
    rule = replace(question.rule, deterministic=engine.config.objective.deterministic)
    question = replace(question, rule=rule, case_weights=_case_weights(engine, question.best))
    nothing = Comparison(question.candidate.id, question.best.id)
    floor_key = f"{engine.contract_id}/{_shape(engine)}"
    floor = engine.store.floor(floor_key)
    evidence: list[ProcessEvidence] = []
    trials: list[int] = []
    decision: Decision | None = None
    try:
        while decision is None:
            evidence.append(await _process(engine, question, len(evidence) + 1, trials))
            decision = decide(rule, Channel(tuple(evidence), floor))
            verdict = decision.verdict if decision else ""
            engine.tell(GateStep(question.candidate.id, len(evidence), rule.last_look, verdict))
    except _Failed as failure:
        return replace(nothing, failed=failure.trial, at_fault=failure.at_fault, reason=failure.reason)
    except (EvidenceFault, RuleFault) as fault:
        return replace(nothing, at_fault="target", reason=fault.sentence)
    if not decision.exact:
        engine.store.put_floor(floor_key, floor.learn(decision.objective.d, decision.objective.a))
    for process in evidence:
        engine.store.add_anchor_value(engine.contract_id, question.best.id, process.best_value)
    record = _stored(engine, question, decision, evidence, trials)
    return replace(nothing, record=record, decision=decision)


def _shape(engine: Engine) -> str:
    return "arms_together" if engine.arms_in_one_process else "process_an_arm"


def _stored(
    engine: Engine,
    question: Question,
    decision: Decision,
    evidence: Sequence[ProcessEvidence],
    trials: Sequence[int],
) -> DecisionRecord:
    return engine.store.add_decision(
        DecisionRecord(
            contract_id=engine.contract_id,
            candidate_id=question.candidate.id,
            best_id=question.best.id,
            purpose=question.purpose,
            target=engine.target.name,
            verdict=decision.verdict,
            gain=decision.gain,
            processes=decision.processes,
            outcome=decision.to_json(),
            evidence=[process.to_json() for process in evidence],
            seed=question.seed,
            created_s=time.time(),
            actor=engine.actor,
            sweep_id=question.sweep_id,
        ),
        trials,
    )


async def _process(engine: Engine, question: Question, number: int, trials: list[int]) -> ProcessEvidence:
    """Unit `number` (from 1) of the evidence; an unstable process is run again, never counted.

    `trials` gets the ids of what was run for it.
    """
    plan = plan_process(question.rule, question.seed, number)
    reason = ""
    for _ in range(PROCESS_TRIES):
        if engine.arms_in_one_process:
            evidence, reason = await _three_arms(engine, question, plan, trials)
        else:
            evidence, reason = await _process_an_arm(engine, question, plan, trials)
        if evidence is not None and not evidence.unstable:
            return evidence
        engine.tell(Note(f"a process was too unstable to count: {reason}"))
    raise _Failed("target", reason=f"the machine is too unstable to measure: {reason}")


def _arms(question: Question, plan: ProcessPlan) -> list[Candidate]:
    """Who is loaded as which slot."""
    of_arm = (question.best, question.best, question.candidate)
    return [of_arm[arm] for arm in plan.loads]


async def _three_arms(
    engine: Engine, question: Question, plan: ProcessPlan, trials: list[int]
) -> tuple[ProcessEvidence | None, str]:
    best, candidate = Layout(question.best.files), Layout(question.candidate.files)
    slots = tuple(candidate if arm is question.candidate else best for arm in _arms(question, plan))
    asked, own_slot = _asked(engine, question), plan.loads.index(CANDIDATE_ARM)
    trial = await run_job(engine, question.candidate, asked, slots, _visits(plan), own_slot)
    trials.append(trial.record.id)
    if trial.outcome.status is Status.UNSTABLE:
        return None, trial.outcome.reason
    result = trial.outcome.result or {}
    reported = _objects(result.get("arms"))
    if not trial.ok:
        raise _Failed(_arm_at_fault(trial, reported, plan), trial)
    if len(reported) != len(slots):
        reason = "the benchmark did not report the three arms it was given; is its timing file in use?"
        raise _Failed("target", trial, reason)
    evidence = _arms_evidence(engine, question, plan.by_arm(reported), result.get("timing"))
    return evidence, unstable_text(evidence, question.rule)


def _visits(plan: ProcessPlan) -> str:
    """The rounds to measure as JSON lines; how many launches fit a visit is the timing file's to see."""
    seeds = random.Random(f"{plan.seed}/{plan.number}")
    lines = [
        json.dumps({"order": list(order), "cases_seed": seeds.getrandbits(32), "launches": None})
        for order in plan.rounds
    ]
    return "\n".join(lines) + "\n"


def _objects(value: object) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _arm_at_fault(trial: Trial, reported: list[JsonObject], plan: ProcessPlan) -> str:
    """Whose failure a failed three-arm process is: an arm's that says so, else nobody knows."""
    if trial.outcome.status in (Status.INFRA, Status.CANCELLED):
        return "target"
    if len(reported) != len(plan.loads):
        return "unknown"
    failed = {arm for arm, one in zip(plan.loads, reported, strict=True) if not _arm_passed(one)}
    if not failed:
        return "unknown"
    return "candidate" if failed == {CANDIDATE_ARM} else "best"


def _arm_passed(arm: JsonObject) -> bool:
    return arm.get("status") in ("passed", "ok")


def _case_weights(engine: Engine, best: Candidate) -> Mapping[str, float] | None:
    """The best's anchored time of each case, from the processes it was measured in before."""
    past = engine.store.best_evidence(engine.contract_id, best.id)
    return case_anchors([ProcessEvidence.from_json(process) for process in past]) or None


def _arms_evidence(
    engine: Engine, question: Question, arms: tuple[JsonObject, JsonObject, JsonObject], timing: object
) -> ProcessEvidence:
    about = timing if isinstance(timing, dict) else {}
    try:
        kind, (best, again, candidate) = _common_kind(arms)
        discarded = [int(number) for number in about.get("discarded_rounds") or ()]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"the benchmark's report of its arms cannot be read ({type(error).__name__}: {error})"
        raise _Failed("target", reason=reason) from None
    instrument = Instrument(kind, str(about.get("engine", "")), engine.measured_objective())
    return from_arms(best, again, candidate, instrument, discarded=discarded, anchored=question.case_weights)


def _common_kind(arms: Sequence[JsonObject]) -> tuple[str, list[Mapping[str, Blocks]]]:
    """The first kind of sample that every case of every arm carries, and each arm's blocks by case.

    Raises what comes of a report in another form than the timing file's.
    """
    of_all = [case["samples"] for arm in arms for case in arm["cases"]]
    shared = [kind for samples in of_all[:1] for kind in samples if all(kind in other for other in of_all)]
    if not shared:
        raise ValueError("its cases share no kind of raw samples")
    kind = shared[0]
    return kind, [
        {str(case["name"]): _blocks(case["samples"][kind]) for case in arm["cases"]} for arm in arms
    ]


def _blocks(samples: JsonObject) -> list[list[float]]:
    return [[float(launch) for launch in block] for block in samples["blocks"]]


async def _process_an_arm(
    engine: Engine, question: Question, plan: ProcessPlan, trials: list[int]
) -> tuple[ProcessEvidence | None, str]:
    """Three processes in random order make one round, for a benchmark that times one candidate."""
    scores: list[ArmScore] = []
    named: set[tuple[str, ...]] = set()
    for candidate in _arms(question, plan):
        trial = await run_job(engine, candidate, _asked(engine, question), (Layout(candidate.files),))
        trials.append(trial.record.id)
        if trial.outcome.status is Status.UNSTABLE:
            return None, trial.outcome.reason
        if not trial.ok:
            lost = trial.outcome.status in (Status.INFRA, Status.CANCELLED)
            who = "candidate" if candidate is question.candidate else "best"
            raise _Failed("target" if lost else who, trial)
        scores.append(_arm_score(engine, trial))
        named.add(_case_names(trial))
    if len(named) > 1:
        raise _Failed("unknown", reason="the results name different cases, or one twice: nothing to compare")
    instrument = Instrument(engine.config.objective.metric, "published", engine.measured_objective())
    return from_scores(*plan.by_arm(scores), instrument), ""


def _case_names(trial: Trial) -> tuple[str, ...]:
    """The cases a result names, by whatever key it names them; a repeated one is there twice."""
    cases = _objects((trial.outcome.result or {}).get("cases"))
    return tuple(sorted(str(next((case[key] for key in CASE_KEYS if key in case), case)) for case in cases))


def _arm_score(engine: Engine, trial: Trial) -> ArmScore:
    metric = engine.config.objective.metric
    cases = (trial.outcome.result or {}).get("cases")
    named = {
        str(case["name"]): float(case[metric])
        for case in (cases if isinstance(cases, list) else [])
        if isinstance(case, dict) and "name" in case and isinstance(case.get(metric), int | float)
    }
    return ArmScore(trial.outcome.score or 0.0, named)


def _asked(engine: Engine, question: Question) -> Asked:
    return Asked(
        engine.config.objective.decide,
        "gate",
        warmup=question.warmup,
        repeats=question.repeats,
        sweep_id=question.sweep_id,
    )
