"""The commands of a workspace's modes, put together from the flags that its programs take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from core.workspace.config import Mode, Options
from core.workspace.infer.findings import Notes
from core.workspace.infer.flags import Flag, offered_flags
from core.workspace.infer.programs import INTERPRETERS
from core.workspace.infer.sources import Folder

_MODE_FLAGS = ("--mode", "mode", "--suite", "suite", "--split", "--profile", "--preset")
_CONFIG_FLAGS = ("--plan", "--config", "plan", "config", "--plan-file", "--config-file", "--kernel-config")
_WARMUP = ("--warmup", "--warm-up", "--warmups", "--n-warmup", "--num-warmup")
_REPEATS = (
    "--repeats",
    "--repeat",
    "--reps",
    "--rep",
    "--iters",
    "--iterations",
    "--n-repeats",
    "--num-repeats",
)
_QUICK = ("--quick", "--fast", "--smoke", "--dev", "--small")
_WHOLE = ("--final", "--full", "--all-cases")
_DECIDING = ("final", "full", "test", "large", "release", "verify")
_SCREENING = ("dev", "quick", "fast", "smoke", "small", "tiny", "debug", "train")
_SINGLE = "final"


@dataclass(frozen=True, slots=True)
class Program:
    """A benchmark or verifier: how to start it, and what it takes."""

    start: tuple[str, ...]
    flags: tuple[Flag, ...]

    def flag(self, *names: str) -> Flag | None:
        """The first of `names` that the program takes."""
        return next((flag for name in names for flag in self.flags if name in flag.names), None)

    def spelled(self, *names: str) -> str:
        """How the program spells the first of `names` that it takes with a value; empty for none."""
        flag = self.flag(*names)
        return next((name for name in names if flag and flag.takes_value and name in flag.names), "")


@dataclass(frozen=True, slots=True)
class Commands:
    """The modes in the benchmark's order, the deciding one, the one for a first run, and the extra flags."""

    modes: dict[str, Mode]
    decide: str
    first: str
    options: Options
    list_valid: tuple[str, ...] = ()


def program(folder: Folder, path: str) -> Program:
    """How to start the file at `path`, and its flags."""
    name = f"./{path}" if path.startswith("-") else path
    suffix = PurePosixPath(path).suffix
    if folder.is_python(path):
        start: tuple[str, ...] = ("python3", name)
    elif folder.executable(path) and suffix in ("", ".sh", ".bash"):
        start = (f"./{path}",)
    else:
        start = (INTERPRETERS.get(suffix, "bash"), name)
    return Program(start, offered_flags(folder, path))


def build_commands(folder: Folder, benchmark: str, verifier: str, config: str, notes: Notes) -> Commands:
    """The commands of every mode that the benchmark offers; one called `final` when it offers none."""
    runner = program(folder, benchmark)
    checker = program(folder, verifier) if verifier else None
    choices = _mode_arguments(runner, notes)
    decide = _preferred(_DECIDING, list(choices), list(choices)[-1])
    modes: dict[str, Mode] = {}
    for name, arguments in choices.items():
        check = _verifier_command(checker, name, decide, config) if checker else ()
        modes[name] = Mode(name, _command(runner, arguments, config), check)
        notes.found(f"mode {name}", " ".join(modes[name].benchmark), benchmark)
    _note_required(runner, benchmark, notes)
    first = _preferred(_SCREENING, list(choices), next((m for m in choices if m != decide), decide))
    listing = (*runner.start, "--list-valid") if runner.flag("--list-valid") else ()
    return Commands(modes, decide, first, _options(runner, checker, notes), listing)


def _mode_arguments(runner: Program, notes: Notes) -> dict[str, tuple[str, ...]]:
    flag = runner.flag(*_MODE_FLAGS)
    if flag and flag.choices:
        spelled = _spelled(flag)
        names = [name for name in flag.choices if name not in ("all", "both")]
        notes.found("modes", ", ".join(names), flag.place)
        return {name: (*spelled, name) for name in names}
    if flag:
        notes.open(
            f"{flag.place}: {flag.names[0]} takes a mode, but which ones was not found: add [modes.…] tables"
        )
    quick, whole = runner.flag(*_QUICK), runner.flag(*_WHOLE)
    if (quick and not quick.takes_value) or (whole and not whole.takes_value):
        notes.found("modes", "dev, final", (quick or whole).place)  # type: ignore[union-attr]
        return {"dev": quick.names[:1] if quick else (), _SINGLE: whole.names[:1] if whole else ()}
    return {_SINGLE: ()}


def _spelled(flag: Flag) -> tuple[str, ...]:
    return () if flag.positional else (next((n for n in flag.names if n.startswith("--")), flag.names[0]),)


def _command(runner: Program, mode_arguments: tuple[str, ...], config: str) -> tuple[str, ...]:
    json_flag = runner.flag("--json")
    json_arguments = ("--json",) if json_flag and not json_flag.takes_value else ()
    flag = runner.flag(*_CONFIG_FLAGS)
    config_arguments = (*_spelled(flag), config) if flag and flag.required and config else ()
    return (*runner.start, *json_arguments, *mode_arguments, *config_arguments)


def _verifier_command(checker: Program, mode: str, decide: str, config: str) -> tuple[str, ...]:
    """The verifier's command in `mode`; a verifier without modes belongs to the deciding one."""
    flag = checker.flag(*_MODE_FLAGS)
    if flag and (mode in flag.choices or not flag.choices):
        return _command(checker, (*_spelled(flag), mode), config)
    return _command(checker, (), config) if mode == decide else ()


def _preferred(wanted: tuple[str, ...], offered: list[str], otherwise: str) -> str:
    return next((name for name in wanted if name in offered), otherwise)


def _options(runner: Program, checker: Program | None, notes: Notes) -> Options:
    """Flags for warm-up and repeats, where the benchmark and the verifier both take them."""
    spelled = {}
    for option, names in (("warmup", _WARMUP), ("repeats", _REPEATS)):
        name = runner.spelled(*names)
        spelled[option] = name if checker is None or checker.flag(name) else ""
        if name:
            flag = runner.flag(name)
            note = name if spelled[option] else f"{name} (left out: the verifier does not take it)"
            notes.found(f"{option} flag", note, flag.place if flag else "")
    return Options(**spelled)


def _note_required(runner: Program, benchmark: str, notes: Notes) -> None:
    known = {*_MODE_FLAGS, *_CONFIG_FLAGS}
    for flag in runner.flags:
        if flag.required and not known & set(flag.names):
            notes.open(
                f"{flag.place}: {benchmark} requires {flag.names[0]}: add it to the commands under [modes.…]"
            )
