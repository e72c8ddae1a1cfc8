"""run_objective and repeat_objective."""

from __future__ import annotations

from statistics import median

from core.figures import figure
from core.operations.declaration import Answer
from core.records import Candidate
from core.trials import Asked, Trial, mode_named, run_scored, run_trial, verifying_mode
from core.words import NEVER_RESTORE, JsonObject, Status
from sessions.handlers.verify import exit_code_of, report_json, run_guarded
from sessions.reports import trial_json
from sessions.session import Session


async def run_objective(session: Session, arguments: JsonObject) -> Answer:
    """One run of what the workspace holds."""
    find = verifying_mode if arguments["verifier"] else mode_named
    asked = Asked(
        find(session.engine.config, arguments["mode"]).name,
        "run",
        arguments["verifier"],
        arguments["warmup"],
        arguments["repeats"],
        arguments["timeout_seconds"],
    )
    trial = await run_trial(session.engine, Candidate(session.engine.files.current()), asked)
    content = trial_json(session, trial)
    if arguments["workspace_tag"]:
        content["workspace_tag"] = arguments["workspace_tag"]
    return Answer(content, exit_code_of_trial(trial))


def exit_code_of_trial(trial: Trial) -> int:
    """0 ok, 3 infrastructure, 4 time-out, 5 unstable, 130 cancelled, else 1."""
    codes = {
        Status.OK: 0, Status.INFRA: 3, Status.TIMEOUT: 4, Status.UNSTABLE: 5, Status.CANCELLED: 130,
    }  # fmt: skip
    return codes.get(trial.outcome.status, 1)


async def repeat_objective(session: Session, arguments: JsonObject) -> Answer:
    """Fresh processes, one after the other; the median decides, never the luckiest."""
    engine = session.engine
    verifier = arguments["verifier"]
    mode = (verifying_mode if verifier else mode_named)(engine.config, arguments["mode"])
    if verifier is None:
        verifier = mode.name == engine.config.objective.decide and bool(mode.verifier)
    asked = Asked(mode.name, "repeat", verifier, arguments["warmup"], arguments["repeats"])
    if arguments["dry_run"]:
        return Answer(
            {"dry_run": True, "would_run": arguments["runs"], "mode": mode.name, "verifier": verifier}
        )
    candidate = Candidate(engine.files.current())
    trials = [await run_scored(engine, candidate, asked) for _ in range(arguments["runs"])]
    failed = next((trial for trial in trials if not trial.ok), None)
    # A lost target or a noisy machine says nothing of the candidate: that is no regression.
    wrong = next((one for one in trials if not one.ok and one.outcome.status not in NEVER_RESTORE), None)
    reason = _regression(session, trials, arguments["max_score"]) or (wrong.told if wrong else "")
    content = _spread(session, trials) | {"regressed": bool(reason)}
    content["reason"] = reason or (failed.told if failed else "")
    if reason and arguments["restore_on_regression"]:
        guarded = arguments | {"mode": mode.name, "verifier": True, "restore_files": []}
        report = await run_guarded(session, candidate, guarded)
        content["guarded_verification"] = report_json(session, report)
        return Answer(content, exit_code_of(report))
    ended = wrong or (None if reason else failed)
    return Answer(content, exit_code_of_trial(ended) if ended else int(bool(reason)))


def _regression(session: Session, trials: list[Trial], max_score: float | None) -> str:
    scores = [trial.outcome.score for trial in trials if trial.outcome.score is not None]
    if max_score is None or not scores:
        return ""
    middle = median(scores)
    worse = middle > max_score if session.engine.lower_is_better else middle < max_score
    return f"the median {figure(middle)} is worse than max_score {figure(max_score)}" if worse else ""


def _spread(session: Session, trials: list[Trial]) -> JsonObject:
    scores = [trial.outcome.score for trial in trials if trial.outcome.score is not None]
    content: JsonObject = {
        "trials": [trial_json(session, trial) for trial in trials],
        "runs": len(trials),
        "passed": sum(trial.ok for trial in trials),
        "metric": session.engine.config.objective.metric,
        "unit": session.engine.config.objective.unit,
    }
    if scores:
        content |= {
            "min_score": min(scores),
            "median_score": median(scores),
            "mean_score": sum(scores) / len(scores),
            "max_score_seen": max(scores),
            "score_spread": max(scores) - min(scores),
        }
    content["cases"] = _case_spread(session.engine.config.objective.metric, trials)
    return content


def _case_spread(metric: str, trials: list[Trial]) -> list[JsonObject]:
    values: dict[str, list[float]] = {}
    for trial in trials:
        cases = (trial.outcome.result or {}).get("cases")
        for case in cases if isinstance(cases, list) else []:
            number = case.get(metric) if isinstance(case, dict) else None
            if isinstance(number, int | float) and not isinstance(number, bool):
                values.setdefault(str(case.get("name", "?")), []).append(float(number))
    return [
        {
            "name": name,
            "min": min(found),
            "median": median(found),
            "max": max(found),
            "sample_count": len(found),
        }
        for name, found in values.items()
    ]
