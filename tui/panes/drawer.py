"""The drawer of a wide screen: the details of the selected row, beside the panes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical

from tui.line import line_of
from tui.panes.lines_view import LinesView

if TYPE_CHECKING:
    from tui.app import KerneldeckApp
    from tui.details.subject import Subject
    from tui.details.view import DetailView


class Drawer(Vertical):
    """Follows the selection; reads again only when something ended."""

    def __init__(self, deck_app: KerneldeckApp, id: str | None = None) -> None:
        super().__init__(id=id)
        self._app = deck_app
        self._ascii = deck_app.deck.showing.glyphs.ascii
        self.head = LinesView(deck_app.paint, self._ascii)
        self.head.add_class("head")
        self.view: DetailView | None = None
        self._seen: object = None

    def compose(self) -> ComposeResult:
        yield self.head

    def look(self) -> None:
        """Show the details of what is selected now."""
        reader = self._app.main.history.reader
        if reader is None:
            self.head.show((line_of(("   Detail", "title")),))
            return
        from tui.details.subject import title_of
        from tui.details.view import DetailView
        from tui.doing.reading import subject_of

        subject = subject_of(self._app)
        self.head.show((line_of((f"   {title_of(subject) if subject else 'Detail'}", "title")),))
        if self.view is None:
            self.view = DetailView(reader, self._app.paint, self._app.deck.showing.glyphs)
            self.mount(self.view)
        self._show(self.view, subject)

    def _show(self, view: DetailView, subject: Subject | None) -> None:
        newest = self._app.deck.showing.snapshot.ended[:1]
        if (subject, newest) != self._seen:
            self._seen = (subject, newest)
            view.show_subject(subject)
