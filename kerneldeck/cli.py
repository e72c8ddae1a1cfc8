"""The command line, built from the catalogue: one verb an operation, plus `call` for any of them by id."""

from __future__ import annotations

import errno
import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.errors import ArgumentFault, KerneldeckError
from core.operations.catalogue import OPERATIONS
from core.operations.declaration import Argument, Kind, Operation
from kerneldeck import __version__, streams
from kerneldeck.app_command import app_command, with_app
from kerneldeck.arguments import given_values, json_object
from kerneldeck.host_commands import host_commands
from kerneldeck.text import printable, strict_json

if TYPE_CHECKING:
    from core.operations.declaration import Answer

PROGRAM = "kerneldeck"
LONGEST_WAIT_S = 7 * 86_400.0
COMPLETE_VARIABLE = "_KERNELDECK_COMPLETE"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
EPILOG = (
    "Exit codes: 0 done, 1 the work failed or regressed, 2 usage or configuration, 3 target or workspace "
    "not available, try again, 4 time-out, 5 could not tell, 130 interrupted (143 by SIGTERM, 129 by SIGHUP)."
)


def run(arguments: Sequence[str]) -> int:
    """Carry a command line out; every fault is a sentence on stderr (with --json an object on stdout)."""
    streams.settle()
    as_json = "--json" in arguments or arguments[:1] == ["call"]
    try:
        outcome = group().main(args=with_app(arguments), prog_name=PROGRAM, standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.Exit as stopped:
        return stopped.exit_code
    except click.ClickException as error:
        return _say(as_json, "usage", error.format_message(), _usage_hint(error), 2)
    except KerneldeckError as error:
        _tell_details(error)
        return _say(as_json, error.code, error.sentence, error.hint, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _say(as_json, "cancelled", "interrupted; what had finished is in the history", "", 130)
    except OSError as error:
        return _say(as_json, "system", *_refused(error))
    except Exception as error:
        return _say(as_json, "internal", *_internal(error), 1)


def _say(as_json: bool, code: str, sentence: str, hint: str, exit_code: int) -> int:
    """Tell a fault, if anybody still listens; the exit code tells it in any case."""
    fault = {"code": code, "sentence": sentence, "hint": hint, "exit_code": exit_code}
    text = f"{PROGRAM}: {sentence}" + (f"\n  {hint}" if hint else "")
    stream = sys.stdout if as_json else sys.stderr
    try:
        print(json.dumps({"error": fault}) if as_json else text, file=stream, flush=True)
    except OSError:
        streams.silence(stream)
    return exit_code


def _tell_details(error: KerneldeckError) -> None:
    """Addresses, user and file names behind a fault: for the user's terminal alone."""
    details = getattr(error, "details", "")
    if details and sys.stderr.isatty():
        print(printable(details), file=sys.stderr)


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"see: {context.command_path} --help" if context else f"see: {PROGRAM} --help"


def _refused(error: OSError) -> tuple[str, str, int]:
    """What the system would not do: try again when it is short of something, else look at the name."""
    short = error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
    about = f"{str(error.filename)[:200]}: " if error.filename else ""
    hint = "raise the limit (ulimit -a), then try again" if short else "look at that name and its folder"
    return f"{about}{error.strerror or error}", hint, 3 if short else 2


def _internal(error: Exception) -> tuple[str, str]:
    """A fault of ours: its trace goes to a file, never to the screen."""
    from sessions.fault_file import internal_sentence, keep_trace

    return internal_sentence(error), keep_trace(error)


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
    root.add_command(app_command(_workspace_option(), CONTEXT))
    for command in host_commands(_workspace_option()):
        root.add_command(command)
    return root


_GROUPS = {
    "sweep": "Run many candidates, ask the gate about the leaders, and steer that while it runs.",
    "target": "Describe the machines on which trials run, and say which one is used.",
}


def _subgroup(parent: click.Group, word: str) -> click.Group:
    found = parent.commands.get(word)
    if isinstance(found, click.Group):
        return found
    made = click.Group(word, help=_GROUPS[word], context_settings=CONTEXT, no_args_is_help=False)
    parent.add_command(made)
    return made


def _verb(operation: Operation) -> click.Command:
    parameters: list[click.Parameter] = [_parameter(argument) for argument in operation.arguments]
    parameters += _common(operation)

    def carry_out(**given: Any) -> int:
        options: dict[str, Any] = {name: given.pop(name) for name in _COMMON if name in given}
        return _carry_out(operation, given_values(operation, given), options)

    return click.Command(
        operation.verb[-1], callback=carry_out, params=parameters, help=operation.doc,
        short_help=_short(operation.doc), epilog=f"Operation {operation.id}.", context_settings=CONTEXT,
    )  # fmt: skip


def _short(doc: str) -> str:
    """The head of a documentation line, for the list of commands."""
    return re.split(r"[:;,.] |\.$", doc, maxsplit=1)[0] + "."


_COMMON = ("as_json", "workspace", "wait", "detach")


def _common(operation: Operation) -> list[click.Parameter]:
    common: list[click.Parameter] = [
        click.Option(["--json", "as_json"], is_flag=True, help="print one JSON object"),
    ]
    if operation.needs_workspace:
        common.append(_workspace_option())
    if operation.needs_workspace and not operation.read_only and not operation.control:
        common.append(_wait_option())
    if operation.long:
        common.append(_detach_option())
    return common


def _workspace_option() -> click.Option:
    return click.Option(["-C", "--workspace"], default=".", help="a folder in the workspace", metavar="DIR")


def _detach_option() -> click.Option:
    return click.Option(
        ["--detach"], is_flag=True, help="hand it to the workspace's host and leave; see: kerneldeck attach"
    )


def _wait_option() -> click.Option:
    return click.Option(
        ["--wait"], type=click.FloatRange(0, LONGEST_WAIT_S), default=0.0, metavar="SECONDS",
        show_default=False, help="wait so long for another command to finish",
    )  # fmt: skip


_TYPES: dict[Kind, type] = {Kind.INTEGER: int, Kind.NUMBER: float}
_MANY = (Kind.TEXTS, Kind.OBJECTS, Kind.KNOBS)
_METAVARS = {Kind.OBJECT: "JSON", Kind.OBJECTS: "JSON", Kind.KNOBS: "NAME=V1,V2", Kind.SCALARS: "V1,V2"}


def _parameter(argument: Argument) -> click.Parameter:
    """The option (or positional) of an argument; what was not given stays None for `bind` to fill."""
    if argument.positional:
        return click.Argument([argument.name], required=False, type=_TYPES.get(argument.kind, str))
    flag = argument.flag or f"--{argument.name.replace('_', '-')}"
    if argument.kind is Kind.FLAG:
        names = [f"{flag}/--no-{flag[2:]}", argument.name]
        return click.Option(names, default=None, help=_help(argument))
    kind: Any = click.Choice(argument.choices) if argument.choices else _TYPES.get(argument.kind, str)
    return click.Option(
        [flag, argument.name], type=kind, default=None, help=_help(argument),
        multiple=argument.kind in _MANY, metavar=_METAVARS.get(argument.kind),
    )  # fmt: skip


def _help(argument: Argument) -> str:
    shown = argument.default
    if shown is None or shown == "" or shown == ():
        return argument.doc
    text = {True: "yes", False: "no"}.get(shown, shown) if isinstance(shown, bool) else shown
    return f"{argument.doc} [default: {text}]"


def _carry_out(operation: Operation, given: dict[str, object], options: dict[str, Any]) -> int:
    from kerneldeck import stopping
    from kerneldeck.hosting import Ask, carried_out
    from kerneldeck.progress import Display

    quiet = bool(options["as_json"])
    ask = Ask(
        operation, given, Path(options.get("workspace") or "."), " ".join([PROGRAM, *operation.verb]),
        options.get("wait", 0.0), quiet, bool(options.get("detach")),
    )  # fmt: skip
    with Display(quiet=quiet) as display:
        answer = stopping.run(carried_out(ask, display.tell))
    with streams.answering():
        _print(operation, answer, quiet)
    return answer.exit_code


def _print(operation: Operation, answer: Answer, as_json: bool) -> None:
    if as_json:
        print(strict_json({"operation": operation.id, **answer.content, "exit_code": answer.exit_code}))
        return
    from kerneldeck.render import render, render_detached

    (render_detached if "receipt" in answer.content else partial(render, operation))(answer)


def _call() -> click.Command:
    """`call OPERATION_ID [JSON]`: what an agent calls, from a shell."""

    def carry_out(operation_id: str, arguments: str | None, workspace: str, wait: float) -> int:
        from sessions.binding import declared

        operation = declared(operation_id)
        if operation.people_only:
            verb = " ".join([PROGRAM, *operation.verb])
            raise ArgumentFault(f"{operation_id} is for people, not for calls", f"on a terminal: {verb}")
        given = json_object(_from_stdin() if arguments == "-" else arguments or "{}")
        return _carry_out(operation, given, {"as_json": True, "workspace": workspace, "wait": wait})

    return click.Command(
        "call", callback=carry_out, context_settings=CONTEXT,
        help="Call any operation by its id, with its arguments as a JSON object (- reads them from stdin).",
        short_help="Call any operation by its id.",
        epilog="Operations: " + ", ".join(one.id for one in OPERATIONS if not one.people_only) + ".",
        params=[
            click.Argument(["operation_id"]),
            click.Argument(["arguments"], required=False),
            _workspace_option(),
            _wait_option(),
        ],
    )  # fmt: skip


def _from_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ArgumentFault(f"the arguments on standard input are no UTF-8 (byte {error.start})") from None


def _completion() -> click.Command:
    def show(shell: str) -> None:
        from click.shell_completion import get_completion_class

        completion = get_completion_class(shell)
        assert completion is not None
        with streams.answering():
            print(completion(group(), {}, PROGRAM, COMPLETE_VARIABLE).source())

    return click.Command(
        "completion", callback=show, context_settings=CONTEXT,
        help='Print a shell\'s completion script: eval "$(kerneldeck completion bash)".',
        short_help="Print a shell's completion script.",
        params=[click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))],
    )  # fmt: skip
