"""The form of what is kept with a trial: its tags and its note."""

from __future__ import annotations

from rich.cells import cell_len

from core.operations.catalogue import NOTE
from core.operations.declaration import Argument, Kind
from core.records import TrialNote
from core.words import JsonObject
from sessions.annotations import note_text, tag_word, with_tags
from tui.forms.fields import TypedField, labelled
from tui.forms.form import Asked, FormScreen, command_line, command_text
from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, Lines, cut, line_of
from tui.paint import Paint
from tui.plain import plain

_TAGS = Argument("tags", Kind.TEXT, "words between blanks; tag:WORD in the filter finds them")
_TEXT = Argument("text", Kind.TEXT, "a line; the filter finds its words")


class _LongField(TypedField):
    """What is typed has the whole line; the end of a longer text is shown, and below it what is wrong."""

    def __init__(self, argument: Argument, text: str) -> None:
        super().__init__(NOTE, argument)
        self.doc = argument.doc
        self.text = text

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line:
        label = labelled(self.name, here, glyphs)
        shown = f"{plain(self.text)}{'_' if here else ''}"
        while cell_len(shown) > max(1, width - len(label.text) - 1):
            shown = shown[1:]
        told = "" if self.text else f" {self.doc}"
        return cut(
            line_of(label, (shown, "cursor" if here else "strong"), (told, "dim")), width, glyphs.ascii
        )


class TagsField(_LongField):
    """Words between blanks."""

    def __init__(self, tags: tuple[str, ...]) -> None:
        super().__init__(_TAGS, " ".join(tags))

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.text.split())

    def _read(self) -> object:
        return with_tags((), tuple(tag_word(word) for word in self.tags), ())


class NoteField(_LongField):
    """A line of text."""

    def __init__(self, text: str) -> None:
        super().__init__(_TEXT, text)

    def _read(self) -> object:
        return note_text(self.text)


class NoteForm(FormScreen):
    """Ends with what changes of a trial's tags and note; an emptied field takes them away."""

    KEYS = "Enter keep  Esc give up  arrows"

    def __init__(self, trial: int, before: TrialNote, paint: Paint, glyphs: Glyphs = UNICODE) -> None:
        self.trial, self.before = trial, before
        self.tags, self.note = TagsField(before.tags), NoteField(before.text)
        super().__init__(f"Tags and note of trial #{trial}", (self.tags, self.note), paint, glyphs)

    def asked(self) -> Asked | None:
        if any(field.fault for field in self.fields):
            return None
        arguments, words = self._changes()
        command = command_text(["kerneldeck", *NOTE.verb, str(self.trial), *words])
        return Asked(NOTE.id, {"trial": self.trial, **arguments}, command)

    def _changes(self) -> tuple[JsonObject, list[str]]:
        """The arguments that differ, and as words of a command line."""
        arguments: JsonObject = {}
        words: list[str] = []
        added = [tag for tag in dict.fromkeys(self.tags.tags) if tag not in self.before.tags]
        removed = [tag for tag in self.before.tags if tag not in self.tags.tags]
        for name, flag, tags in (("tags", "--tag", added), ("untags", "--untag", removed)):
            if tags:
                arguments[name] = tags
                words += [word for tag in tags for word in (flag, tag)]
        if (text := self.note.text.strip()) != self.before.text:
            arguments["text"] = text
            words += ["--", text] if text.startswith("-") else [text]
        return arguments, words

    def told_lines(self) -> Lines:
        faults = [field for field in self.fields if field.fault]
        if faults:
            return tuple(line_of((f" {one.name}: {plain(one.fault)}", "bad")) for one in faults)
        asked = self.asked()
        return () if asked is None else (command_line(asked.command),)
