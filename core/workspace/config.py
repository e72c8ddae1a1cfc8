"""What a `kerneldeck.toml` says, as frozen values.

Reading (with line numbers in errors) is in `core.workspace.toml_reader`, writing in `toml_writer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from core.words import Scalar

CONFIG_NAME = "kerneldeck.toml"
SCHEMA = 1
DEFAULT_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True)
class Objective:
    """What decides: the key in the result, and how it follows from the cases."""

    metric: str
    direction: str = "lower"  # lower | higher
    decide: str = "final"  # the mode whose best stands
    unit: str = ""
    aggregate: str = "single"  # sum | geomean | mean | max | min | single (no cases)
    statistic: str = "median"  # a case's number over its launches: median | minimum
    deterministic: bool = False
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Paths relative to the workspace; `needed` are globs (empty: everything git would keep)."""

    mutable: tuple[str, ...]
    protected: tuple[str, ...]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mode:
    """The commands of one mode, as argument lists; nothing passes through a shell."""

    name: str
    benchmark: tuple[str, ...]
    verifier: tuple[str, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    cpu_s: float | None = None  # of CPU time for each process of a trial; None: no limit


@dataclass(frozen=True, slots=True)
class Knob:
    """One dimension of the space: a (dotted) key of the config file and its legal values."""

    name: str
    values: tuple[Scalar, ...]
    affects: str = ""  # the one case this knob touches, when it touches only one


@dataclass(frozen=True, slots=True)
class Options:
    """Extra flags that the commands were found to take; empty where they do not."""

    warmup: str = ""
    repeats: str = ""


@dataclass(frozen=True, slots=True)
class Gate:
    """The workspace's own settings of the gate, as fractions."""

    min_gain: float = 0.005
    case_gate: float = 0.05


@dataclass(frozen=True, slots=True)
class Extras:
    """What a workspace offers beyond the contract of files and commands."""

    timing: str = ""  # the timing file, when the benchmark uses it
    batch: str = ""  # a batch evaluator's file
    samples: bool = False
    prefork: tuple[str, ...] = ()  # modules a parent may import before it forks trials


@dataclass(frozen=True, slots=True)
class WorkspaceConfig:
    """A whole `kerneldeck.toml`."""

    name: str
    objective: Objective
    files: Files
    modes: dict[str, Mode]
    config_file: str = ""
    knobs: tuple[Knob, ...] = ()
    constraints: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    gate: Gate = field(default_factory=Gate)
    extras: Extras = field(default_factory=Extras)
    state_dir: str = ""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with its configuration."""

    root: Path
    config: WorkspaceConfig

    @property
    def toml(self) -> Path:
        return self.root / CONFIG_NAME
