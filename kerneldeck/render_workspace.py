"""Answers about the workspace itself, as a person reads them."""

from __future__ import annotations

import os
import time

from core.words import JsonObject
from kerneldeck.render_trials import on_target, render_other_contracts, render_trial
from kerneldeck.text import SHORT_ID, change_text, line, measure, number, setting, table
from sessions.annotations import note_line

SHOWN_STORY = 6


def render_inspect(content: JsonObject) -> None:
    objective = content["objective"]
    target = f", target {number(objective['target'])}" if objective["target"] else ""
    line(f"{content['workspace']}  {content['folder']}")
    line(
        f"objective: {measure(objective['metric'], objective['unit'])}, {objective['direction']} is better, "
        f"{objective['decides']} decides{target}"
    )
    line(
        f"contract {content['contract'][:SHORT_ID]}: " + ", ".join(v for v in content["target"].values() if v)
    )
    line(f"trials run on: {content['runs_on']}")
    files = content["files"]
    rows = [[f["name"], "mutable", "as the best" if f["as_best"] else ""] for f in files["mutable"]]
    rows += [
        [f["name"], "protected", "" if f["sealed"] else "differs from the seal"] for f in files["protected"]
    ]
    table(["file", "kind", ""], rows)
    for mode, names in content["cases"].items():
        line(f"cases of {mode}: {', '.join(names)}")
    _space(content["space"])
    _history(content)
    line("next: " + ", or ".join(content["next"]))


def _space(space: JsonObject) -> None:
    if not space["knobs"]:
        return
    rows = [[knob["name"], knob["now"], " ".join(map(setting, knob["values"]))] for knob in space["knobs"]]
    table(["knob", "now", "values"], rows)
    count = len(space["constraints"])
    line(f"{space['combinations']:,} combinations, {count} constraint{'' if count == 1 else 's'}")
    for fault in space["faults"]:
        line(f"  {fault}")


def _history(content: JsonObject) -> None:
    best = content["best"]
    unit = content["objective"]["unit"]
    if best is None:
        line("best: none yet")
    else:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(best["since_s"]))
        line(f"best: {best['checkpoint'][:SHORT_ID]}  {number(best['score'], unit)}  since {since}")
    _baseline(content["baseline"], unit)
    if content["pending"]:
        line(f"a final verification of {content['pending'][:SHORT_ID]} is pending: kerneldeck verify")
    render_other_contracts(content.get("other_contracts", []))
    if content["history"]:
        line("history: " + ", ".join(f"{count} {status}" for status, count in content["history"].items()))
    for trial in content["latest"]:
        what = f"{trial['purpose']} {trial['mode']} {trial['status'] or 'running'}"
        line(f"  #{trial['trial']}{on_target(trial)} {what} {number(trial['score'])}{noted(trial)}")
    for happened in content["story"][-SHOWN_STORY:]:
        line(f"  {happened}")


def _baseline(baseline: JsonObject | None, unit: str) -> None:
    if baseline is None:
        return
    scores = ", ".join(f"{mode} {number(score, unit)}" for mode, score in sorted(baseline["scores"].items()))
    if baseline["not_compared"]:
        against = f"; {baseline['not_compared']}"
    else:
        change = baseline["best_change"]
        against = "" if change is None else f"; the best is {change_text(change)} against it"
    line(f"baseline: #{baseline['trial']} {baseline['candidate'][:SHORT_ID]}  {scores}{against}")


def noted(trial: JsonObject) -> str:
    """What people keep with a trial, behind the rest of its line."""
    told = note_line(trial["tags"], trial["note"])
    return f"  {told}" if told else ""


def render_init(content: JsonObject) -> None:
    for finding in content.get("findings", []):
        line(f"  {finding['topic']}: {finding['value']}  ({finding['source']})")
    for point in content.get("open_points", []):
        line(f"  open: {point}")
    if content["outcome"] == "dry_run":
        print(content["toml"])
        return
    if content["outcome"] == "not_enough":
        line("not enough was found for a kerneldeck.toml; see the open points")
        return
    line(f"wrote {_written(content['written'])}")
    line("next: " + ", ".join(content["next"]))


def _written(paths: list[str]) -> str:
    """A few files by their paths, many by their number and folder."""
    return ", ".join(paths) if len(paths) < 4 else f"{len(paths)} files in {os.path.commonpath(paths)}"


def render_reseal(content: JsonObject) -> None:
    for text in content["difference"]:
        line(text)
    if content["outcome"] == "unchanged":
        line("the protected files are as sealed")
    elif content["outcome"] == "dry_run":
        line("dry run: the seal stays; to renew it: kerneldeck reseal")
    else:
        line(f"resealed; contract {content['contract'][:SHORT_ID]}")
        render_trial(content.get("measured_again"))


def render_gc(content: JsonObject) -> None:
    rows = []
    for area in ("samples", "blobs", "staging"):
        one = content[area]
        left = one["before_bytes"] - one["freed_bytes"]
        rows.append(
            [area, *(f"{size / 1e6:.1f} MB" for size in (one["before_bytes"], one["freed_bytes"], left))]
        )
    table(["", "before", "would be freed" if content["dry_run"] else "freed", "left"], rows)


def render_unlock(content: JsonObject) -> None:
    if content["holder"]:
        line(f"released the lock of {content['holder']}")
    else:
        line("no other machine holds this workspace")
