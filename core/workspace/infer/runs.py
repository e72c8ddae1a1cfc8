"""What the folder's programs say when the caller's probe runs them."""

from __future__ import annotations

import re

from core.targets.json_output import last_object
from core.words import JsonObject
from core.workspace.config import Mode
from core.workspace.infer.findings import Notes, Probe, ProbeOutput
from core.workspace.infer.rules import Listing

_LIST_TIMEOUT_S = 60.0
_MOST_TEXT = 8 << 20
_DEV_RUN = "dev run"


def listed_space(probe: Probe | None, command: tuple[str, ...], notes: Notes) -> list[Listing]:
    """What `command` (a program's `--list-valid`) prints; nothing without a probe or an answer."""
    if probe is None or not command:
        return []
    output = probe(command, _LIST_TIMEOUT_S)
    if output.exit_code != 0:
        notes.open(f"{' '.join(command)} did not list the space ({_ended(output)}): only the source was read")
        return []
    text = output.stdout[:_MOST_TEXT]
    document = last_object(text) or {}
    notes.found("listing", f"{len(output.stdout)} characters", " ".join(command))
    return [Listing("--list-valid", document, "" if document else text)]


def first_run(probe: Probe | None, mode: Mode, notes: Notes) -> JsonObject:
    """The result of one run in `mode`; empty without a probe or a result."""
    if probe is None:
        notes.open("The benchmark was not run, so the metric and the cases are read from the source only")
        return {}
    output = probe(mode.benchmark, mode.timeout_s)
    result = last_object(output.stdout[-_MOST_TEXT:]) or {}
    if not result:
        notes.open(
            f"{' '.join(mode.benchmark)} printed no JSON object ({_ended(output)}): make it print one with "
            "the score, or correct the command under [modes.…]"
        )
        return {}
    _note_result(result, output, notes)
    return result


def _ended(output: ProbeOutput) -> str:
    if output.exit_code is None:
        return output.note or "it did not end"
    return ", ".join(filter(None, [f"exit {output.exit_code}", output.note]))


def _note_result(result: JsonObject, output: ProbeOutput, notes: Notes) -> None:
    status = str(result.get("status", "")) or "no status"
    notes.found("result", f"{status}; keys {', '.join(result)}", _DEV_RUN)
    if output.exit_code != 0 or re.search("fail|error|incorrect|invalid", status):
        errors = result.get("errors")
        said = f": {errors[0]}" if isinstance(errors, list) and errors else ""
        notes.open(f"The first run did not pass (status {status}, {_ended(output)}){said}")
    cases = result.get("cases")
    if isinstance(cases, list) and cases:
        names = [str(case.get("name", "?")) for case in cases if isinstance(case, dict)]
        notes.found("cases", f"{len(cases)}: {', '.join(names)}", _DEV_RUN)
    tolerance = result.get("tolerance")
    if isinstance(tolerance, int | float):
        notes.found("tolerance", f"{tolerance:g}", _DEV_RUN)


def has_samples(result: JsonObject) -> bool:
    """Whether cases of a result carry raw samples."""
    cases = result.get("cases")
    return isinstance(cases, list) and any(isinstance(case, dict) and case.get("samples") for case in cases)
