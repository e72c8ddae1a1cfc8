"""Which flags a program takes, read from its argparse or click calls, or from its text."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from core.workspace.infer.literals import UNKNOWN, Literals, name_of_call, scalars
from core.workspace.infer.sources import Folder, Source

_SWITCHES = {"store_true", "store_false", "store_const", "count", "version", "help", "append_const"}
_SHELL_CASE = re.compile(r"^\s*\(?\s*((?:--?[\w-]+\s*\|\s*)*--[\w-]+)(?:=\*)?\)", re.MULTILINE)
_SHELL_TEST = re.compile(r"=\s*[\"']?(--[\w-]+)")
_SHELL_MODE = re.compile(r"^\s*(?:local\s+)?mode=[\"']?\$\{?1(?::-(\w+))?", re.MULTILINE | re.IGNORECASE)
_QUOTED_FLAG = re.compile(r"[\"'](--[a-z][\w-]*)[\"']")
_MODE_WORDS = ("dev", "quick", "smoke", "final", "full")


@dataclass(frozen=True, slots=True)
class Flag:
    """One option (`names` begin with a dash) or positional argument of a program."""

    names: tuple[str, ...]
    place: str
    takes_value: bool = True
    choices: tuple[str, ...] = ()
    default: str = ""
    required: bool = False

    @property
    def positional(self) -> bool:
        return not self.names[0].startswith("-")


def offered_flags(folder: Folder, path: str) -> tuple[Flag, ...]:
    """The flags of a program: its own; else those of the module it hands its arguments to."""
    source = folder.source(path)
    if source.tree is None:
        return _text_flags(folder, source)
    own = _declared(folder, path)
    imported = folder.closure([path], lambda other: True)[1:]
    return own or tuple(flag for other in imported for flag in _declared(folder, other)) or _quoted(source)


def _declared(folder: Folder, path: str) -> tuple[Flag, ...]:
    source = folder.source(path)
    if source.tree is None:
        return ()
    literals = folder.literals(path)
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    made = [_flag(call, source, literals) for call in sorted(calls, key=lambda call: call.lineno)]
    return tuple(flag for flag in made if flag)


def _flag(call: ast.Call, source: Source, literals: Literals) -> Flag | None:
    if name_of_call(call) not in ("add_argument", "option", "argument"):
        return None
    names = tuple(
        node.value for node in call.args if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    if not names:
        return None
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    known = {name: literals.value(node) for name, node in keywords.items()}
    switch = known.get("action") in _SWITCHES or known.get("is_flag") is True
    switch = switch or name_of_action(keywords.get("action")) == "BooleanOptionalAction"
    default = known.get("default", "")
    positional = not names[0].startswith("-")
    return Flag(
        names,
        source.place(call),
        takes_value=not switch,
        choices=_choices(known.get("choices"), keywords.get("type"), literals),
        default=str(default) if default not in (None, UNKNOWN) else "",
        required=known.get("required") is True or (positional and known.get("nargs") not in ("?", "*")),
    )


def name_of_action(node: ast.expr | None) -> str:
    """The class that an `action=` names; empty for words such as store_true."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _choices(value: object, kind: ast.expr | None, literals: Literals) -> tuple[str, ...]:
    """`choices=`, or those of click's `type=click.Choice([...])`."""
    if isinstance(kind, ast.Call) and name_of_call(kind) == "Choice" and kind.args:
        value = literals.value(kind.args[0])
    return tuple(str(item) for item in scalars(value))


def _quoted(source: Source) -> tuple[Flag, ...]:
    """Flags of a program that reads sys.argv itself: those quoted in its text, and the modes likewise."""
    names = dict.fromkeys(_QUOTED_FLAG.findall(source.text))
    modes = tuple(word for word in _MODE_WORDS if re.search(rf"[\"']{word}[\"']", source.text))
    return tuple(_bare(source, name, modes) for name in names)


def _text_flags(folder: Folder, source: Source) -> tuple[Flag, ...]:
    """Flags of a shell script: its own `case` patterns and tests; with "$@" those of the program it calls."""
    if source.path.endswith(".py"):
        return _quoted(source)
    patterns = [name.strip() for names in _SHELL_CASE.findall(source.text) for name in names.split("|")]
    names = dict.fromkeys([*patterns, *_SHELL_TEST.findall(source.text)])
    modes = tuple(word for word in _MODE_WORDS if re.search(rf"\b{word}\b", source.text))
    flags = [_bare(source, name, modes) for name in names if name.startswith("--")]
    first = _SHELL_MODE.search(source.text)
    if first and not flags:
        flags.append(
            Flag(("mode",), _line(source, first.group(0)), choices=modes, default=first.group(1) or "")
        )
    if '"$@"' in source.text:
        called = [path for path in folder.mentions(source.path) if folder.source(path).tree is not None]
        flags += [flag for path in called for flag in _declared(folder, path)]
    return tuple(flags)


def _bare(source: Source, name: str, modes: tuple[str, ...]) -> Flag:
    valued = name in ("--mode", "--plan", "--config", "--trace", "--warmup", "--repeats")
    return Flag((name,), _line(source, name), valued, modes if name == "--mode" else ())


def _line(source: Source, text: str) -> str:
    return f"{source.path}:{source.text.count(chr(10), 0, max(0, source.text.find(text))) + 1}"
