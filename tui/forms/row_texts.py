"""What can be copied of a row, and a view as a file."""

from __future__ import annotations

import csv
import io
import json
import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from core.words import JsonObject
from sessions.atomic_file import write_beside
from sessions.history import MOST_AT_ONCE, HistoryReader, HistoryRow, View

FORMATS = ("csv", "jsonl")
_SHORT_ID = 12
_FIELDS = (
    "id", "status", "mode", "purpose", "score", "change", "against_baseline", "verdict", "gain", "low",
    "high", "screened", "decided", "duration_s", "started_s", "target", "actor", "candidate_id",
    "contract_id", "sweep_id", "decision_id", "reason", "overlay", "tags", "note",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copyable:
    """A choice of the copy menu: its key, what it is, and the text."""

    key: str
    label: str
    text: str


def copyables(row: HistoryRow, output: Path) -> tuple[Copyable, ...]:
    """What can be copied of a row; `output` is the folder of what it printed."""
    config = json.dumps(row.overlay)
    return (
        Copyable("y", "row", json.dumps(row_json(row))),
        Copyable("c", "configuration", config),
        Copyable("p", "command that runs it again", _again(row, config)),
        Copyable("l", "path of its output", str(output)),
        Copyable("i", "id", str(row.id)),
        Copyable("h", "candidate", row.candidate_id),
    )


def _again(row: HistoryRow, config: str) -> str:
    if row.overlay:
        return f"kerneldeck sweep config --mode {shlex.quote(row.mode)} --config {shlex.quote(config)}"
    candidate = row.candidate_id[:_SHORT_ID]
    return f"kerneldeck restore --checkpoint {candidate} && kerneldeck run --mode {shlex.quote(row.mode)}"


def row_json(row: HistoryRow) -> JsonObject:
    """A row as a JSON object, in a fixed order."""
    values = asdict(row)
    return {name: values[name] for name in _FIELDS}


def export_view(reader: HistoryReader, view: View, folder: Path, kind: str) -> tuple[Path, int]:
    """Write every row of a view to a new file in `folder`; its path and how many there are.

    `kind` is one of FORMATS. OSError when it cannot be written, StorageFault when it cannot be read.
    """
    ids = reader.ids(view)
    rows = (
        row
        for start in range(0, len(ids), MOST_AT_ONCE)
        for row in reader.rows(ids[start : start + MOST_AT_ONCE])
    )
    text, count = _as_csv(rows) if kind == "csv" else _as_lines(rows)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = f"history-{time.strftime('%Y%m%d-%H%M%S')}.{kind}"
    path = folder / name
    write_beside(folder, ".history-", f".{kind}", text.encode("utf-8", "replace")).replace(path)
    return path, count


def _as_csv(rows: Iterable[HistoryRow]) -> tuple[str, int]:
    out, count = io.StringIO(), 0
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_FIELDS)
    for row in rows:
        values = row_json(row) | {"overlay": json.dumps(row.overlay), "tags": " ".join(row.tags)}
        writer.writerow(["" if value is None else value for value in values.values()])
        count += 1
    return out.getvalue(), count


def _as_lines(rows: Iterable[HistoryRow]) -> tuple[str, int]:
    lines = [json.dumps(row_json(row)) for row in rows]
    return "".join(f"{line}\n" for line in lines), len(lines)
