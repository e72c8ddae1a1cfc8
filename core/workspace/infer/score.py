"""The objective: which number decides, which way is better, and how cases make it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.words import JsonObject
from core.workspace.config import Objective
from core.workspace.infer.aggregates import aggregate_of, observed_aggregates, statistic_of
from core.workspace.infer.findings import Notes
from core.workspace.infer.sources import Folder
from core.workspace.infer.written import WrittenObject, written_objects

_UNITS = {
    "us": "us", "usec": "us", "ms": "ms", "msec": "ms", "ns": "ns", "s": "s", "sec": "s", "seconds": "s",
    "cycles": "cycles", "ticks": "ticks", "tflops": "tflops", "gflops": "gflops", "gbps": "gbps",
}  # fmt: skip
_TIMES = {
    "us", "usec", "ms", "msec", "ns", "s", "sec", "secs", "seconds", "cycles", "ticks", "time", "latency",
    "runtime", "duration", "cost",
}  # fmt: skip
_RATES = {
    "tflops", "gflops", "mflops", "flops", "gbps", "bandwidth", "throughput", "ops", "qps", "fps", "speedup",
    "rate", "mlups",
}  # fmt: skip
_PER_TIME = re.compile(
    r"(?:^|_)[gmtk]?i?(?:b|bytes|flops?|ops?|tokens?|rows?|items?|elements?|iters?|its?|samples?|calls?)_?"
    r"(?:per_|p)?(?:s|secs?|seconds?|us|ms)$",
    re.IGNORECASE,
)
_NEVER = {
    "target", "tolerance", "elapsed", "warmup", "repeats", "iterations", "iters", "seed", "schema", "version",
    "count", "exit", "timeout", "setup", "compile", "build", "std", "stdev", "stddev", "var", "error",
    "errors", "abs", "rel", "rtol", "atol", "bytes", "baseline", "reference", "ref", "floor", "overhead",
    "wall",
}  # fmt: skip
_DIRECTIONS = {
    "lower": re.compile(r"lower\s+is\s+better|minimi[sz]e|smaller is better", re.IGNORECASE),
    "higher": re.compile(
        r"higher\s+is\s+better|maximi[sz]e|larger is better|bigger is better", re.IGNORECASE
    ),
}
_LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """All that is known of a program's result: what its source writes, and what a run printed."""

    folder: Folder
    objects: tuple[WrittenObject, ...]
    run: JsonObject
    text: str
    benchmark: str

    @property
    def result(self) -> WrittenObject:
        """The object that most looks like the whole result."""
        return max(self.objects, key=_result_points, default=WrittenObject(self.benchmark, {}))


def see(folder: Folder, paths: Iterable[str], run: JsonObject) -> Seen:
    """What the Python and shell sources at `paths` (the benchmark first) write, beside a run's result."""
    listed = list(paths)
    text = "\n".join(folder.source(path).text for path in listed)
    return Seen(folder, tuple(written_objects(folder, listed)), run, text, listed[0])


def infer_objective(seen: Seen, decide: str, metric: str, notes: Notes) -> Objective | None:
    """The objective; None (with an open point) when nothing looks like a score."""
    metric = _given(metric, seen, notes) if metric else _chosen(seen, notes)
    if not metric:
        return None
    direction = _direction(metric, seen, notes)
    words = _words(metric)
    target = _target(metric, seen, notes)
    return Objective(
        metric=metric,
        direction=direction,
        decide=decide,
        unit=next((_UNITS[word] for word in reversed(words) if word in _UNITS), ""),
        aggregate=_aggregate(metric, seen, notes),
        statistic=_statistic(metric, seen, notes),
        target=target,
    )


def _given(metric: str, seen: Seen, notes: Notes) -> str:
    notes.found("metric", metric, "given")
    if seen.run and metric not in _numbers(seen.run):
        notes.open(
            f"{metric}: the run's result has no such number; it has {', '.join(_numbers(seen.run)) or 'none'}"
        )
    return metric


def _result_points(written: WrittenObject) -> float:
    keys = written.entries
    scores = any(_name_points(key) >= _LEAST_POINTS for key in keys)
    return (4 * ("cases" in keys) + 2 * ("status" in keys) + ("mode" in keys) + len(keys) / 100) * scores


def _numbers(table: Mapping[str, object], prefix: str = "") -> dict[str, float]:
    """Numbers of a result by (dotted) key, one level of nesting deep."""
    found: dict[str, float] = {}
    for key, value in table.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}{key}"] = value
        elif (
            isinstance(value, dict)
            and not prefix
            and key in ("metrics", "summary", "score", "result", "results")
        ):
            found |= _numbers(value, f"{key}.")
    return found


def _chosen(seen: Seen, notes: Notes) -> str:
    """The key with the most points; equal ones in the order written, with an open point."""
    numbers = _numbers(seen.run)
    keys = list(numbers) or list(seen.result.entries)
    place = "dev run" if numbers else seen.result.place
    rated = {key: _points(key, seen) for key in keys}
    ranked = sorted((key for key in keys if rated[key] >= _LEAST_POINTS), key=lambda key: -rated[key])
    if not ranked:
        notes.open(
            f"No score was found in what {seen.benchmark} prints: name its key with --metric KEY, or write "
            '[objective] with metric = "…"'
        )
        return ""
    best = ranked[0]
    notes.found("metric", f"{best} ({_reasons(best, seen)})", place)
    equal = [key for key in ranked[1:] if rated[key] == rated[best]]
    if equal:
        notes.open(
            f"{best} was taken as the metric, first of the equally likely {', '.join([best, *equal])}: "
            "change objective.metric if another one decides"
        )
    return best


def _points(key: str, seen: Seen) -> int:
    reasons = _reasons(key, seen)
    return (
        _name_points(key)
        + 4 * ("a target" in reasons)
        + 3 * ("score is" in reasons)
        + 2 * ("objective" in reasons)
    )


def _reasons(key: str, seen: Seen) -> str:
    """Why a key may be the score, in words."""
    reasons = [f"named like a {'rate' if _is_rate(key) else 'time' if _is_time(key) else 'score'}"]
    if any(_is_target(other, key) for other in [*seen.run, *seen.result.entries]):
        reasons.append("it has a target")
    if key != "score" and _mirrors_score(key, seen):
        reasons.append("score is the same")
    if key in str(seen.run.get("objective", "")) or key in str(seen.run.get("metric", "")):
        reasons.append("the objective names it")
    return ", ".join(reasons)


def _mirrors_score(key: str, seen: Seen) -> bool:
    numbers = _numbers(seen.run)
    if "score" in numbers:
        return numbers.get(key) == numbers["score"]
    own, score = seen.result.entries.get(key), seen.result.entries.get("score")
    return own is not None and score is not None and ast.dump(own) == ast.dump(score)


def _words(key: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", key)]


def _is_rate(key: str) -> bool:
    return bool(set(_words(key)) & _RATES or _PER_TIME.search(key))


def _is_time(key: str) -> bool:
    return bool(set(_words(key)) & _TIMES) and not _is_rate(key)


def _name_points(key: str) -> int:
    words = set(_words(key))
    if words & _NEVER:
        return 0
    points = 4 * (_is_rate(key) or _is_time(key))
    points += 3 * bool(
        words & {"best", "total", "overall", "final"} or key in ("score", "objective", "metric")
    )
    points += bool(words & {"median", "mean", "avg", "average", "min"})
    return points - 2 * bool(words & {"p", "max", "worst"})


def _direction(metric: str, seen: Seen, notes: Notes) -> str:
    """From the result's own word, the metric's name, or a phrase in the source; lower when all are silent."""
    said = str(seen.run.get("direction", "")).lower()
    flag = seen.run.get("higher_is_better")
    if said in ("lower", "higher") or isinstance(flag, bool):
        direction = said if said in ("lower", "higher") else "higher" if flag else "lower"
        notes.found("direction", direction, "dev run")
        return direction
    if _is_rate(metric) or _is_time(metric):
        direction = "higher" if _is_rate(metric) else "lower"
        notes.found("direction", direction, f"the name {metric}")
        return direction
    phrases = [direction for direction, phrase in _DIRECTIONS.items() if phrase.search(seen.text)]
    if len(phrases) == 1:
        notes.found("direction", phrases[0], f"a phrase in {seen.benchmark}")
        return phrases[0]
    notes.open(
        f"{metric}: nothing says whether lower or higher is better: say it with --direction lower or higher"
    )
    return "lower"


def _is_target(key: str, metric: str) -> bool:
    """`target`, `target_best_us` and `target_us` are targets of best_us."""
    words = _words(key)
    return "target" in words and set(words) <= {"target", *_words(metric)}


def _target(metric: str, seen: Seen, notes: Notes) -> float | None:
    numbers, written = _numbers(seen.run), seen.result
    for key in [*numbers, *written.entries]:
        value: object = numbers.get(key) if _is_target(key, metric) else None
        node = written.entries.get(key) if _is_target(key, metric) else None
        if value is None and node is not None and written.scope is not None:
            value = seen.folder.literals(written.scope.source.path).value(node)
        if isinstance(value, int | float):
            notes.found("target", f"{value:g}", "dev run" if key in numbers else written.place)
            return value
    return None


def _aggregate(metric: str, seen: Seen, notes: Notes) -> str:
    """What the run's numbers allow, decided by the source where they allow several."""
    written = seen.result
    stated = aggregate_of(written.entries.get(metric), written.scope)
    stated = stated or aggregate_of(written.entries.get("score"), written.scope)
    fitting = observed_aggregates(metric, seen.run)
    if fitting:
        aggregate = stated if stated in fitting else next(iter(fitting))
        notes.found("aggregate", f"{aggregate} of the cases' {fitting[aggregate]}", "dev run")
        return aggregate
    cases = seen.run.get("cases")
    count = len(cases) if isinstance(cases, list) else 0
    if stated and (count or not seen.run):
        notes.found("aggregate", f"{stated} over the cases", written.place)
        return stated
    if count > 1:
        notes.open(f"How the cases make {metric} was not found: set objective.aggregate (sum, mean, max, …)")
    return "single"


def _statistic(metric: str, seen: Seen, notes: Notes) -> str:
    """How launches make a case's number, from the object that a case is, or from the result without cases."""
    per_case = [written for written in seen.objects if "cases" not in written.entries]
    for written in [*per_case, seen.result]:
        found = statistic_of(written.entries.get(metric), written.scope)
        if found:
            notes.found("statistic", found, written.place)
            return found
    return Objective("").statistic
