"""The history for those who look at it: any view of all trials, its rows read a few at a time.

A view is the ids of its trials in order, 8 bytes each; the rows behind them are read by id when they are
shown. So a row is found by its place and a trial keeps its own, however long the history and whatever
is added meanwhile. Nothing here writes.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from core.records import Baseline
from core.words import Overlay, Status
from sessions.annotations import tags_of
from sessions.database import SqlValue
from sessions.history_filter import Condition, FilterWords, condition_of
from sessions.rows import json_object
from sessions.standing import scores_of_best

if TYPE_CHECKING:
    from core.workspace.config import WorkspaceConfig
    from sessions.store import SessionStore


class Order(StrEnum):
    """What a view is sorted by, first the newest, the best score, the largest gain, the longest."""

    TIME = "time"
    SCORE = "score"
    CHANGE = "change"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a history is read for: the contract whose scores compare, its modes, and what is better."""

    contract_id: str
    decide: str = "final"
    modes: tuple[str, ...] = ("dev", "final")
    metric: str = ""
    unit: str = ""
    lower_is_better: bool = True
    knobs: tuple[str, ...] = ()

    @classmethod
    def of(cls, contract_id: str, config: WorkspaceConfig) -> Scope:
        """That contract, and what the workspace's own files say."""
        objective = config.objective
        return cls(
            contract_id, objective.decide, tuple(config.modes), objective.metric, objective.unit,
            objective.direction == "lower", tuple(knob.name for knob in config.knobs),
        )  # fmt: skip

    @property
    def screen(self) -> str:
        """The mode beside the deciding one; the deciding one where there is no other."""
        return next((mode for mode in self.modes if mode != self.decide), self.decide)


@dataclass(frozen=True, slots=True)
class View:
    """Which trials, in which order. `words` are those of sessions.history_filter."""

    words: str = ""
    order: Order = Order.TIME
    reverse: bool = False
    hide_bad: bool = False

    @property
    def filtered(self) -> bool:
        return bool(self.words.strip()) or self.hide_bad


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A trial as the history shows it. Scores in the objective's unit, times in Unix seconds.

    `gain`, `low` and `high` are the decision's, as fractions of the best it was compared with, positive
    is better. `screened` and `decided` are the candidate's medians in the screening and deciding mode.
    `change` is the fraction by which the score differs from that of the best that stands now, in the
    same mode, `against_baseline` the same for the baseline's; `standing`: this candidate is that best,
    `is_baseline`: this trial is the baseline. `note` and `tags` are what people keep with it.
    """

    id: int
    candidate_id: str
    contract_id: str
    mode: str
    purpose: str
    target: str
    actor: str
    verifier: bool
    overlay: Overlay
    status: Status
    reason: str
    stage: str
    score: float | None
    started_s: float
    duration_s: float | None
    sweep_id: int | None
    decision_id: int | None = None
    verdict: str = ""
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    screened: float | None = None
    decided: float | None = None
    change: float | None = None
    standing: bool = False
    comparable: bool = True
    against_baseline: float | None = None
    is_baseline: bool = False
    note: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """The best that stands: its candidate, its overlay, and its score by mode; and the baseline."""

    candidate_id: str = ""
    overlay: Overlay = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True)
class BothScores:
    """A candidate's medians in the screening and in the deciding mode."""

    candidate_id: str
    screened: float
    decided: float
    overlay: Overlay


_COLUMNS = (
    "t.id, t.candidate_id, t.contract_id, t.mode, t.purpose, t.target, t.actor, t.verifier, t.overlay,"
    " t.status, t.reason, t.stage, t.score, t.started_s, t.duration_s, t.sweep_id, t.decision_id"
)
_DECIDED = (
    "d.verdict, d.gain, json_extract(d.outcome, '$.interval[0]') AS low,"
    " json_extract(d.outcome, '$.interval[1]') AS high"
)
_NOTED = "COALESCE(n.text, '') AS note, COALESCE(n.tags, '') AS tags"
_MEDIAN = (
    "(SELECT median FROM standings s WHERE s.contract_id = t.contract_id AND s.mode = ?"
    " AND s.candidate_id = t.candidate_id)"
)
_ENDED = Condition("status IS NOT NULL")
TYPICAL_OF = 51
MOST_AT_ONCE = 500  # SQLite takes no more than some hundred values in a query everywhere


class HistoryReader:
    """Views of one workspace's history. ArgumentFault for a filter that means nothing, StorageFault when
    the state cannot be read."""

    def __init__(self, store: SessionStore, scope: Scope) -> None:
        self.store = store
        self.scope = scope
        self.standing = Standing()
        self._version = 0
        self.refresh()

    def changed(self) -> bool:
        """Whether another process or connection has written since this was last asked."""
        row = self.store.database.row("PRAGMA data_version")
        version = 0 if row is None else int(row[0])
        before, self._version = self._version, version
        return version != before

    def refresh(self) -> None:
        """Look again at which best stands, at the baseline, and at their scores."""
        baseline = self.store.baseline(self.scope.contract_id)
        best = self.store.best(self.scope.contract_id)
        if best is None:
            self.standing = Standing(baseline=baseline)
            return
        scores = scores_of_best(self.store, best, self.scope.decide)
        self.standing = Standing(best.id, best.overlay, scores, baseline)

    def check(self, words: str) -> None:
        """ArgumentFault when `words` are no filter."""
        condition_of(words, FilterWords(self.scope.knobs, self.scope.modes))

    def total(self) -> int:
        """How many trials have ended."""
        row = self.store.database.row("SELECT COUNT(*) AS count FROM trials WHERE status IS NOT NULL")
        return 0 if row is None else int(row["count"])

    def ids(self, view: View) -> array[int]:
        """The ended trials of a view, in its order."""
        where, values = self._where(view)
        order, more = self._order(view)
        sql = f"SELECT id FROM trials WHERE {where} ORDER BY {order}"
        return self.store.database.ids(sql, (*values, *more))

    def newer(self, view: View, after: int, running: Sequence[int] = ()) -> array[int]:
        """Those trials of a view that ended since: with a higher id than `after`, or among `running`."""
        late = f" OR id IN ({', '.join('?' * len(running))})" if running else ""
        where, values = self._where(view, Condition(f"(id > ?{late})", (after, *running)))
        sql = f"SELECT id FROM trials WHERE {where} ORDER BY id"
        return self.store.database.ids(sql, values)

    def running(self) -> list[int]:
        """Trials that have not ended."""
        return list(self.store.database.ids("SELECT id FROM trials WHERE status IS NULL"))

    def last(self) -> int:
        """The highest id given to a trial, ended or not; 0 when there is none."""
        row = self.store.database.row("SELECT MAX(id) AS last FROM trials")
        return int(row["last"] or 0) if row is not None else 0

    def rows(self, ids: Sequence[int]) -> list[HistoryRow]:
        """The rows of trials, in the order of `ids`; those that are not there are left out."""
        found: dict[int, HistoryRow] = {}
        for start in range(0, len(ids), MOST_AT_ONCE):
            part = ids[start : start + MOST_AT_ONCE]
            marks = ", ".join("?" * len(part))
            sql = (
                f"SELECT {_COLUMNS}, {_DECIDED}, {_NOTED}, {_MEDIAN} AS screened, {_MEDIAN} AS decided"
                " FROM trials t LEFT JOIN decisions d ON d.id = t.decision_id"
                " LEFT JOIN notes n ON n.trial_id = t.id"
                f" WHERE t.id IN ({marks}) AND t.status IS NOT NULL"
            )
            values: tuple[SqlValue, ...] = (self.scope.screen, self.scope.decide, *part)
            found |= {row["id"]: self._row(row) for row in self.store.database.rows(sql, values)}
        return [found[one] for one in ids if one in found]

    def typical_s(self, purpose: str = "", mode: str = "") -> float | None:
        """Median seconds of the newest ok trials for a purpose, or in a mode; None when there is none."""
        name, value = ("purpose", purpose) if purpose else ("mode", mode)
        found = self.store.database.rows(
            f"SELECT duration_s FROM trials WHERE {name} = ? AND contract_id = ? AND status = 'ok'"
            " AND duration_s IS NOT NULL ORDER BY id DESC LIMIT ?",
            (value, self.scope.contract_id, TYPICAL_OF),
        )
        return median(row["duration_s"] for row in found) if found else None

    def both_scores(self) -> list[BothScores]:
        """Every candidate of the contract that has a score in the screening and in the deciding mode."""
        scope = self.scope
        found = self.store.database.rows(
            "SELECT f.candidate_id, d.median AS screened, f.median AS decided, c.overlay FROM standings f"
            " JOIN standings d ON d.contract_id = f.contract_id AND d.candidate_id = f.candidate_id"
            " JOIN candidates c ON c.id = f.candidate_id"
            " WHERE f.contract_id = ? AND f.mode = ? AND d.mode = ?",
            (scope.contract_id, scope.decide, scope.screen),
        )
        return [
            BothScores(row["candidate_id"], row["screened"], row["decided"], json_object(row["overlay"]))
            for row in found
        ]

    def _row(self, row: sqlite3.Row) -> HistoryRow:
        values = dict(row)
        comparable = values["contract_id"] == self.scope.contract_id
        reference = self.standing.scores.get(values["mode"]) if comparable else None
        values["overlay"] = json_object(values["overlay"])
        values["status"] = Status(values["status"])
        values["verifier"] = bool(values["verifier"])
        if reference and values["score"] is not None:
            values["change"] = values["score"] / reference - 1.0
        values["tags"] = tags_of(values["tags"])
        baseline = self.standing.baseline
        if baseline is not None and comparable:
            values["is_baseline"] = values["id"] == baseline.trial_id
            values["against_baseline"] = baseline.change(values["mode"], values["score"])
        standing = comparable and values["candidate_id"] == self.standing.candidate_id
        return HistoryRow(**values, standing=standing, comparable=comparable)

    def _where(self, view: View, more: Condition | None = None) -> tuple[str, tuple[SqlValue, ...]]:
        conditions = [_ENDED, *condition_of(view.words, FilterWords(self.scope.knobs, self.scope.modes))]
        if view.hide_bad:
            conditions.append(Condition("status = 'ok'"))
        if more is not None:
            conditions.append(more)
        clause = " AND ".join(condition.sql for condition in conditions)
        return clause, tuple(value for condition in conditions for value in condition.values)

    def _order(self, view: View) -> tuple[str, tuple[SqlValue, ...]]:
        """The ORDER BY: what compares with the best first, then the key, then the newest."""
        if view.order is Order.TIME:
            return ("id" if view.reverse else "id DESC"), ()
        if view.order is Order.DURATION:
            return f"duration_s IS NULL, duration_s {'' if view.reverse else 'DESC'}, id DESC", ()
        direction = "" if self.scope.lower_is_better != view.reverse else "DESC"
        apart = "WHEN contract_id <> ? OR score IS NULL THEN 2"
        if view.order is Order.SCORE:
            group = f"CASE {apart} WHEN mode = ? THEN 0 ELSE 1 END"
            return f"{group}, score {direction}, id DESC", (self.scope.contract_id, self.scope.decide)
        key, values = self._change()
        group = f"CASE {apart} WHEN {key} IS NULL THEN 1 ELSE 0 END"
        return f"{group}, {key} {direction}, id DESC", (self.scope.contract_id, *values, *values)

    def _change(self) -> tuple[str, tuple[SqlValue, ...]]:
        """The score over that of the best in the same mode; NULL where the best has none."""
        scores = {mode: score for mode, score in self.standing.scores.items() if score}
        if not scores:
            return "NULL", ()
        cases = " ".join("WHEN ? THEN score / ?" for _ in scores)
        return f"CASE mode {cases} END", tuple(value for pair in scores.items() for value in pair)
