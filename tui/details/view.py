"""Details on the screen: as a drawer beside the panes, or as a page of their own."""

from __future__ import annotations

from sessions.history import HistoryReader
from tui.details.layout import Sheet
from tui.details.subject import Subject, lines_of, title_of
from tui.glyphs import UNICODE, Glyphs
from tui.line import Lines, cut
from tui.paint import Paint
from tui.panes.lines_view import ScrolledLines
from tui.screens.pages import Page


class DetailView(ScrolledLines):
    """The details of one subject after the other; a trial that runs is read again with `look`."""

    def __init__(
        self, reader: HistoryReader, paint: Paint, glyphs: Glyphs = UNICODE, id: str | None = None
    ) -> None:
        super().__init__(paint, glyphs.ascii, id=id)
        self.reader = reader
        self.subject: Subject | None = None
        self._glyphs = glyphs

    def show_subject(self, subject: Subject | None) -> None:
        """Show another one from its top; None: nothing."""
        if subject != self.subject:
            self.scroll_to(y=0, animate=False)
        self.subject = subject
        self.look()

    def look(self) -> None:
        """Read it again; what did not change is not painted again."""
        self.show(self._made)

    def _made(self, width: int) -> Lines:
        if self.subject is None or not width:
            return ()
        lines = lines_of(self.subject, self.reader, Sheet(width, self.size.height, self._glyphs))
        return tuple(cut(line, width, self._glyphs.ascii) for line in lines)


class DetailPage(Page):
    """The same on the whole screen; Esc goes back."""

    def __init__(
        self, subject: Subject, reader: HistoryReader, paint: Paint, glyphs: Glyphs = UNICODE
    ) -> None:
        super().__init__(title_of(subject), paint, glyphs)
        self.subject = subject
        self.reader = reader
        self._glyphs = glyphs

    def lines(self, width: int) -> Lines:
        lines = lines_of(self.subject, self.reader, Sheet(width, self.app.size.height - 2, self._glyphs))
        return tuple(cut(line, width, self._glyphs.ascii) for line in lines)
