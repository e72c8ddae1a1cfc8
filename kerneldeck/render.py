"""Answers as a person reads them. Foreign text is content, never markup."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from core.operations.declaration import Answer, Operation
from core.words import JsonObject

SHORT_ID = 12
WIDE = 160  # columns when nothing says how wide the reader is


def render(operation: Operation, answer: Answer) -> None:
    """Print the answer on stdout."""
    content = answer.content
    if content.get("dry_run") is True and operation.id not in _OWN_DRY_RUN:
        return _fields("dry run: nothing was changed", {k: v for k, v in content.items() if k != "dry_run"})
    return _RENDERERS[operation.id](content)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table, as wide as the terminal allows; nothing is cut where there is no terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        numeric = all(isinstance(row[columns.index(name)], int | float) for row in rows) and bool(rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(_shown(cell)) for cell in row))
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(made)


def number(value: object, unit: str = "") -> str:
    """A score in its unit: whole numbers with separators, others to six figures."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-"
    text = f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return f"{text} {unit}".strip()


def _shown(cell: object) -> str:
    if cell is None or cell == "":
        return "-"
    if isinstance(cell, float):
        return number(cell)
    if isinstance(cell, dict):
        return _config(cell)
    return "".join(c if c.isprintable() else " " for c in str(cell))


def _config(overlay: JsonObject) -> str:
    return " ".join(f"{name}={value}" for name, value in overlay.items()) or "(as it is)"


def _line(text: str) -> None:
    print("".join(c if c.isprintable() else " " for c in text))


def _fields(head: str, content: JsonObject) -> None:
    _line(head)
    for name, value in content.items():
        _line(f"  {name.replace('_', ' ')}: {_config(value) if isinstance(value, dict) else value}")


def _trial(trial: JsonObject | None) -> None:
    if trial is None:
        return
    kind = "verifier" if trial["verifier"] else "benchmark"
    score = (
        f"  {trial['metric']} {number(trial['score'], trial['unit'])}" if trial["score"] is not None else ""
    )
    duration = f"{trial['duration_s']:.2f} s" if trial["duration_s"] is not None else "-"
    _line(f"trial #{trial['trial']}  {trial['mode']} {kind}  {trial['status']}{score}  {duration}")
    if trial["reason"]:
        _line(f"  {trial['reason']}")
    if trial["status"] == "ok" and trial["provisional"] and trial["score"] is not None:
        _line("  provisional: one process; do not compare it, ask: kerneldeck verify")
    if trial["status"] not in ("ok", "infra"):
        _line(f"  its output: {trial['output']}")


def _run(content: JsonObject) -> None:
    _trial(content)
    _cases(content)


def _cases(trial: JsonObject) -> None:
    result = trial.get("result") or {}
    cases = [case for case in result.get("cases") or [] if isinstance(case, dict)]
    metric = trial["metric"]
    if len(cases) > 1 and all("name" in case for case in cases):
        rows = [
            [c["name"], c.get("status"), c.get(metric, c.get("best_us")), c.get("max_abs")] for c in cases
        ]
        table(["case", "status", metric, "max_abs"], rows)


def _repeat(content: JsonObject) -> None:
    unit = content["unit"]
    _line(f"{content['passed']} of {content['runs']} runs passed")
    if "median_score" in content:
        _line(
            f"{content['metric']}: median {number(content['median_score'], unit)}, "
            f"min {number(content['min_score'])}, max {number(content['max_score_seen'])}, "
            f"spread {number(content['score_spread'])}"
        )
    if content["cases"]:
        rows = [[c["name"], c["min"], c["median"], c["max"], c["sample_count"]] for c in content["cases"]]
        table(["case", "min", "median", "max", "runs"], rows)
    if content["regressed"]:
        _line(f"regressed: {content['reason']}")
    if "guarded_verification" in content:
        _verify(content["guarded_verification"])


_ENDINGS = {
    "first_best": "verified: it is the best now, the first of this contract",
    "confirmed": "verified: the workspace holds the best",
    "kept": "kept: better than the best, and the best now",
    "not_better": "verified, not better than the best; the best stays as it was",
    "unclear": "verified, but it could not be told from the best",
    "restored": "regressed: restored and verified",
    "restored_unverified": "regressed: restored, not verified",
    "regressed": "regressed: not restored",
    "failed": "failed",
    "pending": "pending: nothing was decided, nothing was touched",
}


def _verify(content: JsonObject) -> None:
    _trial(content["final"])
    _gate(content["gate"])
    _line(f"{_ENDINGS[content['outcome']]} ({content['reason']})")
    for name in content["restored_files"]:
        _line(f"  restored {name}")
    if content["best"]:
        _line(f"best: {content['best'][:SHORT_ID]}")


def _gate(gate: JsonObject | None) -> None:
    if gate is None:
        return
    if gate["verdict"] is None:
        _line(f"no verdict ({gate['at_fault']}): {gate['reason']}")
        return
    _line(gate["text"])
    _line(f"  {gate['evidence']}")
    _line(f"  {gate['score']}")
    if gate["warning"]:
        _line(f"  {gate['warning']}")


def _sweep(content: JsonObject) -> None:
    unit = content["unit"]
    counts = ", ".join(f"{count} {status}" for status, count in content["screened"].items()) or "none"
    _line(f"sweep #{content['sweep']}: {content['how']}")
    _line(f"screened: {counts}")
    rows = [
        [place, row["candidate"][:SHORT_ID], row["status"], number(row["score"]), _leader(row)]
        for place, row in enumerate(content["leaders"], 1)
    ]
    if rows:
        table(["", "candidate", "status", f"{content['metric']} {unit}".strip(), "configuration"], rows)
    for gate in content["confirmations"]:
        _line(f"gate: {gate['candidate'][:SHORT_ID] if 'candidate' in gate else '-'} "
              f"{gate.get('text') or gate['reason']}")  # fmt: skip
    winner = content["winner"]
    if winner is None:
        _line(f"{content['outcome']}: {content['reason']}")
        return
    _line(f"winner: {winner['candidate'][:SHORT_ID]} {_config(winner['config'])}")
    _gate(content["gate"])
    if content["kept"]:
        _line("kept: it is the best now, and written into the workspace")
    else:
        _line(f"{content['reason']}; to keep it:")
        _line(f"  kerneldeck apply --candidate {winner['candidate'][:SHORT_ID]} --no-dry-run")


def _leader(row: JsonObject) -> str:
    """How a screened candidate differs from the workspace; the workspace itself is named."""
    return "the workspace as it is" if row["is_start"] else _config(row["config"])


def _restore(content: JsonObject) -> None:
    what = f"checkpoint {content['checkpoint'][:SHORT_ID]}"
    if content["outcome"] == "unchanged":
        _line(f"the workspace holds {what} already")
    else:
        _line(f"restored {', '.join(content['files'])} from {what}")


def _rank(content: JsonObject) -> None:
    rows = [
        [
            row["rank"],
            f"#{row['trial']}",
            row["candidate"][:SHORT_ID],
            number(row["median_score"]),
            row["count"],
            " ".join(word for word in ("is_best", "provisional") if row[word]).replace("is_", ""),
            row["config"] or "(as it is)",
        ]
        for row in content["rows"]
    ]
    if not rows:
        _line(f"nothing has passed in mode {content['mode']} yet")
        return
    score = f"median {content['metric']} {content['unit']}".strip()
    table(["", "trial", "candidate", score, "runs", "", "configuration"], rows)


def _apply(content: JsonObject) -> None:
    files = ", ".join(content["files"]) or "nothing: the workspace holds it already"
    candidate = content["candidate"][:SHORT_ID]
    if content["outcome"] == "dry_run":
        _line(f"dry run: candidate {candidate} would be verified, asked the gate about, and write {files}")
        _line("  to do it: the same with --no-dry-run")
        return
    _trial(content["final"])
    _gate(content.get("gate"))
    if content["outcome"] == "refused":
        _line(f"not applied: {content['reason']}")
    else:
        _line(f"applied candidate {candidate}: wrote {files}")


def _result(content: JsonObject) -> None:
    _line(f"wrote {content['path']}")


def _inspect(content: JsonObject) -> None:
    objective = content["objective"]
    target = f", target {number(objective['target'])}" if objective["target"] else ""
    _line(f"{content['workspace']}  {content['folder']}")
    _line(
        f"objective: {objective['metric']} {objective['unit']}, {objective['direction']} is better, "
        f"{objective['decides']} decides{target}"
    )
    _line(
        f"contract {content['contract'][:SHORT_ID]}: " + ", ".join(v for v in content["target"].values() if v)
    )
    files = content["files"]
    rows = [[f["name"], "mutable", "as the best" if f["as_best"] else ""] for f in files["mutable"]]
    rows += [
        [f["name"], "protected", "" if f["sealed"] else "differs from the seal"] for f in files["protected"]
    ]
    table(["file", "kind", ""], rows)
    _space(content["space"])
    _history(content)
    _line("next: " + ", or ".join(content["next"]))


def _space(space: JsonObject) -> None:
    if not space["knobs"]:
        return
    rows = [[knob["name"], knob["now"], " ".join(map(str, knob["values"]))] for knob in space["knobs"]]
    table(["knob", "now", "values"], rows)
    _line(f"{space['combinations']:,} combinations, {len(space['constraints'])} constraints")
    for fault in space["faults"]:
        _line(f"  {fault}")


def _history(content: JsonObject) -> None:
    best = content["best"]
    unit = content["objective"]["unit"]
    if best is None:
        _line("best: none yet")
    else:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(best["since_s"]))
        _line(f"best: {best['checkpoint'][:SHORT_ID]}  {number(best['score'], unit)}  since {since}")
    for other in content.get("other_contracts", []):
        _line(
            f"  another contract's best: {other['checkpoint'][:SHORT_ID]} {number(other['score'], unit)} "
            f"(differs in {', '.join(other['differs'])}); measure it again: "
            f"kerneldeck restore --checkpoint {other['checkpoint'][:SHORT_ID]}, then kerneldeck verify"
        )
    if content["history"]:
        _line("history: " + ", ".join(f"{count} {status}" for status, count in content["history"].items()))
    for trial in content["latest"]:
        what = f"{trial['purpose']} {trial['mode']} {trial['status']}"
        _line(f"  #{trial['trial']} {what} {number(trial['score'])}")


def _init(content: JsonObject) -> None:
    for finding in content.get("findings", []):
        _line(f"  {finding['topic']}: {finding['value']}  ({finding['source']})")
    for point in content.get("open_points", []):
        _line(f"  open: {point}")
    for warning in content.get("warnings", []):
        _line(f"  warning: {warning}")
    if content["outcome"] == "dry_run":
        print(content["toml"])
        return
    if content["outcome"] == "not_enough":
        _line("not enough was found for a kerneldeck.toml; see the open points")
        return
    _line(f"wrote {', '.join(content['written'])}")
    _line("next: " + ", ".join(content["next"]))


def _reseal(content: JsonObject) -> None:
    for line in content["difference"]:
        _line(line)
    if content["outcome"] == "unchanged":
        _line("the protected files are as sealed")
    elif content["outcome"] == "dry_run":
        _line("dry run: the seal stays; to renew it: kerneldeck reseal")
    else:
        _line(f"resealed; contract {content['contract'][:SHORT_ID]}")
        _trial(content.get("measured_again"))


def _gc(content: JsonObject) -> None:
    rows = []
    for area in ("samples", "blobs", "staging"):
        one = content[area]
        left = one["before_bytes"] - one["freed_bytes"]
        rows.append(
            [area, *(f"{size / 1e6:.1f} MB" for size in (one["before_bytes"], one["freed_bytes"], left))]
        )
    table(["", "before", "would be freed" if content["dry_run"] else "freed", "left"], rows)


def _unlock(content: JsonObject) -> None:
    if content["holder"]:
        _line(f"released the lock of {content['holder']}")
    else:
        _line("no other machine holds this workspace")


_OWN_DRY_RUN = {"apply_candidate", "init_workspace", "reseal_workspace", "collect_garbage"}
_RENDERERS: dict[str, Callable[[JsonObject], None]] = {
    "inspect_context": _inspect,
    "run_objective": _run,
    "repeat_objective": _repeat,
    "sweep_kernel_config": _sweep,
    "guarded_final_verify": _verify,
    "restore_best_checkpoint": _restore,
    "rank_history": _rank,
    "apply_candidate": _apply,
    "update_result_json": _result,
    "init_workspace": _init,
    "reseal_workspace": _reseal,
    "collect_garbage": _gc,
    "release_lock": _unlock,
}
