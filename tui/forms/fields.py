"""The fields of a form as values and lines; which screen shows them, they do not know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from core.errors import ArgumentFault
from core.operations.arguments import bind
from core.operations.declaration import Argument, Kind, Operation
from core.words import Scalar
from tui.glyphs import Glyphs
from tui.line import Line, Span, cut, line_of
from tui.plain import padded, plain

LABEL_WIDTH = 18
_LONGEST_TEXT = 200


class Field(Protocol):
    """One row of a form. `name` is the argument's; `typing` says that letters belong to the field."""

    name: str
    fault: str

    @property
    def typing(self) -> bool: ...

    @property
    def value(self) -> object:
        """What was chosen; None: nothing was said."""
        ...

    def key(self, key: str, character: str | None) -> bool:
        """Take a key; False when the field has no use for it."""
        ...

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line: ...


def labelled(name: str, here: bool, glyphs: Glyphs) -> Span:
    lead = f"{glyphs.cursor if here else ' '} {padded(plain(name), LABEL_WIDTH, ascii_glyphs=glyphs.ascii)} "
    return Span(lead, "key" if here else "dim")


class ValuesField:
    """Values of a knob, each to be taken or left; with none taken the knob stays as the file has it."""

    def __init__(self, name: str, values: Sequence[Scalar], now: Scalar | None = None) -> None:
        self.name = name
        self.fault = ""
        self.values = tuple(values)
        self.taken = [True] * len(self.values)
        self.at = 0
        self.now = now

    @property
    def typing(self) -> bool:
        return False

    @property
    def value(self) -> list[Scalar]:
        return [value for value, taken in zip(self.values, self.taken, strict=True) if taken]

    @property
    def whole(self) -> bool:
        return all(self.taken)

    def key(self, key: str, character: str | None) -> bool:
        if key in ("left", "h", "right", "l"):
            step = -1 if key in ("left", "h") else 1
            self.at = max(0, min(len(self.values) - 1, self.at + step))
        elif key == "space":
            self.taken[self.at] = not self.taken[self.at]
        elif key == "a":
            self.taken = [not self.whole] * len(self.values)
        elif key == "o":
            self.taken = [number == self.at for number in range(len(self.values))]
        else:
            return False
        return True

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line:
        cells = [self._cell(number, here) for number in range(len(self.values))]
        first = 0
        room = width - LABEL_WIDTH - 4
        while (
            here and first < self.at and sum(len(one.text) + 1 for one in cells[first : self.at + 1]) > room
        ):
            first += 1
        shown = [Span("<", "dim")] if first else []
        for cell in cells[first:]:
            shown += [cell, Span(" ")]
        note = "" if any(self.taken) else f"as it is{'' if self.now is None else f': {_text(self.now)}'}"
        spans = (labelled(self.name, here, glyphs), *shown, Span(note, "dim"))
        return cut(line_of(*spans), width, glyphs.ascii)

    def _cell(self, number: int, here: bool) -> Span:
        taken = self.taken[number]
        role = "cursor" if here and number == self.at else "" if taken else "off"
        return Span(f"[{'x' if taken else ' '}]{plain(_text(self.values[number]), 40)}", role)


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FlagField:
    """Yes or no."""

    def __init__(self, name: str, doc: str, value: bool) -> None:
        self.name = name
        self.fault = ""
        self.doc = doc
        self.value: bool = value

    @property
    def typing(self) -> bool:
        return False

    def key(self, key: str, character: str | None) -> bool:
        if key not in ("space", "left", "right", "h", "l"):
            return False
        self.value = not self.value
        return True

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line:
        box = Span(f"[{'x' if self.value else ' '}]", "cursor" if here else "")
        return cut(
            line_of(labelled(self.name, here, glyphs), box, (f" {self.doc}", "dim")), width, glyphs.ascii
        )


class ChoiceField:
    """One of some words."""

    def __init__(self, name: str, choices: Sequence[str], value: str) -> None:
        self.name = name
        self.fault = ""
        self.choices = tuple(choices)
        self.at = self.choices.index(value) if value in self.choices else 0

    @property
    def typing(self) -> bool:
        return False

    @property
    def value(self) -> str:
        return self.choices[self.at]

    def key(self, key: str, character: str | None) -> bool:
        if key not in ("space", "left", "right", "h", "l"):
            return False
        self.at = (self.at + (-1 if key in ("left", "h") else 1)) % len(self.choices)
        return True

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line:
        cells: list[Span] = []
        for number, choice in enumerate(self.choices):
            chosen = number == self.at
            role = "cursor" if here and chosen else "strong" if chosen else "off"
            cells += [Span(f"({'x' if chosen else ' '}){plain(choice, 40)}", role), Span(" ")]
        return cut((labelled(self.name, here, glyphs), *cells), width, glyphs.ascii)


class TypedField:
    """A number or a text of an operation's argument, checked by its declaration at each key."""

    def __init__(self, operation: Operation, argument: Argument) -> None:
        self.name = argument.name
        self.fault = ""
        self.text = "" if argument.default is None else str(argument.default)
        self._operation = operation
        self._argument = argument

    @property
    def typing(self) -> bool:
        return True

    @property
    def value(self) -> object:
        """The value as the operation takes it; None when nothing was typed, or it is faulty."""
        try:
            return self._read()
        except ArgumentFault:
            return None

    def _read(self) -> object:
        text = self.text.strip()
        if not text:
            return None
        value = _typed(text, self._argument.kind)
        return bind(self._operation, {self.name: value})[self.name]

    def key(self, key: str, character: str | None) -> bool:
        if key == "backspace":
            self.text = self.text[:-1]
        elif key == "delete":
            self.text = ""
        elif character is not None and character.isprintable() and len(self.text) < _LONGEST_TEXT:
            self.text += character
        else:
            return False
        self.check()
        return True

    def check(self) -> None:
        """Say beside the field what is wrong with it."""
        try:
            self._read()
        except ArgumentFault as fault:
            self.fault = fault.sentence.removeprefix(f"{self._operation.id}: {self.name}: ")
        else:
            self.fault = ""

    def line(self, here: bool, width: int, glyphs: Glyphs) -> Line:
        typed = Span(padded(f"{plain(self.text)}{'_' if here else ''}", 12), "cursor" if here else "strong")
        told = (f" {plain(self.fault)}", "bad") if self.fault else (f" {self._argument.doc}", "dim")
        return cut(line_of(labelled(self.name, here, glyphs), typed, told), width, glyphs.ascii)


def _typed(text: str, kind: Kind) -> object:
    """A number where the text is one; what it must be, the declaration says."""
    if kind is Kind.TEXT:
        return text
    try:
        return int(text) if kind is Kind.INTEGER else float(text)
    except ValueError:
        return text
