"""The folded History: how many runs, the best, the filter."""

from __future__ import annotations

from tui.line import Line, Part, line_of, row
from tui.numbers import count_text, score_text
from tui.plain import plain
from tui.showing import Showing

EMPTY = "no runs recorded yet: a adds a sweep or a run, v verifies what the workspace holds"


def history_head(showing: Showing, width: int) -> Line:
    facts, workspace = showing.history, showing.workspace
    if facts.fault:
        return line_of((f"BAD: {plain(facts.fault)}", "bad"))
    if facts.runs == 0:
        return row([Part(line_of((EMPTY, "dim")))], width, "", showing.glyphs.ascii)
    best = workspace.best if workspace else None
    parts = [Part(line_of("" if facts.runs is None else f"{count_text(facts.runs)} runs"), 0)]
    if best is not None and workspace is not None:
        trial = f" #{best.trial_id}" if best.trial_id else ""
        parts.append(
            Part(line_of("best ", (score_text(best.score, plain(workspace.unit)), "best"), trial), 1)
        )
    if workspace is not None and workspace.baseline is not None:
        parts.append(Part(line_of(f"baseline #{workspace.baseline}"), 2))
    newest = showing.snapshot.ended[:1]
    parts += [Part(line_of(f"newest #{one.id} {one.status}"), 3) for one in newest]
    parts.append(Part(line_of((f"filter: {plain(facts.filter) or 'none'}", "dim")), 2))
    return row(parts, width, "  ", showing.glyphs.ascii)
