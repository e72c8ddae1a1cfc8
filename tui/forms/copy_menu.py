"""The menu of what to copy from a row, and of files to write the shown rows to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from core.errors import KerneldeckError
from sessions.history import HistoryReader, HistoryRow, View
from tui.forms.copying import copy
from tui.forms.row_texts import copyables, export_view
from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, line_of
from tui.paint import Paint
from tui.panes.lines_view import LinesView
from tui.plain import fit, plain
from tui.screens.layer import Layer

_EXPORTS = {"v": ("csv", "the shown rows as CSV, into a file"), "j": ("jsonl", "the same as JSON lines")}
_PREVIEW = 44


class CopyMenu(Layer[str | None]):
    """A key copies at once; ends with a sentence on where the text is now, or None."""

    DEFAULT_CSS = """
    CopyMenu { align: center middle; background: transparent; }
    CopyMenu > Vertical {
        width: 78; max-width: 100%; height: auto; padding: 0 1; border: solid ansi_yellow;
        background: ansi_default;
    }
    CopyMenu LinesView { height: 12; width: 1fr; }
    """

    def __init__(
        self,
        reader: HistoryReader,
        view: View,
        row: HistoryRow | None,
        paint: Paint,
        glyphs: Glyphs = UNICODE,
        to_terminal: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self.reader = reader
        self.shown_view = view
        place = reader.store.place
        self.folder: Path = place.folder / "exports"
        self.choices = copyables(row, place.output_of(row.id)) if row is not None else ()
        self._title = f"Copy from #{row.id}" if row is not None else "Save what is shown"
        self._to_terminal = to_terminal
        self._glyphs = glyphs
        self._lines = LinesView(paint, glyphs.ascii)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._lines

    def on_mount(self) -> None:
        lines: list[Line] = [line_of((self._title, "strong")), ()]
        for choice in self.choices:
            preview = fit(plain(choice.text, 200), _PREVIEW, self._glyphs.ascii)
            lines.append(line_of((f" {choice.key}  ", "key"), f"{choice.label:<27}", (preview, "dim")))
        lines += [line_of((f" {key}  ", "key"), label) for key, (_, label) in _EXPORTS.items()]
        self._lines.show((*lines, (), line_of(("Esc closes; everything copied is also in a file", "dim"))))

    async def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        chosen = next((choice for choice in self.choices if choice.key == event.key), None)
        if event.key in ("escape", "q"):
            self.dismiss(None)
        elif chosen is not None:
            self.dismiss(await self._copied(chosen.label, chosen.text))
        elif event.key in _EXPORTS:
            self.dismiss(await self._exported(_EXPORTS[event.key][0]))

    async def _copied(self, label: str, text: str) -> str:
        to_terminal = self._to_terminal or self.app.copy_to_clipboard
        try:
            copied = await copy(text, self.folder, os.environ, to_terminal)
        except OSError as error:
            return f"{label} not copied: {self.folder}: {error.strerror}"
        return f"{label}: {copied.sentence}"

    async def _exported(self, kind: str) -> str:
        try:
            path, count = await asyncio.to_thread(
                export_view, self.reader, self.shown_view, self.folder, kind
            )
        except OSError as error:
            return f"not written: {self.folder}: {error.strerror}"
        except KerneldeckError as error:
            return f"not written: {error.sentence}"
        return f"{count:,} rows in {path}"
