"""The Context pane: the workspace, its space, its contract, and what differs from the best."""

from __future__ import annotations

from collections.abc import Iterator

from core.space import Space
from core.words import Scalar
from core.workspace.config import Knob, WorkspaceConfig
from tui.line import Line, Lines, Part, Span, line_of, row, wrapped
from tui.numbers import count_text, score_text
from tui.plain import padded, plain
from tui.showing import Showing

_SHORT_ID = 12
_NAME_WIDTH = 12
EMPTY = "not known yet: the host is being asked; r asks again"


def context_head(showing: Showing, width: int) -> Line:
    """One line: workspace, files, cases' mode, contract, what changed."""
    workspace, config = showing.workspace, showing.facts.config
    if workspace is None and config is None:
        return line_of((showing.facts.fault or EMPTY, "bad" if showing.facts.fault else "dim"))
    name = plain(workspace.name if workspace else config.name if config else "")
    parts = [
        Part(line_of((name, "strong")), 1),
        Part(line_of(*_fault(showing)), 0, cuts=True),
        Part(line_of(" ".join(plain(one) for one in config.files.mutable)) if config else (), 5),
        Part(line_of(f"decides in {config.objective.decide}") if config else (), 4),
        Part(
            line_of(f"contract {workspace.contract_id[:4]}") if workspace and workspace.contract_id else (), 3
        ),
        Part(_changed(showing), 2),
    ]
    return row(parts, width, "  ", showing.glyphs.ascii)


def _fault(showing: Showing) -> tuple[tuple[str, str], ...]:
    fault = showing.facts.fault or (showing.workspace.fault if showing.workspace else "")
    return ((f"BAD: {plain(fault)}", "bad"),) if fault else ()


def _changed(showing: Showing) -> Line:
    workspace = showing.workspace
    if workspace is None or workspace.best is None:
        return ()
    count = len(workspace.changed_files)
    if not count:
        return line_of(("same as best", "dim"))
    return line_of((f"{count} file{'s' if count > 1 else ''} changed", "warn"))


def context_body(showing: Showing, width: int) -> Lines:
    """The open pane, from the most to the least wanted."""
    config = showing.facts.config
    lines: list[Line] = []
    for fault in dict.fromkeys(text for text, _ in _fault(showing)):
        lines.append(line_of((fault, "bad")))
    if config is None:
        return tuple(lines) or (line_of((EMPTY, "dim")),)
    lines += [*_objective(showing, config), *_standing(showing)]
    lines += [line_of(), *_space(showing, config)]
    return wrapped(lines, width, _NAME_WIDTH)


def _named(name: str, *pieces: str | tuple[str, str]) -> Line:
    return line_of((padded(name, _NAME_WIDTH), "dim"), *pieces)


def _objective(showing: Showing, config: WorkspaceConfig) -> Iterator[Line]:
    objective = config.objective
    unit = f" {plain(objective.unit)}" if objective.unit else ""
    exact = ", the same in every run" if objective.deterministic else ""
    yield _named(
        "objective", (plain(objective.metric), "strong"), f"{unit}, {objective.direction} is better{exact}"
    )
    yield _named("modes", ", ".join(plain(name) for name in config.modes), f"; {objective.decide} decides")
    yield _named("mutable", ", ".join(plain(one) for one in config.files.mutable))
    yield _named("protected", ", ".join(plain(one) for one in config.files.protected))


def _standing(showing: Showing) -> Iterator[Line]:
    workspace = showing.workspace
    if workspace is None:
        return
    yield _named("contract", workspace.contract_id[:_SHORT_ID] or "-")
    if workspace.best is None:
        yield _named("best", ("none yet: v verifies what the workspace holds", "dim"))
        return
    best = workspace.best
    trial = f"  #{best.trial_id}" if best.trial_id else ""
    yield _named(
        "best",
        (score_text(best.score, plain(workspace.unit)), "best"),
        f"  {plain(best.id[:_SHORT_ID])}{trial}",
    )
    if workspace.changed_files:
        changed = ", ".join(plain(one) for one in workspace.changed_files)
        yield _named("changed", (changed, "warn"), "  v verifies, R restores the best")
    else:
        yield _named("changed", ("nothing: the workspace holds the best", "dim"))


def _space(showing: Showing, config: WorkspaceConfig) -> Iterator[Line]:
    if not config.knobs:
        yield _named("knobs", ("none declared: edit kerneldeck.toml", "dim"))
        return
    count = count_text(Space(config.knobs, ()).raw_count())
    yield _named("knobs", f"{len(config.knobs)} with {count} combinations; the value in use is in brackets")
    name_width = max(len(plain(knob.name)) for knob in config.knobs) + 2
    for knob in config.knobs:
        yield _knob(knob, showing.facts.current.get(knob.name), name_width)
    for text in config.constraints:
        yield _named("constraint", plain(text))


def _knob(knob: Knob, current: Scalar | None, name_width: int) -> Line:
    spans = [Span(f"  {padded(plain(knob.name), name_width)}", "dim")]
    for value in knob.values:
        chosen = (
            current is not None and isinstance(value, bool) == isinstance(current, bool) and value == current
        )
        spans.append(Span(f"[{plain(value)}]" if chosen else f" {plain(value)} ", "strong" if chosen else ""))
    return tuple(spans)
