"""Writing a `kerneldeck.toml`: only what differs from the defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import tomli_w

from core.words import JsonObject
from core.workspace.config import SCHEMA, Extras, Gate, Knob, Mode, Objective, Options, WorkspaceConfig


def to_toml(config: WorkspaceConfig) -> str:
    """The TOML text that `toml_reader.parse_toml` reads back as an equal configuration."""
    document: JsonObject = {"schema": SCHEMA, "name": config.name}
    if config.constraints:
        document["constraints"] = list(config.constraints)
    if config.state_dir:
        document["state_dir"] = config.state_dir
    document["objective"] = _differing(
        config.objective, Objective(""), always=("metric", "direction", "decide")
    )
    document["files"] = {
        "mutable": list(config.files.mutable),
        "protected": list(config.files.protected),
        **({"needed": list(config.files.needed)} if config.files.needed else {}),
    }
    if config.config_file:
        document["config"] = {"file": config.config_file}
    sections: JsonObject = {
        "options": _differing(config.options, Options()),
        "gate": _differing(config.gate, Gate()),
        "extras": _differing(config.extras, Extras()),
        "modes": {name: _mode(mode) for name, mode in config.modes.items()},
        "knobs": _knobs(config.knobs),
    }
    document.update({key: table for key, table in sections.items() if table})
    return tomli_w.dumps(document)


def _differing(
    value: Objective | Options | Gate | Extras, defaults: object, always: tuple[str, ...] = ()
) -> JsonObject:
    table: JsonObject = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if field.name in always or item != getattr(defaults, field.name):
            table[field.name] = list(item) if isinstance(item, tuple) else item
    return table


def _mode(mode: Mode) -> JsonObject:
    table: JsonObject = {"benchmark": list(mode.benchmark)}
    if mode.verifier:
        table["verifier"] = list(mode.verifier)
    table["timeout_s"] = mode.timeout_s
    if mode.cpu_s is not None:
        table["cpu_s"] = mode.cpu_s
    return table


def _knobs(knobs: Sequence[Knob]) -> JsonObject:
    """Lists, or tables where one must be a table: mixed, the file would change their order."""
    if not any(knob.affects for knob in knobs):
        return {knob.name: list(knob.values) for knob in knobs}
    tables: JsonObject = {knob.name: {"values": list(knob.values)} for knob in knobs}
    for knob in knobs:
        if knob.affects:
            tables[knob.name]["affects"] = knob.affects
    return tables
