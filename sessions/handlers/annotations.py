"""set_baseline and note_trial: what people say of the records. They run nothing, and decide nothing."""

from __future__ import annotations

import re

from core.errors import ArgumentFault
from core.figures import figure
from core.operations.declaration import Answer
from core.records import Baseline, TrialNote, TrialRecord
from core.words import JsonObject, Status
from sessions.annotations import note_line, note_text, tag_word, with_tags
from sessions.reports import baseline_json
from sessions.session import Reading
from sessions.store import SessionStore

SHORT_ID, SHORTEST_ID = 12, 4
_TRIAL = re.compile(r"#?(\d{1,10})")  # longer digits are a candidate's
_CANDIDATE = re.compile(r"[0-9a-f]{4,64}")


def set_baseline(reading: Reading, arguments: JsonObject) -> Answer:
    """Set, clear or show the baseline of a record's contract."""
    named, clear = arguments["record"], arguments["clear"]
    if named and clear:
        raise ArgumentFault("a record and --clear contradict each other", "leave one of them out")
    store = reading.store
    if named is not None:
        return _set(_needed(store), reading, str(named))
    before = store.baseline(reading.contract_id) if store is not None else None
    if store is not None and clear and before is not None:
        store.set_baseline(reading.contract_id, None)
        return _told("cleared", f"trial #{before.trial_id} is no baseline any more", None)
    if before is None:
        hint = "" if clear else "; to set one: kerneldeck baseline TRIAL"
        return _told("none", f"no baseline is set in this contract{hint}", None)
    return _told("shown", f"the baseline is {_described(before, reading)}", before)


def _set(store: SessionStore, reading: Reading, named: str) -> Answer:
    trial = _record(store, reading, named)
    if trial.status is not Status.OK or trial.score is None:
        why = "runs still" if trial.status is None else f"ended as {trial.status}"
        raise ArgumentFault(
            f"trial #{trial.id} has no score: it {why}", "choose one that ended well: kerneldeck rank"
        )
    store.set_baseline(trial.contract_id, trial.id)
    made = store.baseline(trial.contract_id)
    assert made is not None
    other = ""
    if trial.contract_id != reading.contract_id:
        other = (
            f"; it is of contract {trial.contract_id[:SHORT_ID]} and compares with that one's records only"
        )
    return _told("set", f"the baseline is now {_described(made, reading)}{other}", made)


def _record(store: SessionStore, reading: Reading, named: str) -> TrialRecord:
    """The trial of that number; of a candidate its newest with a score, of this contract if there is one."""
    if number := _TRIAL.fullmatch(named):
        return _trial(store, int(number[1]))
    if not _CANDIDATE.fullmatch(named):
        raise ArgumentFault(
            f"{named[:80]!r} is neither a trial's number nor the beginning of a candidate's id",
            f"write the number, for example 12, or at least {SHORTEST_ID} characters of the id",
        )
    found = store.scored_trial(named, reading.contract_id, reading.workspace.config.objective.decide)
    if found is None:
        raise ArgumentFault(f"no candidate that begins with {named} has a score", "see: kerneldeck rank")
    return _trial(store, found)


def _needed(store: SessionStore | None) -> SessionStore:
    if store is None:
        raise ArgumentFault("nothing was recorded here yet", "run it first: kerneldeck run")
    return store


def _trial(store: SessionStore, number: int) -> TrialRecord:
    trial = store.trial(number)
    if trial is None:
        raise ArgumentFault(f"there is no trial #{number}", "see what there is: kerneldeck inspect")
    return trial


def _described(baseline: Baseline, reading: Reading) -> str:
    unit = reading.workspace.config.objective.unit
    scores = ", ".join(
        f"{mode} {figure(score)} {unit}".rstrip() for mode, score in sorted(baseline.scores.items())
    )
    return f"trial #{baseline.trial_id} ({baseline.candidate_id[:SHORT_ID]}: {scores})"


def _told(outcome: str, said: str, baseline: Baseline | None) -> Answer:
    return Answer({"outcome": outcome, "said": said, "baseline": baseline_json(baseline)})


def note_trial(reading: Reading, arguments: JsonObject) -> Answer:
    """Keep a note and tags with a trial, or show them."""
    if arguments["trial"] is None:
        raise ArgumentFault("no trial is named", "write its number: kerneldeck note 12 TEXT --tag WORD")
    store = _needed(reading.store)
    trial = _trial(store, arguments["trial"])
    before = store.note(trial.id)
    after = _changed(before, arguments)
    if after != before:
        store.put_note(trial.id, after)
    content = {"trial": trial.id, "note": after.text, "tags": list(after.tags)}
    return Answer(
        {"outcome": "noted" if after != before else "unchanged", "said": _said(trial, after), **content}
    )


def _changed(before: TrialNote, arguments: JsonObject) -> TrialNote:
    kept = TrialNote() if arguments["clear"] else before
    text = kept.text if arguments["text"] is None else note_text(arguments["text"])
    added = tuple(tag_word(tag) for tag in arguments["tags"])
    return TrialNote(text, with_tags(kept.tags, added, tuple(arguments["untags"])))


def _said(trial: TrialRecord, note: TrialNote) -> str:
    return f"trial #{trial.id}: {note_line(note.tags, note.text) or 'no note, no tags'}"
