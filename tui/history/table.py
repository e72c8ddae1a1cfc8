"""The history as a table. It keeps its own place, so that rows which come above never move what is read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from core.errors import KerneldeckError
from sessions.history import HistoryReader, HistoryRow, Order, View
from tui.glyphs import UNICODE, Glyphs
from tui.history.cells import Look, header_line, row_line
from tui.history.window import HistoryWindow, Loaded, load
from tui.line import Line, Span, cut, line_of, text_of
from tui.paint import Paint
from tui.panes.lines_view import refresh_changed, strip_of
from tui.plain import plain

MOST_COMPARED = 4
RELOAD_AFTER_S = 1.0
_MOST_LINES = 1000
_ORDERS = tuple(Order)


class HistoryTable(Widget, can_focus=True):
    """Reads rows as they are shown. It binds no keys: whoever mounts it calls its methods."""

    DEFAULT_CSS = "HistoryTable { height: 1fr; width: 1fr; }"

    @dataclass
    class Moved(Message):
        """The cursor stands on another trial; None: there is none."""

        trial_id: int | None

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, HistoryTable.Moved)

    @dataclass
    class Marked(Message):
        trial_ids: tuple[int, ...]

    @dataclass
    class Viewed(Message):
        """A view was read and is shown, with so many of `total` trials."""

        view: View
        count: int
        total: int

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, HistoryTable.Viewed)

    @dataclass
    class Refused(Message):
        """What was asked for cannot be done; `stale`: rows shown are from before a failure to read."""

        sentence: str
        hint: str = ""
        stale: bool = False

    def __init__(
        self, reader: HistoryReader, paint: Paint, glyphs: Glyphs = UNICODE, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.window = HistoryWindow(reader)
        self.follow = False
        self.fault = ""
        self.loaded = False
        self._paint = paint
        self._glyphs = glyphs
        self._top = 0
        self._shown: list[Line] = []
        self._lines: dict[int, tuple[object, Line]] = {}
        self._wanted = View()
        self._reload: Timer | None = None

    # What others ask of it

    @property
    def view(self) -> View:
        """The view that was asked for last, shown already or about to be."""
        return self._wanted

    @property
    def current_id(self) -> int | None:
        return self.window.current_id

    @property
    def marked(self) -> tuple[int, ...]:
        return tuple(self.window.marks)

    def on_mount(self) -> None:
        self.show(self._wanted)

    def show(self, view: View) -> None:
        """Read the view and show it; a filter that means nothing is refused and the shown view stays."""
        try:
            self.window.reader.check(view.words)
        except KerneldeckError as error:
            self.post_message(self.Refused(error.sentence, error.hint))
            return
        self._wanted = view
        self.run_worker(self._read(view), group="history", exclusive=True, exit_on_error=False)

    def look(self) -> None:
        """Take what has been written since; called when something is known to have changed."""
        try:
            above = self.window.look()
        except KerneldeckError as error:
            self._failed(error)
            return
        if above is None:
            self._reload = self._reload or self.set_timer(RELOAD_AFTER_S, self._show_again)
            return
        self._recovered()
        if above and self.follow:
            self.window.move_to(0)
            self._top = 0
        else:
            self._top += above
        self._repaint()

    def look_at_notes(self) -> None:
        """Take what somebody said of records; a filter may choose others by that."""
        if self._wanted.words:
            self.show(self._wanted)
        else:
            self.look()

    def filter(self, words: str) -> None:
        self.show(replace(self._wanted, words=words.strip()))

    def sort_next(self) -> None:
        order = _ORDERS[(_ORDERS.index(self._wanted.order) + 1) % len(_ORDERS)]
        self.show(replace(self._wanted, order=order, reverse=False))

    def sort_reverse(self) -> None:
        self.show(replace(self._wanted, reverse=not self._wanted.reverse))

    def toggle_bad(self) -> None:
        self.show(replace(self._wanted, hide_bad=not self._wanted.hide_bad))

    def move(self, by: int) -> None:
        self.move_to(self.window.cursor + by)

    def page(self, by: int) -> None:
        self.move(by * max(1, self._height - 1))

    def move_to(self, index: int) -> None:
        """Put the cursor on a row of the view, or the nearest that there is."""
        before = self.window.cursor
        self.window.move_to(index)
        self._moved(before)

    def bottom(self) -> None:
        self.move_to(len(self.window) - 1)

    def mark(self) -> None:
        """Mark the row, or take its mark away, and go on to the next."""
        self.window.mark()
        self.post_message(self.Marked(self.marked))
        self.move(1)
        self._repaint()

    def clear_marks(self) -> bool:
        """Take all marks away; False when there were none."""
        if not self.window.marks:
            return False
        self.window.marks.clear()
        self.post_message(self.Marked(()))
        self._repaint()
        return True

    def compared(self) -> tuple[int, ...]:
        """The two to four marked trials, or the one marked and the cursor's; else none, and why is told."""
        chosen = self.marked
        if len(chosen) == 1 and self.current_id is not None and self.current_id not in chosen:
            chosen = (*chosen, self.current_id)
        if 2 <= len(chosen) <= MOST_COMPARED:
            return chosen
        self.post_message(self.Refused(f"{len(chosen)} marked", f"mark 2 to {MOST_COMPARED} runs with Space"))
        return ()

    # Reading

    async def _read(self, view: View) -> None:
        try:
            loaded = await asyncio.to_thread(load, self.window.reader, view)
        except KerneldeckError as error:
            self._failed(error)
            return
        self._take(loaded)

    def _show_again(self) -> None:
        self._reload = None
        self.show(self._wanted)

    def _take(self, loaded: Loaded) -> None:
        row_on_screen = self.window.cursor - self._top
        self.window.take(loaded)
        self.loaded = True
        if self.follow:
            self.window.move_to(0)
        self._top = max(0, self.window.cursor - row_on_screen)
        self._recovered()
        self._keep_in_sight()
        self._repaint()
        self._tell_view()
        self.post_message(self.Moved(self.current_id))

    def _tell_view(self) -> None:
        self.post_message(self.Viewed(self.window.view, len(self.window), self.window.total))

    def _failed(self, error: KerneldeckError) -> None:
        if self.fault != error.sentence:
            self.fault = error.sentence
            self.post_message(self.Refused(error.sentence, error.hint, stale=True))
            self._repaint()

    def _recovered(self) -> None:
        self.fault = ""

    # Painting

    @property
    def _height(self) -> int:
        """How many rows fit below the titles."""
        return max(0, self.size.height - 1)

    def _moved(self, before: int) -> None:
        if self._keep_in_sight():
            self._repaint()
        else:
            self._repaint_rows(before, self.window.cursor)
        if before != self.window.cursor:
            self.post_message(self.Moved(self.current_id))

    def _keep_in_sight(self) -> bool:
        """Move the rows so that the cursor is among those shown; whether they moved."""
        before, height, cursor = self._top, max(1, self._height), self.window.cursor
        self._top = max(0, min(self._top, cursor, max(0, len(self.window) - height)))
        self._top = max(self._top, cursor - height + 1)
        return self._top != before

    def _repaint_rows(self, *indexes: int) -> None:
        for index in {*indexes}:
            self._repaint_line(index - self._top + 1)

    def _repaint(self) -> None:
        """Send those lines that differ from what is on the screen."""
        self._shown += [()] * (self.size.height - len(self._shown))
        for y in range(self.size.height):
            self._repaint_line(y)

    def _repaint_line(self, y: int) -> None:
        if not 0 <= y < len(self._shown):
            return
        refresh_changed(self, y, self._shown[y], self._line(y))

    def on_resize(self, event: events.Resize) -> None:
        self._shown = [()] * event.size.height
        self._keep_in_sight()
        self.refresh()

    def on_focus(self) -> None:
        self._repaint_rows(self.window.cursor)

    def on_blur(self) -> None:
        self._repaint_rows(self.window.cursor)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)

    def render_line(self, y: int) -> Strip:
        line = self._line(y)
        self._shown += [()] * (y + 1 - len(self._shown))
        self._shown[y] = line
        return strip_of(line, self._paint, self._glyphs.ascii, self.size.width)

    def _line(self, y: int) -> Line:
        width = self.size.width
        look = Look(self.window.reader.scope, self.window.reader.standing, self._glyphs)
        if y == 0:
            return cut(header_line(width, self.window.view, look), width, self._glyphs.ascii)
        index = self._top + y - 1
        if index >= len(self.window):
            return self._nothing(y)
        try:
            row = self.window.row(index)
        except KerneldeckError as error:
            self.call_later(self._failed, error)
            return line_of(("  not read", "warn"))
        if row is None:
            return line_of((f"  #{self.window.ids[index]} is gone", "off"))
        return self._row_line(row, look, index == self.window.cursor)

    def _row_line(self, row: HistoryRow, look: Look, here: bool) -> Line:
        """The row's line, made again only where what it is made of is another: most rows only move."""
        width, marked, minute = self.size.width, row.id in self.window.marks, int(look.now() // 60)
        made_of = (row, width, look.standing, marked, here, here and self.has_focus, minute)
        before = self._lines.get(row.id)
        if before is not None and before[0] == made_of:
            return before[1]
        line = cut(row_line(row, width, look, marked, here), width, self._glyphs.ascii)
        if here and self.has_focus:
            line = (Span(text_of(line), "cursor"),)
        if len(self._lines) >= _MOST_LINES:
            self._lines.clear()
        self._lines[row.id] = (made_of, line)
        return line

    def _nothing(self, y: int) -> Line:
        if y != 1 or len(self.window):
            return ()
        if self.fault:
            return line_of(("  ", ""), (plain(self.fault), "bad"))
        if not self.loaded:
            return line_of(("  reading the history", "dim"))
        if self._wanted.filtered and self.window.total:
            return line_of(("  no runs match: Esc clears the filter, i shows the bad ones again", "dim"))
        return line_of(("  no runs recorded yet: a adds a sweep or a run", "dim"))
