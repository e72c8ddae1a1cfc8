"""The queue's list: only the rows in view are made, however many wait; the cursor follows a key."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from core.workspace.config import Knob
from tui.line import Line, Span, line_of, wrapped
from tui.lines.queue import NOTHING_YET, Columns, columns_of, queue_columns, queue_line
from tui.paint import Paint
from tui.panes.lines_view import refresh_changed, strip_of
from tui.queue_rows import QueueRow, QueueRows, queue_rows
from tui.record import Record
from tui.showing import Showing

_SAMPLED = 48  # rows whose knobs tell which columns are worth their place


class QueueList(Widget, can_focus=True):
    """Ended, running and waiting rows with one cursor.

    It keeps its own place: the screen library would lay the screen out anew with every row that comes, and
    paint every row anew that moves, though the cells of neighbours are mostly the same.
    """

    def __init__(self, record: Record, paint: Paint, showing: Showing, id: str | None = None) -> None:
        super().__init__(id=id)
        self._record = record
        self._paint = paint
        self._showing = showing
        self._rows = QueueRows()
        self._columns = Columns()
        self._columns_for: object = None
        self._key = ""
        self._number = 0
        self._top = 0
        self._first_knob = 0
        self._painted: dict[int, Line] = {}

    @property
    def selected(self) -> QueueRow | None:
        return self._rows.row(self._number) if len(self._rows) else None

    @property
    def text(self) -> str:
        rows = range(self._top, min(len(self._rows), self._top + self.size.height))
        return "\n".join("".join(span.text for span in self._line(number)) for number in rows)

    def show(self, showing: Showing) -> None:
        """Take over what is known now; the cursor stays on its row, the view on what it shows."""
        before = self._rows
        self._showing = showing
        self._rows = queue_rows(showing.snapshot, showing.hide_bad)
        self._follow_key(before)
        self._repaint()

    def _follow_key(self, before: QueueRows) -> None:
        if self._showing.follow:
            self._number = min(self._rows.now, len(self._rows) - 1)
            self._bring_into_view(keep_ahead=True)
        else:
            found = self._rows.number_of(self._key) if self._key else None
            moved = 0 if found is None else found - self._number
            self._number = max(0, min(self._number if found is None else found, len(self._rows) - 1))
            if moved:
                self._scroll(self._top + moved)
        self._number = max(0, self._number)
        self._key = self._rows.row(self._number).key if len(self._rows) else ""

    def _bring_into_view(self, keep_ahead: bool = False) -> None:
        height = max(1, self.size.height - 1)
        top = self._top
        if keep_ahead:
            # What runs stands at a third of the pane: the last results above, what comes below.
            self._scroll(self._number - height // 3)
        elif self._number < top:
            self._scroll(self._number)
        elif self._number >= top + height:
            self._scroll(self._number - height + 1)

    def _scroll(self, top: int) -> None:
        most = max(0, len(self._rows) + 1 - self.size.height)
        self._top = max(0, min(top, most))

    def move(self, by: int) -> None:
        """Put the cursor so many rows on; it stops at the ends."""
        self.move_to(self._number + by)

    def move_to(self, number: int) -> None:
        if not len(self._rows):
            return
        self._number = max(0, min(number, len(self._rows) - 1))
        self._key = self._rows.row(self._number).key
        self._bring_into_view()
        self._repaint()

    @property
    def last(self) -> int:
        return len(self._rows) - 1

    @property
    def page(self) -> int:
        return max(1, self.size.height - 2)

    def shift_columns(self, by: int) -> None:
        self._first_knob = max(0, self._first_knob + by)
        self._columns_for = None
        self._repaint()

    def on_resize(self) -> None:
        self._columns_for = None
        self._follow_key(self._rows)
        self._set_columns()
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll_by(event, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll_by(event, -1)

    def _scroll_by(self, event: events.MouseEvent, by: int) -> None:
        event.stop()
        self._scroll(self._top + by)
        self._repaint()

    # Painting.

    def _repaint(self) -> None:
        """Refresh the rows in view whose line is another one than was painted."""
        self._set_columns()
        for y in range(self.size.height if self.display else 0):
            self._repaint_line(y)

    def _repaint_line(self, y: int) -> None:
        """Refresh the cells that differ; all of them where the cursor, which fills the row, comes or goes."""
        before, line = self._painted.get(y, ()), self._line_at(y)
        if y not in self._painted or _on_cursor(before) != _on_cursor(line):
            self.refresh(Region(0, y, self.size.width, 1))
        else:
            refresh_changed(self, y, before, line)

    def _set_columns(self) -> None:
        """Columns are chosen once a sweep, width and shift: values that come later never move them."""
        config, sweep = self._showing.facts.config, self._showing.sweep
        knobs: Sequence[Knob] = config.knobs if config else ()
        wanted = (knobs, sweep.id if sweep else 0, self.size.width, self._first_knob, bool(len(self._rows)))
        if wanted == self._columns_for:
            return
        self._columns_for = wanted
        first = max(0, self._rows.now - _SAMPLED // 2)
        ids = [
            self._rows.row(number).candidate_id
            for number in range(first, min(len(self._rows), first + _SAMPLED))
        ]
        held = self._record.knobs(one for one in ids if one).values()
        self._columns = columns_of(knobs, held, self.size.width, self._first_knob)

    def _line(self, number: int) -> Line:
        shown = self._rows.row(number)
        trial = shown.trial
        held = trial.overlay if trial is not None else {}
        if shown.candidate_id and not all(name in held for name, _ in self._columns.knobs):
            held = {**self._record.knobs([shown.candidate_id])[shown.candidate_id], **held}
        return queue_line(shown, held, self._columns, self._showing, self.size.width)

    def _line_at(self, y: int) -> Line:
        """The line at that row of the pane; the marker and the reverse of the cursor are part of it."""
        if not len(self._rows):
            told = wrapped([line_of((f"  {text}", "dim")) for text in NOTHING_YET], self.size.width, 5)
            return told[y] if y < len(told) else ()
        if y == 0:
            return queue_columns(self._columns, self._showing.unit, self.size.width)
        number = y - 1 + self._top
        if number >= len(self._rows):
            return ()
        line = self._line(number)
        if number != self._number:
            return line
        marker = self._showing.glyphs.cursor
        return (Span(f"{marker} ", "cursor"), *(Span(span.text, "cursor") for span in line[1:]))

    def render_line(self, y: int) -> Strip:
        line = self._painted[y] = self._line_at(y)
        base = "cursor" if _on_cursor(line) else ""
        return strip_of(line, self._paint, self._showing.glyphs.ascii, self.size.width, base)


def _on_cursor(line: Line) -> bool:
    return bool(line) and line[0].role == "cursor"
