"""What of the history is looked at: the view's trials, the cursor's one, the marked ones. Knows no screen."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass

from sessions.history import HistoryReader, HistoryRow, Order, View

CACHED, AROUND = 4096, 48


@dataclass(frozen=True, slots=True)
class Loaded:
    """A view as it was read."""

    view: View
    ids: array[int]
    last: int
    running: tuple[int, ...]
    total: int


def load(reader: HistoryReader, view: View) -> Loaded:
    """Read a view; may run in a thread of its own. What ends meanwhile is found by the next look."""
    reader.refresh()
    last, running = reader.last(), tuple(reader.running())
    return Loaded(view, reader.ids(view), last, running, reader.total())


class HistoryWindow:
    """The trials of a view in its order; the cursor is a trial, wherever that comes to stand."""

    def __init__(self, reader: HistoryReader) -> None:
        self.reader = reader
        self.view = View()
        self.ids: array[int] = array("q")
        self.total = 0
        self.cursor = 0  # index into ids
        self.marks: dict[int, None] = {}  # in the order in which they were marked
        self._rows: OrderedDict[int, HistoryRow] = OrderedDict()
        self._last = 0
        self._running: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def current_id(self) -> int | None:
        return self.ids[self.cursor] if self.ids else None

    def take(self, loaded: Loaded) -> None:
        """Show what was read; the cursor stays at its trial, or goes to the first where that is not there."""
        held = self.current_id
        same_view = loaded.view == self.view
        self.view, self.ids, self.total = loaded.view, loaded.ids, loaded.total
        self._last, self._running = loaded.last, loaded.running
        self._rows.clear()
        found = self.index_of(held) if held is not None else None
        if found is None:
            found = min(self.cursor, max(0, len(self.ids) - 1)) if same_view else 0
        self.cursor = found

    def index_of(self, trial_id: int) -> int | None:
        try:
            return self.ids.index(trial_id)
        except ValueError:
            return None

    def look(self) -> int | None:
        """Take what has ended since into a view by time; how many rows came above the others.

        None when there is something that only a new load puts in its place: in another order, or a trial
        that ended after younger ones.
        """
        reader, view = self.reader, self.view
        if not reader.changed():
            return 0
        if self._stands_anew() and view.order is Order.CHANGE:
            return None
        last, running = reader.last(), tuple(reader.running())
        new = reader.newer(view, self._last, self._running)
        self._rows.clear()
        if view.filtered and (last != self._last or running != self._running):
            self.total = reader.total()
        fresh = self._not_there(new)
        if fresh and (view.order is not Order.TIME or self._is_late(fresh[0])):
            return None
        self._last, self._running = last, running
        if not fresh:
            return 0
        if not view.filtered:
            self.total += len(fresh)  # counting a long history takes longer than all else here
        if view.reverse:
            self.ids.extend(fresh)
            return 0
        self.ids = array("q", reversed(fresh)) + self.ids
        self.cursor += len(fresh) if len(self.ids) > len(fresh) else 0
        return len(fresh)

    def _stands_anew(self) -> bool:
        """Look again at the best and the baseline; whether another best stands."""
        before = self.reader.standing.candidate_id
        self.reader.refresh()
        return self.reader.standing.candidate_id != before

    def _not_there(self, new: array[int]) -> array[int]:
        """Without those that the load found already, which are among the newest."""
        if self.view.order is not Order.TIME:
            return new
        edge = self.ids[-len(new) - AROUND :] if self.view.reverse else self.ids[: len(new) + AROUND]
        known = set(edge)
        return array("q", (one for one in new if one not in known))

    def _is_late(self, trial_id: int) -> bool:
        newest = self.ids[-1 if self.view.reverse else 0] if self.ids else 0
        return trial_id < newest

    def row(self, index: int) -> HistoryRow | None:
        """The row at a place of the view, read with those around it; None where it has gone."""
        trial_id = self.ids[index]
        if trial_id not in self._rows:
            around = self.ids[max(0, index - AROUND) : index + AROUND]
            for row in self.reader.rows(around):
                self._rows[row.id] = row
                self._rows.move_to_end(row.id)
            while len(self._rows) > CACHED:
                self._rows.popitem(last=False)
        return self._rows.get(trial_id)

    def move_to(self, index: int) -> None:
        self.cursor = max(0, min(index, len(self.ids) - 1))

    def mark(self) -> None:
        """Mark the cursor's trial, or take its mark away."""
        trial_id = self.current_id
        if trial_id is None:
            return
        if trial_id in self.marks:
            del self.marks[trial_id]
        else:
            self.marks[trial_id] = None
