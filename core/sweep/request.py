"""A sweep as it is asked for, and as its record keeps it to be run again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

from core.guard import Settings
from core.measure import json_form
from core.measure.rule import Rule
from core.records import Candidate, FileSet, fileset_id
from core.sweep.json_form import plan_json, plan_of
from core.sweep.plan import Plan
from core.trials import Asked
from core.words import JsonObject


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep to run: its candidates by id, the screen's settings, and what to do with a winner.

    `current` are the workspace's mutable files as the sweep found them. A `detached` sweep outlives the
    process that runs it: another one goes on with it.
    """

    candidates: Mapping[str, Candidate]
    current: FileSet
    screen: Asked
    final: Settings
    plan: Plan
    description: JsonObject = field(default_factory=dict)
    detached: bool = False


def request_json(request: SweepRequest) -> JsonObject:
    """All that runs it again, but for the candidates' files: those are rows of their own."""
    machine = plan_json(request.plan)
    return {
        **request.description,
        "candidates": machine.pop("candidates"),
        "overlays": [request.candidates[one].overlay for one in request.plan.candidates],
        "start": fileset_id(request.current),
        "machine": machine,
        "screen": asdict(request.screen),
        "final": {**asdict(request.final), "rule": json_form.to_json(request.final.rule)},
    }


def plan_of_record(stored: JsonObject) -> Plan:
    """The machine's plan in what `request_json` wrote."""
    return plan_of({**stored["machine"], "candidates": stored["candidates"]})


def request_of(stored: JsonObject, files_of: Callable[[str], FileSet | None], detached: bool) -> SweepRequest:
    """The request that `request_json` wrote; `files_of` finds a candidate's files by its id.

    KeyError, TypeError or EvidenceFault when another version wrote it, or a candidate is not kept.
    """
    final: JsonObject = stored["final"]
    plan = plan_of_record(stored)
    overlays = dict(zip(plan.candidates, stored["overlays"], strict=True))
    return SweepRequest(
        candidates={one: Candidate(_kept(files_of, one), overlays[one]) for one in plan.candidates},
        current=_kept(files_of, stored["start"]),
        screen=Asked(**stored["screen"]),
        final=Settings(**{
            **final,
            "rule": json_form.from_json(Rule, final["rule"]),
            "restore_files": tuple(final["restore_files"]),
        }),
        plan=plan,
        description=stored,
        detached=detached,
    )  # fmt: skip


def _kept(files_of: Callable[[str], FileSet | None], candidate_id: str) -> FileSet:
    files = files_of(candidate_id)
    if files is None:
        raise KeyError(candidate_id)
    return files
