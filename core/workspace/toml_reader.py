"""Reading `kerneldeck.toml`: every fault with its line, and what to write instead."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from core.errors import ConfigFault
from core.words import JsonObject
from core.workspace.config import (
    CONFIG_NAME,
    DEFAULT_TIMEOUT_S,
    SCHEMA,
    Extras,
    Files,
    Gate,
    Knob,
    Mode,
    Objective,
    Options,
    Workspace,
    WorkspaceConfig,
)
from core.workspace.constraints import parse as parse_constraint
from core.workspace.toml_table import Source, Table, is_finite, key_text, shown

_PLACE_IN_MESSAGE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)

AGGREGATES = ("sum", "geomean", "mean", "max", "min", "single")


def read_workspace(root: Path) -> Workspace:
    """The workspace at `root`; ConfigFault when there is none or its toml is wrong."""
    path = root / CONFIG_NAME
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigFault(
            f"{root} is no workspace: it has no {CONFIG_NAME}",
            "make one with: kerneldeck init " + str(root),
        ) from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigFault(f"{path}:{line}: not UTF-8", "save the file as UTF-8") from None
    except OSError as error:
        raise ConfigFault(f"{path} cannot be read: {error.strerror}") from None
    return Workspace(root, parse_toml(text, str(path)))


def parse_toml(text: str, place: str = CONFIG_NAME) -> WorkspaceConfig:
    """The configuration that `text` holds; ConfigFault with `place:line`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(str(error), text, place) from None
    except (ValueError, RecursionError) as error:  # more digits, or deeper, than Python reads
        raise ConfigFault(f"{place}: cannot be read: {error}") from None
    return _Reader(document, Source(text, place)).config()


def _broken(message: str, text: str, place: str) -> ConfigFault:
    """The parser's message with its line where all our messages have it."""
    hint = "the file is not valid TOML at that place"
    found = _PLACE_IN_MESSAGE.fullmatch(message)
    if found is None:
        return ConfigFault(f"{place}:{len(text.splitlines())}: {message}", hint)
    return ConfigFault(f"{place}:{found[2]}: {found[1]}, at column {found[3]}", hint)


class _Reader:
    """Walks one document; every refusal knows the key it is about."""

    def __init__(self, document: JsonObject, source: Source) -> None:
        self.document = document
        self.source = source

    def config(self) -> WorkspaceConfig:
        top = Table(self.source, (), self.document)
        top.only("schema", "name", "constraints", "state_dir", "objective", "files", "config", "modes",
                 "knobs", "options", "gate", "extras")  # fmt: skip
        self._schema(top)
        modes = self._modes(top.table("modes", required=True))
        config = WorkspaceConfig(
            name=top.text("name", required=True),
            objective=self._objective(top.table("objective", required=True), modes),
            files=self._files(top.table("files", required=True)),
            modes=modes,
            config_file=self._config_file(top.table("config")),
            knobs=self._knobs(top.table("knobs")),
            constraints=top.texts("constraints"),
            options=self._options(top.table("options")),
            gate=self._gate(top.table("gate")),
            extras=self._extras(top.table("extras")),
            state_dir=top.text("state_dir"),
        )
        self._cross_check(config)
        return config

    def _schema(self, top: Table) -> None:
        schema = top.number("schema", SCHEMA)
        if schema != SCHEMA:
            self.source.refuse(
                ("schema",), f"{schema:g} is not a schema this version reads", f"write: schema = {SCHEMA}"
            )

    def _objective(self, table: Table, modes: Mapping[str, Mode]) -> Objective:
        table.only(
            "metric", "direction", "decide", "unit", "aggregate", "statistic", "deterministic", "target"
        )
        decide = table.text("decide", "final" if "final" in modes else next(iter(modes)))
        if decide not in modes:
            self.source.refuse(
                ("objective", "decide"), f"there is no mode {decide!r}", f"modes: {', '.join(modes)}"
            )
        target = table.number("target", None)
        return Objective(
            metric=table.text("metric", required=True),
            direction=table.choice("direction", ("lower", "higher")),
            decide=decide,
            unit=table.text("unit"),
            aggregate=table.choice("aggregate", AGGREGATES, "single"),
            statistic=table.choice("statistic", ("median", "minimum")),
            deterministic=table.flag("deterministic"),
            target=target,
        )

    def _files(self, table: Table) -> Files:
        table.only("mutable", "protected", "needed")
        mutable, protected = self._names(table, "mutable"), self._names(table, "protected")
        if not mutable:
            self.source.refuse(
                ("files", "mutable"), "no file may change", "name at least the kernel or its config"
            )
        if CONFIG_NAME in mutable:
            why = f"{CONFIG_NAME} says what may change, and may not change itself"
            table.refuse("mutable", why, "take it out", CONFIG_NAME)
        state = next((name for name in (*mutable, *protected) if name.split("/")[0] == ".kerneldeck"), "")
        if state:
            table.refuse("mutable", f"{state} is Kerneldeck's own", "take it out", state)
        both = sorted(set(mutable) & set(protected))
        if both:
            why = f"{both[0]} is mutable and protected"
            table.refuse("protected", why, "leave it in one list", both[0])
        return Files(mutable, protected, table.texts("needed"))

    def _names(self, table: Table, key: str) -> tuple[str, ...]:
        names = [self._inside((*table.path, key), name) for name in table.texts(key)]
        return tuple(dict.fromkeys(names))

    def _inside(self, path: tuple[str, ...], name: str) -> str:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or not parts.parts:
            hint = "name files relative to the workspace's folder"
            self.source.refuse(path, f"{name!r} leaves the workspace", hint, name)
        return str(parts)

    def _config_file(self, table: Table) -> str:
        table.only("file")
        name = table.text("file")
        return self._inside(("config", "file"), name) if name else ""

    def _modes(self, table: Table) -> dict[str, Mode]:
        modes = {name: self._mode(table.table(name), name) for name in table.keys}
        if not modes:
            self.source.refuse(
                ("modes",), "no mode is declared", "add [modes.final] with a benchmark command"
            )
        return modes

    def _mode(self, table: Table, name: str) -> Mode:
        table.only("benchmark", "verifier", "timeout_s", "cpu_s")
        benchmark, verifier = table.texts("benchmark"), table.texts("verifier")
        hint = 'write: benchmark = ["python3", "benchmark.py"]'
        if not benchmark:
            self.source.refuse(("modes", name), "has no benchmark command", hint)
        for key, command in (("benchmark", benchmark), ("verifier", verifier)):
            if command and not command[0]:
                self.source.refuse(("modes", name, key), "names no program", hint)
        timeout_s = table.number("timeout_s", DEFAULT_TIMEOUT_S)
        if timeout_s is None or timeout_s <= 0:
            self.source.refuse(("modes", name, "timeout_s"), "must be above 0 seconds")
        cpu_s = table.number("cpu_s", None)
        if cpu_s is not None and cpu_s < 1:
            self.source.refuse(("modes", name, "cpu_s"), "must be at least 1 second of CPU time")
        return Mode(name, benchmark, verifier, timeout_s, cpu_s)

    def _knobs(self, table: Table) -> tuple[Knob, ...]:
        return tuple(self._knob(name, table.raw[name]) for name in table.keys)

    def _knob(self, name: str, value: Any) -> Knob:
        path = ("knobs", name)
        affects = ""
        if isinstance(value, dict):
            inner = Table(self.source, path, value)
            inner.only("values", "affects", hint=f'write a dotted knob in quotes: "{name}.…" = [1, 2]')
            affects, value = inner.text("affects"), value.get("values")
        if not isinstance(value, list) or not value:
            self.source.refuse(path, "has no list of values", f"write: {key_text(name)} = [1, 2, 4]")
        for item in value:
            if not isinstance(item, bool | str) and not is_finite(item):
                why = f"{shown(item)} is not a finite number, a word or a truth value"
                self.source.refuse(path, why, item=str(item))
        if len({(isinstance(item, bool), item) for item in value}) < len(value):
            self.source.refuse(path, "names a value twice")
        return Knob(name, tuple(value), affects)

    def _options(self, table: Table) -> Options:
        table.only("warmup", "repeats")
        return Options(table.text("warmup"), table.text("repeats"))

    def _gate(self, table: Table) -> Gate:
        table.only("min_gain", "case_gate")
        usual = Gate()
        return Gate(
            self._fraction(table, "min_gain", usual.min_gain),
            self._fraction(table, "case_gate", usual.case_gate),
        )

    def _fraction(self, table: Table, key: str, default: float) -> float:
        value = table.number(key, default)
        if value is None or not 0 <= value < 1:
            self.source.refuse(
                ("gate", key), f"{value!r} is not a fraction from 0 up to 1", f"write: {key} = 0.01"
            )
        return value

    def _extras(self, table: Table) -> Extras:
        table.only("timing", "batch", "samples", "prefork")
        return Extras(
            table.text("timing"), table.text("batch"), table.flag("samples"), table.texts("prefork")
        )

    def _cross_check(self, config: WorkspaceConfig) -> None:
        names = frozenset(knob.name for knob in config.knobs)
        if config.knobs and not config.config_file:
            self.source.refuse(
                ("knobs",), "have no file to live in", 'add: [config] with file = "kernel_config.json"'
            )
        if config.config_file and config.config_file not in config.files.mutable:
            self.source.refuse(
                ("config", "file"), f"{config.config_file} is not mutable", "add it to files.mutable"
            )
        for text in config.constraints:
            try:
                parse_constraint(text, names)
            except ConfigFault as fault:
                self.source.refuse(("constraints",), fault.sentence, fault.hint, text)
