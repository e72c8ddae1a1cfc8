"""Answers about trials, verdicts and candidates, as a person reads them."""

from __future__ import annotations

from core.words import JsonObject
from kerneldeck.text import SHORT_ID, change_text, config_text, line, measure, number, split_common, table


def render_trial(trial: JsonObject | None, alone: bool = False, told: str = "") -> None:
    """A trial on its lines; `alone`: it is the whole answer, which nobody should compare.

    A reason that is part of `told`, which follows, is not said twice.
    """
    if trial is None:
        return
    kind = "verifier" if trial["verifier"] else "benchmark"
    score = (
        f"  {trial['metric']} {number(trial['score'], trial['unit'])}" if trial["score"] is not None else ""
    )
    duration = f"{trial['duration_s']:.2f} s" if trial["duration_s"] is not None else "-"
    which = f"trial #{trial['trial']}{on_target(trial)}"
    line(f"{which}  {trial['mode']} {kind}  {trial['status']}{score}  {duration}")
    if trial["reason"] and trial["reason"] not in told:
        line(f"  {trial['reason']}")
    if alone and trial["status"] == "ok" and trial["provisional"] and trial["score"] is not None:
        line("  provisional: one process; do not compare it, ask: kerneldeck verify")
    if trial["status"] not in ("ok", "infra"):
        line(f"  its output: {trial['output']}")


def on_target(trial: JsonObject) -> str:
    """Where a trial ran, when that was not here."""
    return "" if trial["target"] == "local" else f" on {trial['target']}"


def render_run(content: JsonObject) -> None:
    render_trial(content, alone=True)
    _cases(content)


def _cases(trial: JsonObject) -> None:
    """A table of the cases, when there are several; columns that no case fills are left out."""
    result = trial.get("result") or {}
    cases = [case for case in result.get("cases") or [] if isinstance(case, dict)]
    if len(cases) < 2 or not all("name" in case for case in cases):
        return
    keys = [key for key in ("status", trial["metric"], "max_abs") if any(key in case for case in cases)]
    table(["case", *keys], [[case["name"], *(_cell(case.get(key)) for key in keys)] for case in cases])


def _cell(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def render_repeat(content: JsonObject) -> None:
    unit = content["unit"]
    line(f"{content['passed']} of {content['runs']} runs passed")
    if "median_score" in content:
        line(
            f"{content['metric']}: median {number(content['median_score'], unit)}, "
            f"min {number(content['min_score'])}, max {number(content['max_score_seen'])}, "
            f"spread {number(content['score_spread'])}"
        )
    if content["cases"]:
        rows = [[c["name"], c["min"], c["median"], c["max"], c["sample_count"]] for c in content["cases"]]
        table(["case", "min", "median", "max", "runs"], rows)
    if content["regressed"]:
        line(f"regressed: {content['reason']}")
    if "guarded_verification" in content:
        render_verify(content["guarded_verification"])


_ENDINGS = {
    "first_best": "verified",
    "confirmed": "verified",
    "kept": "kept",
    "not_better": "verified",
    "unclear": "unclear",
    "restored": "regressed, restored and verified",
    "restored_unverified": "regressed, restored, not verified",
    "regressed": "regressed, not restored",
    "failed": "failed",
    "pending": "pending, nothing was decided and nothing touched",
}


def render_verify(content: JsonObject) -> None:
    render_trial(content["final"], told=content["reason"])
    render_gate(content["gate"])
    line(f"{_ENDINGS[content['outcome']]}: {content['reason']}")
    if content["restored_files"]:
        line(f"  restored {', '.join(content['restored_files'])}")
        line(f"  what it replaced is kept: kerneldeck restore --checkpoint {content['candidate'][:SHORT_ID]}")
    if content["best"]:
        line(f"best: {content['best'][:SHORT_ID]}")
    if content["outcome"] == "pending":
        lost = content["final"] and content["final"]["status"] == "infra"
        line(f"next: kerneldeck verify{', when the machine is back' if lost else ''}")
    render_other_contracts(content["other_contracts"])


def render_other_contracts(others: list[JsonObject]) -> None:
    """Bests that the contract's own was never compared with, and how to measure one again."""
    for other in others:
        checkpoint = other["checkpoint"][:SHORT_ID]
        line(
            f"  another contract's best, not compared with: {checkpoint} {number(other['score'])} "
            f"(differs in {', '.join(other['differs'])}); to measure it again: "
            f"kerneldeck restore --checkpoint {checkpoint}, then kerneldeck verify"
        )


def render_gate(gate: JsonObject | None) -> None:
    if gate is None:
        return
    if gate["verdict"] is None:
        line(f"no verdict ({gate['at_fault']}): {gate['reason']}")
        return
    line(gate["text"])
    line(f"  {gate['evidence']}")
    if gate["score"]:
        line(f"  {gate['score']}")
    if gate["warning"]:
        line(f"  {gate['warning']}")


def render_sweep(content: JsonObject) -> None:
    unit = content["unit"]
    counts = ", ".join(f"{count} {status}" for status, count in content["screened"].items()) or "none"
    line(f"sweep #{content['sweep']}: {content['how']}")
    line(f"screened: {counts}, the workspace as it is included")
    common, rests = split_common([row["config"] for row in content["leaders"] if not row["is_start"]])
    if common:
        line(f"the same in all of them: {config_text(common)}")
    distinct = iter(rests)
    rows = [
        [
            place,
            row["candidate"][:SHORT_ID],
            row["status"],
            row["score"],
            "the workspace as it is" if row["is_start"] else config_text(next(distinct)),
        ]
        for place, row in enumerate(content["leaders"], 1)
    ]
    if rows:
        table(
            [
                "",
                "candidate",
                "status",
                f"{measure(content['metric'], unit)} in {content['mode']}",
                "configuration",
            ],
            rows,
        )
    for gate in content["confirmations"]:
        said = gate.get("text") or f"no verdict ({gate['at_fault']}): {gate['reason']}"
        line(f"gate: {gate['candidate'][:SHORT_ID]} against {gate['best'][:SHORT_ID]}: {said}")
    winner = content["winner"]
    if winner is None:
        line(f"{content['outcome']}: {content['reason']}")
        return
    rest = {name: value for name, value in winner["config"].items() if name not in common}
    line(f"winner: {winner['candidate'][:SHORT_ID]} {config_text(rest)}")
    render_gate(content["gate"])
    if content["unwritten"]:
        line(content["reason"])
    elif content["kept"]:
        line("kept: it is the best now, and written into the workspace")
    else:
        line(f"{content['reason']}; to keep it:")
        line(f"  kerneldeck apply --candidate {winner['candidate'][:SHORT_ID]} --no-dry-run")


def render_restore(content: JsonObject) -> None:
    what = f"checkpoint {content['checkpoint'][:SHORT_ID]}"
    if content["outcome"] == "unchanged":
        line(f"the workspace holds {what} already")
    else:
        line(f"restored {', '.join(content['files'])} from {what}; to check it: kerneldeck verify")


def render_rank(content: JsonObject) -> None:
    rows = content["rows"]
    if not rows:
        line(f"nothing has passed in mode {content['mode']} yet")
        return
    first = rows[0]["config"]
    if first:
        line(f"1st: {config_text(first)}")
    score = f"median {measure(content['metric'], content['unit'])}"
    compared = content["baseline"] is not None
    cells = [
        [row["rank"], f"#{row['trial']}", row["candidate"][:SHORT_ID], row["median_score"],
         *(_compared(row) if compared else ()), row["count"], _standing(row), _difference(first, row)]
        for row in rows
    ]  # fmt: skip
    changes = ["to best", "to baseline"] if compared else []
    table(["", "trial", "candidate", score, *changes, "runs", "", "differs from the 1st in"], cells)
    if content["not_compared"]:
        line(content["not_compared"])


def _compared(row: JsonObject) -> tuple[str, str]:
    return change_text(row["change"]), change_text(row["against_baseline"])


def _difference(first: JsonObject, row: JsonObject) -> str:
    if row["rank"] == 1:
        return ""
    differing = {name: value for name, value in row["config"].items() if first.get(name) != value}
    return config_text(differing) if differing else "other files"


def _standing(row: JsonObject) -> str:
    """Whether it is the best or the baseline, and whether its score rests on one process only."""
    words = (("best", row["is_best"]), ("baseline", row["is_baseline"]), ("1 run", row["provisional"]))
    return ", ".join(word for word, holds in words if holds)


def render_apply(content: JsonObject) -> None:
    candidate = content["candidate"][:SHORT_ID]
    render_trial(content["final"], told=content.get("reason", ""))
    render_gate(content.get("gate"))
    if content["outcome"] == "refused":
        line(f"not applied: {content['reason']}")
    elif content["outcome"] == "not_written":
        kept = f"{candidate} is the best now, but was" if "best" in content else "candidate was"
        line(f"not applied: {content['reason']}; {kept} not written")
    else:
        line(f"applied candidate {candidate}: wrote {', '.join(content['files']) or 'nothing, it was there'}")


def render_result(content: JsonObject) -> None:
    line(f"wrote {content['path']}")


def render_said(content: JsonObject) -> None:
    line(content["said"])
