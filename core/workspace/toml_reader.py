"""Reading `kerneldeck.toml`: every fault with its line, and what to write instead."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

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
from core.workspace.toml_positions import line_of

AGGREGATES = ("sum", "geomean", "mean", "max", "min", "single")


def read_workspace(root: Path) -> Workspace:
    """The workspace at `root`; ConfigFault when there is none or its toml is wrong."""
    path = root / CONFIG_NAME
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigFault(
            f"{root} is no workspace: it has no {CONFIG_NAME}",
            "make one with: kerneldeck init " + str(root),
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigFault(f"{path}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise ConfigFault(f"{path} cannot be read: {error.strerror}") from None
    return Workspace(root, parse_toml(text, str(path)))


def parse_toml(text: str, place: str = CONFIG_NAME) -> WorkspaceConfig:
    """The configuration that `text` holds; ConfigFault with `place:line`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigFault(f"{place}: {error}", "the file is not valid TOML at that place") from None
    return _Reader(document, text, place).config()


class _Reader:
    """Walks one document; every refusal knows the key it is about."""

    def __init__(self, document: JsonObject, text: str, place: str) -> None:
        self.document = document
        self.text = text
        self.place = place

    def refuse(self, path: tuple[str, ...], why: str, hint: str = "") -> NoReturn:
        line = line_of(self.text, path)
        where = f"{self.place}:{line}" if line else self.place
        raise ConfigFault(f"{where}: {'.'.join(path)}: {why}", hint)

    def config(self) -> WorkspaceConfig:
        top = _Table(self, (), self.document)
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

    def _schema(self, top: _Table) -> None:
        schema = top.number("schema", SCHEMA)
        if schema != SCHEMA:
            self.refuse(
                ("schema",), f"{schema:g} is not a schema this version reads", f"write: schema = {SCHEMA}"
            )

    def _objective(self, table: _Table, modes: Mapping[str, Mode]) -> Objective:
        table.only(
            "metric", "direction", "decide", "unit", "aggregate", "statistic", "deterministic", "target"
        )
        decide = table.text("decide", "final" if "final" in modes else next(iter(modes)))
        if decide not in modes:
            self.refuse(("objective", "decide"), f"there is no mode {decide!r}", f"modes: {', '.join(modes)}")
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

    def _files(self, table: _Table) -> Files:
        table.only("mutable", "protected", "needed")
        mutable = tuple(self._inside(("files", "mutable"), name) for name in table.texts("mutable"))
        protected = tuple(self._inside(("files", "protected"), name) for name in table.texts("protected"))
        if not mutable:
            self.refuse(("files", "mutable"), "no file may change", "name at least the kernel or its config")
        both = sorted(set(mutable) & set(protected))
        if both:
            self.refuse(("files", "protected"), f"{both[0]} is mutable and protected", "leave it in one list")
        return Files(mutable, protected, table.texts("needed"))

    def _inside(self, path: tuple[str, ...], name: str) -> str:
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or not parts.parts:
            self.refuse(
                path, f"{name!r} leaves the workspace", "name files relative to the workspace's folder"
            )
        return str(parts)

    def _config_file(self, table: _Table) -> str:
        table.only("file")
        name = table.text("file")
        return self._inside(("config", "file"), name) if name else ""

    def _modes(self, table: _Table) -> dict[str, Mode]:
        modes = {name: self._mode(table.table(name), name) for name in table.keys}
        if not modes:
            self.refuse(("modes",), "no mode is declared", "add [modes.final] with a benchmark command")
        return modes

    def _mode(self, table: _Table, name: str) -> Mode:
        table.only("benchmark", "verifier", "timeout_s")
        benchmark = table.texts("benchmark")
        if not benchmark:
            self.refuse(
                ("modes", name), "has no benchmark command", 'write: benchmark = ["python3", "benchmark.py"]'
            )
        timeout_s = table.number("timeout_s", DEFAULT_TIMEOUT_S)
        if timeout_s is None or timeout_s <= 0:
            self.refuse(("modes", name, "timeout_s"), "must be above 0 seconds")
        return Mode(name, benchmark, table.texts("verifier"), timeout_s)

    def _knobs(self, table: _Table) -> tuple[Knob, ...]:
        return tuple(self._knob(name, table.raw[name]) for name in table.keys)

    def _knob(self, name: str, value: Any) -> Knob:
        path = ("knobs", name)
        affects = ""
        if isinstance(value, dict):
            inner = _Table(self, path, value)
            inner.only("values", "affects")
            affects, value = inner.text("affects"), value.get("values")
        if not isinstance(value, list) or not value:
            self.refuse(path, "has no list of values", f"write: {name} = [1, 2, 4]")
        for item in value:
            if not isinstance(item, bool | int | float | str):
                self.refuse(path, f"{item!r} is not a number, a word or a truth value")
        if len({(isinstance(item, bool), item) for item in value}) < len(value):
            self.refuse(path, "names a value twice")
        return Knob(name, tuple(value), affects)

    def _options(self, table: _Table) -> Options:
        table.only("warmup", "repeats")
        return Options(table.text("warmup"), table.text("repeats"))

    def _gate(self, table: _Table) -> Gate:
        table.only("min_gain", "case_gate")
        usual = Gate()
        return Gate(
            self._fraction(table, "min_gain", usual.min_gain),
            self._fraction(table, "case_gate", usual.case_gate),
        )

    def _fraction(self, table: _Table, key: str, default: float) -> float:
        value = table.number(key, default)
        if value is None or not 0 <= value < 1:
            self.refuse(("gate", key), f"{value!r} is not a fraction from 0 up to 1", f"write: {key} = 0.01")
        return value

    def _extras(self, table: _Table) -> Extras:
        table.only("timing", "batch", "samples", "prefork")
        return Extras(
            table.text("timing"), table.text("batch"), table.flag("samples"), table.texts("prefork")
        )

    def _cross_check(self, config: WorkspaceConfig) -> None:
        names = frozenset(knob.name for knob in config.knobs)
        if config.knobs and not config.config_file:
            self.refuse(
                ("knobs",), "have no file to live in", 'add: [config] with file = "kernel_config.json"'
            )
        if config.config_file and config.config_file not in config.files.mutable:
            self.refuse(("config", "file"), f"{config.config_file} is not mutable", "add it to files.mutable")
        for text in config.constraints:
            try:
                parse_constraint(text, names)
            except ConfigFault as fault:
                self.refuse(("constraints",), fault.sentence, fault.hint)


class _Table:
    """One table of the document, read with types; `path` is where it stands."""

    def __init__(self, reader: _Reader, path: tuple[str, ...], raw: JsonObject) -> None:
        self.reader = reader
        self.path = path
        self.raw = raw

    @property
    def keys(self) -> list[str]:
        return list(self.raw)

    def only(self, *known: str) -> None:
        for key in self.raw:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
                self.reader.refuse((*self.path, key), "is not a key of this table", hint)

    def _typed(self, key: str, default: Any, required: bool, fits: Callable[[Any], bool], wanted: str) -> Any:
        if key not in self.raw:
            if required:
                self.reader.refuse((*self.path, key), "is missing", f"write {key} as {wanted}")
            return default
        value = self.raw[key]
        if not fits(value):
            self.reader.refuse((*self.path, key), f"{value!r} is not {wanted}")
        return value

    def text(self, key: str, default: str = "", required: bool = False) -> str:
        value: str = self._typed(key, default, required, lambda v: isinstance(v, str), "a text in quotes")
        if required and not value:
            self.reader.refuse((*self.path, key), "is empty")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str = "") -> str:
        wanted = "one of " + ", ".join(known)
        value: str = self._typed(key, default or known[0], False, lambda v: v in known, wanted)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)

        return tuple(self._typed(key, [], False, fits, "a list of texts"))

    def number(self, key: str, default: float | None) -> float | None:
        def fits(value: Any) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool) and value == value

        value: float | None = self._typed(key, default, False, fits, "a number")
        return value

    def flag(self, key: str) -> bool:
        value: bool = self._typed(key, False, False, lambda v: isinstance(v, bool), "true or false")
        return value

    def table(self, key: str, required: bool = False) -> _Table:
        raw = self._typed(key, {}, required, lambda v: isinstance(v, dict), "a table")
        return _Table(self.reader, (*self.path, key), raw)
