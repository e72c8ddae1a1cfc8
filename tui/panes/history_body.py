"""The History pane's body: the table of every trial, or why it cannot be shown."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from core.errors import KerneldeckError
from tui.line import line_of, wrapped
from tui.lines.history import EMPTY
from tui.panes.lines_view import LinesView
from tui.showing import Showing

if TYPE_CHECKING:
    from sessions.history import HistoryReader
    from tui.app import KerneldeckApp
    from tui.history.filter_bar import FilterBar
    from tui.history.table import HistoryTable


class HistoryBody(Vertical, can_focus=True):
    """Mounts the table once there is a history to read."""

    def __init__(self, deck_app: KerneldeckApp, id: str | None = None) -> None:
        super().__init__(id=id)
        self._app = deck_app
        self.table: HistoryTable | None = None
        self.bar: FilterBar | None = None
        self.reader: HistoryReader | None = None
        self._empty = LinesView(deck_app.paint, deck_app.deck.showing.glyphs.ascii)
        self._newest: object = None
        self._annotated = 0

    def compose(self) -> ComposeResult:
        yield self._empty

    def look(self, showing: Showing) -> None:
        """Take what is new; called with every change, reads only when a trial began or ended."""
        facts = showing.history
        if facts.fault or not facts.runs:
            told = (f"  {facts.fault}", "bad") if facts.fault else (f"  {EMPTY}", "dim")
            self._empty.show(wrapped([line_of(told)], self.size.width))
            return
        newest = (showing.snapshot.trial, showing.snapshot.ended[:1], showing.workspace)
        contract = showing.workspace.contract_id if showing.workspace else ""
        if self.table is None and contract:
            self._mount_table(contract)
        elif self.table is None:
            return
        elif self.reader is not None and contract not in ("", self.reader.scope.contract_id):
            self._read_for(contract)
        elif showing.snapshot.annotated != self._annotated:
            self.table.look_at_notes()
        elif newest != self._newest:
            self.table.look()
        self._newest, self._annotated = newest, showing.snapshot.annotated

    def _mount_table(self, contract_id: str) -> None:
        try:
            reader = self._app.deck.record.history_reader(contract_id)
        except KerneldeckError:
            return
        if reader is None:
            return
        from tui.history.filter_bar import FilterBar
        from tui.history.table import HistoryTable

        self.reader = reader
        self.table = HistoryTable(reader, self._app.paint, self._app.deck.showing.glyphs)
        self.table.follow = True  # until somebody reads in it
        self._empty.display = False
        self.bar = FilterBar(reader, self._app.paint, self._app.deck.showing.glyphs)
        self.mount(self.bar, self.table)
        if self.has_focus:
            self.table.focus()

    def _read_for(self, contract_id: str) -> None:
        """Compare from now on with what stands for that contract."""
        assert self.reader is not None and self.table is not None
        with suppress(KerneldeckError):  # told in Context; tried again with the next change
            self.reader.scope = self._app.deck.record.scope(contract_id)
            self.table.show(self.table.view)

    def on_focus(self) -> None:
        if self.table is not None:
            self.table.focus()

    def on_filter_bar_filtered(self, event: FilterBar.Filtered) -> None:
        if self.table is not None:
            self.table.filter(event.words)

    def on_filter_bar_closed(self) -> None:
        if self.table is not None:
            self.table.focus()
