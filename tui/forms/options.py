"""The form of an operation's options, made from its declaration: run, verify."""

from __future__ import annotations

from collections.abc import Sequence

from core.operations.catalogue import RUN, VERIFY
from core.operations.declaration import Argument, Kind, Operation
from core.words import JsonObject
from tui.forms.fields import ChoiceField, Field, FlagField, TypedField
from tui.forms.form import Asked, FormScreen, command_line, command_text
from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, Lines
from tui.paint import Paint

RUN_OPTIONS = ("mode", "verifier", "warmup", "repeats", "timeout_seconds", "workspace_tag")
VERIFY_OPTIONS = ("mode", "verifier", "restore_on_regression", "max_score", "warmup", "repeats", "seed")


def field_of(operation: Operation, argument: Argument, modes: Sequence[str]) -> Field:
    if argument.name == "mode" and modes:
        return ChoiceField("mode", modes, str(argument.default))
    if argument.choices:
        return ChoiceField(argument.name, argument.choices, str(argument.default))
    if argument.kind is Kind.FLAG:
        return FlagField(argument.name, argument.doc, bool(argument.default))
    return TypedField(operation, argument)


def fields_of(operation: Operation, names: Sequence[str], modes: Sequence[str]) -> list[Field]:
    found = [operation.argument(name) for name in names]
    return [field_of(operation, argument, modes) for argument in found if argument is not None]


def given(operation: Operation, fields: Sequence[Field]) -> JsonObject:
    """The arguments that are not at their defaults."""
    values = {field.name: field.value for field in fields}
    return {
        name: value
        for name, value in values.items()
        if value is not None and (found := operation.argument(name)) is not None and value != found.default
    }


def command_words(operation: Operation, arguments: JsonObject) -> list[str]:
    """The command line of a call."""
    words = ["kerneldeck", *operation.verb]
    for name, value in arguments.items():
        argument = operation.argument(name)
        flag = (argument.flag if argument else "") or f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            words += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    return words


class OptionsForm(FormScreen):
    """Some options of one operation."""

    def __init__(
        self,
        operation: Operation,
        names: Sequence[str],
        modes: Sequence[str],
        paint: Paint,
        glyphs: Glyphs = UNICODE,
        title: str = "",
    ) -> None:
        super().__init__(title or operation.doc, fields_of(operation, names, modes), paint, glyphs)
        self.operation = operation

    def asked(self) -> Asked | None:
        if any(field.fault for field in self.fields):
            return None
        arguments = given(self.operation, self.fields)
        return Asked(self.operation.id, arguments, command_text(command_words(self.operation, arguments)))

    def told_lines(self) -> Lines:
        asked = self.asked()
        told: list[Line] = [] if asked is None else [command_line(asked.command)]
        return tuple(told)


def run_form(modes: Sequence[str], paint: Paint, glyphs: Glyphs = UNICODE) -> OptionsForm:
    """The options of `kerneldeck run`."""
    return OptionsForm(RUN, RUN_OPTIONS, modes, paint, glyphs, "Run what the workspace holds, once")


def verify_form(modes: Sequence[str], paint: Paint, glyphs: Glyphs = UNICODE) -> OptionsForm:
    """The options of `kerneldeck verify`."""
    title = "Verify what the workspace holds: keep it, restore the best, or leave it"
    return OptionsForm(VERIFY, VERIFY_OPTIONS, modes, paint, glyphs, title)
