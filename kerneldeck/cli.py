"""The command line, built from the catalogue: one verb an operation, plus `call` for any of them by id."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.errors import ArgumentFault, KerneldeckError
from core.operations.catalogue import OPERATIONS
from core.operations.declaration import Argument, Kind, Operation
from kerneldeck import __version__

if TYPE_CHECKING:
    from core.operations.declaration import Answer

PROGRAM = "kerneldeck"
COMPLETE_VARIABLE = "_KERNELDECK_COMPLETE"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = (
    "Exit codes: 0 done, 1 the work failed or regressed, 2 usage or configuration, 3 target or workspace "
    "not available, try again, 4 time-out, 5 could not tell, 130 interrupted."
)


def run(arguments: Sequence[str]) -> int:
    """Carry a command line out; every fault is a sentence on stderr (with --json an object on stdout)."""
    as_json = "--json" in arguments or arguments[:1] == ["call"]
    try:
        outcome = group().main(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as stopped:
        return stopped.exit_code
    except click.ClickException as error:
        return _say(as_json, "usage", error.format_message(), _usage_hint(error), 2)
    except KerneldeckError as error:
        return _say(as_json, error.code, error.sentence, error.hint, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say(as_json, "cancelled", "interrupted; what had finished is in the history", "", 130)
    except BrokenPipeError:
        sys.stdout = None  # the reader has gone; nothing more can be said to it
        return 0
    except Exception as error:
        return _say(as_json, "internal", *_internal(error), 1)


def _say(as_json: bool, code: str, sentence: str, hint: str, exit_code: int) -> int:
    if as_json:
        fault = {"code": code, "sentence": sentence, "hint": hint, "exit_code": exit_code}
        print(json.dumps({"error": fault}))
    else:
        print(f"{PROGRAM}: {sentence}", file=sys.stderr)
        if hint:
            print(f"  {hint}", file=sys.stderr)
    return exit_code


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"see: {context.command_path} --help" if context else f"see: {PROGRAM} --help"


def _internal(error: Exception) -> tuple[str, str]:
    """A fault of ours: its trace goes to a file, never to the screen."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="kerneldeck-fault-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    return f"internal fault: {type(error).__name__}: {error}", f"please report it with {file.name}"


def group() -> click.Group:
    """The whole command line."""
    root = click.Group(
        PROGRAM, help="Tune a kernel: run, sweep, verify, and never lose the best.", epilog=EPILOG,
        context_settings=CONTEXT,
    )  # fmt: skip
    root = click.version_option(__version__, prog_name=PROGRAM)(root)
    for operation in OPERATIONS:
        parent = root
        for word in operation.verb[:-1]:
            parent = _subgroup(parent, word)
        parent.add_command(_verb(operation))
    root.add_command(_call())
    root.add_command(_completion())
    return root


def _subgroup(parent: click.Group, word: str) -> click.Group:
    found = parent.commands.get(word)
    if isinstance(found, click.Group):
        return found
    made = click.Group(word, help=f"Verbs of {word}.", context_settings=CONTEXT)
    parent.add_command(made)
    return made


def _verb(operation: Operation) -> click.Command:
    parameters: list[click.Parameter] = [_parameter(argument) for argument in operation.arguments]
    parameters += _common(operation)

    def carry_out(**given: Any) -> int:
        options: dict[str, Any] = {name: given.pop(name) for name in _COMMON if name in given}
        return _carry_out(operation, _given(operation, given), options)

    return click.Command(
        operation.verb[-1], callback=carry_out, params=parameters, help=operation.doc,
        epilog=f"Operation {operation.id}.", context_settings=CONTEXT,
    )  # fmt: skip


_COMMON = ("as_json", "workspace", "wait")


def _common(operation: Operation) -> list[click.Parameter]:
    common: list[click.Parameter] = [
        click.Option(["--json", "as_json"], is_flag=True, help="print one JSON object"),
    ]
    if operation.needs_workspace:
        common.append(
            click.Option(["-C", "--workspace"], default=".", help="a folder in the workspace", metavar="DIR")
        )
    if operation.needs_workspace and not operation.read_only:
        common.append(
            click.Option(
                ["--wait"],
                type=float,
                default=0.0,
                metavar="SECONDS",
                help="wait so long for another command to finish",
            )
        )
    return common


_TYPES: dict[Kind, type] = {Kind.INTEGER: int, Kind.NUMBER: float}
_MANY = (Kind.TEXTS, Kind.OBJECTS, Kind.KNOBS)
_METAVARS = {Kind.OBJECT: "JSON", Kind.OBJECTS: "JSON", Kind.KNOBS: "NAME=V1,V2", Kind.SCALARS: "V1,V2"}


def _parameter(argument: Argument) -> click.Parameter:
    """The option (or positional) of an argument; what was not given stays None for `bind` to fill."""
    if argument.positional:
        return click.Argument([argument.name], required=False)
    flag = argument.flag or f"--{argument.name.replace('_', '-')}"
    if argument.kind is Kind.FLAG:
        names = [f"{flag}/--no-{flag[2:]}", argument.name]
        return click.Option(names, default=None, help=_help(argument))
    return click.Option(
        [flag, argument.name], type=_TYPES.get(argument.kind, str), default=None, help=_help(argument),
        multiple=argument.kind in _MANY, metavar=_METAVARS.get(argument.kind),
    )  # fmt: skip


def _help(argument: Argument) -> str:
    shown = argument.default
    if shown is None or shown == "" or shown == ():
        return argument.doc
    text = {True: "yes", False: "no"}.get(shown, shown) if isinstance(shown, bool) else shown
    return f"{argument.doc} [default: {text}]"


def _given(operation: Operation, given: dict[str, Any]) -> dict[str, object]:
    """What the command line said, in the forms that the declaration wants."""
    values: dict[str, object] = {}
    for name, value in given.items():
        argument = operation.argument(name)
        if argument is None or value is None or value == ():
            continue
        reader = _READERS.get(argument.kind)
        values[name] = reader(value) if reader else value
    return values


def _json_object(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ArgumentFault(f"{text!r} is no JSON: {error}", "quote it: '{\"num_warps\": 4}'") from None


def _scalars(text: str) -> list[object]:
    return [_scalar(part.strip()) for part in text.split(",") if part.strip()]


def _scalar(text: str) -> object:
    """A number or truth value where the text is one in JSON, else the word itself."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _knobs(texts: Sequence[str]) -> dict[str, list[object]]:
    knobs: dict[str, list[object]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not _scalars(values):
            raise ArgumentFault(f"{text!r} names no values", "write NAME=V1,V2")
        knobs[name.strip()] = _scalars(values)
    return knobs


_READERS: dict[Kind, Callable[[Any], object]] = {
    Kind.OBJECT: _json_object,
    Kind.OBJECTS: lambda texts: [_json_object(text) for text in texts],
    Kind.SCALARS: _scalars,
    Kind.KNOBS: _knobs,
    Kind.TEXTS: list,
}


def _carry_out(operation: Operation, given: dict[str, object], options: dict[str, Any]) -> int:
    import asyncio

    from kerneldeck.progress import Display
    from sessions.binding import call
    from sessions.session import Caller

    command = " ".join([PROGRAM, *operation.verb])
    caller = Caller("cli", command, options.get("wait", 0.0))
    start = Path(options.get("workspace") or ".")
    quiet = bool(options["as_json"])
    with Display(quiet=quiet) as display:
        answer = asyncio.run(call(operation, given, start, caller, display.tell))
    _print(operation, answer, quiet)
    return answer.exit_code


def _print(operation: Operation, answer: Answer, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"operation": operation.id, **answer.content, "exit_code": answer.exit_code}))
        return
    from kerneldeck.render import render

    render(operation, answer)


def _call() -> click.Command:
    """`call OPERATION_ID [JSON]`: what an agent calls, from a shell."""

    def carry_out(operation_id: str, arguments: str | None, workspace: str, wait: float) -> int:
        from sessions.binding import declared

        operation = declared(operation_id)
        text = sys.stdin.read() if arguments == "-" else arguments or "{}"
        given = _json_object(text)
        if not isinstance(given, dict):
            raise ArgumentFault("the arguments are no JSON object", 'write them as \'{"mode": "dev"}\'')
        return _carry_out(operation, given, {"as_json": True, "workspace": workspace, "wait": wait})

    return click.Command(
        "call", callback=carry_out, context_settings=CONTEXT,
        help="Call any operation by its id, with its arguments as a JSON object (- reads them from stdin).",
        epilog="Operations: " + ", ".join(operation.id for operation in OPERATIONS) + ".",
        params=[
            click.Argument(["operation_id"]),
            click.Argument(["arguments"], required=False),
            click.Option(["-C", "--workspace"], default=".", help="a folder in the workspace", metavar="DIR"),
            click.Option(["--wait"], type=float, default=0.0, help="wait so long for another command"),
        ],
    )  # fmt: skip


def _completion() -> click.Command:
    def show(shell: str) -> None:
        from click.shell_completion import get_completion_class

        completion = get_completion_class(shell)
        assert completion is not None
        print(completion(group(), {}, PROGRAM, COMPLETE_VARIABLE).source())

    return click.Command(
        "completion", callback=show, context_settings=CONTEXT,
        help='Print a shell\'s completion script: eval "$(kerneldeck completion bash)".',
        params=[click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))],
    )  # fmt: skip
