"""Where trials run: a place as the user describes it, and which one is meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from core.errors import ArgumentFault
from core.targets.ssh.address import SCHEME, Address, check_port, parse_address, split_destination
from core.targets.ssh.home import expanded

LOCAL = "local"
HOST_VARIABLE = "KERNELDECK_GPU_HOST"
FOREIGN_PREFIX = "HARNESSGYM_GPU_"
MIN_FREE_MB = 256.0
MOST_MB = 1e9
SCRATCH_LIMIT_MB = 10_000.0
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_PYTHON = re.compile(r"/[A-Za-z0-9_./+-]+|python3?(\.[0-9]+)?")
_UUID = re.compile(r"(GPU|MIG)-[0-9A-Fa-f/-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A machine and how to work on it; no `address` for this machine.

    `gpu` is an index or a UUID, empty for all. `scratch` and `python` are paths over there, empty for the
    usual ones. `wrapper` stands before every command (`docker exec …`), `environment` is added to its
    variables. `key_file` overrules the configuration's keys. `source` says where this was read.
    Trials start with `min_free_mb` free in the scratch folder, which is kept below `scratch_limit_mb`.
    """

    name: str
    address: Address | None = None
    gpu: str = ""
    scratch: str = ""
    python: str = ""
    wrapper: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    description: str = ""
    key_file: Path | None = None
    source: str = ""
    min_free_mb: float = MIN_FREE_MB
    scratch_limit_mb: float = SCRATCH_LIMIT_MB

    @property
    def is_local(self) -> bool:
        return self.address is None


@dataclass(frozen=True, slots=True)
class Places:
    """The user's described places, and the name of the one in use (empty for none)."""

    by_name: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}))
    used: str = ""

    def named(self, name: str, else_do: str = "") -> Place:
        """The place called `name`; ArgumentFault with what was perhaps meant, and `else_do`."""
        if name in self.by_name:
            return self.by_name[name]
        known = [LOCAL, *self.by_name]
        near = difflib.get_close_matches(name.removeprefix(SCHEME), known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        otherwise = else_do or f"for a host of ~/.ssh/config write {SCHEME}{name}"
        raise ArgumentFault(
            f"no target is called {name!r}", f"{hint}{otherwise}; targets: {', '.join(known)}"
        )


def checked(place: Place) -> Place:
    """`place` itself; ValueError `(key, what is wrong)` for the first thing that cannot be."""
    for key, wrong in _faults(place):
        if wrong:
            raise ValueError(key, wrong)
    return place


def _faults(place: Place) -> list[tuple[str, str]]:
    faults = [
        ("", name_fault(place.name)),
        ("gpu", gpu_fault(place.gpu)),
        ("scratch", _scratch_fault(place.scratch)),
        ("python", _python_fault(place.python)),
        ("wrapper", "holds an empty word" if "" in place.wrapper else ""),
        ("wrapper", "holds a word with a NUL byte" if "\0" in "".join(place.wrapper) else ""),
        ("min_free_mb", _amount_fault(place.min_free_mb)),
        ("scratch_limit_mb", _amount_fault(place.scratch_limit_mb)),
        ("description", "is longer than a line" if "\n" in place.description else ""),
    ]
    return faults + [("environment", _variable_fault(*pair)) for pair in place.environment.items()]


def name_fault(name: str) -> str:
    if name == LOCAL:
        return f"{LOCAL!r} is this machine and needs no description"
    return "" if _NAME.fullmatch(name) else f"{name!r} is no name (letters, digits, . _ -)"


def gpu_fault(gpu: str) -> str:
    if not gpu or (gpu.isascii() and gpu.isdigit()) or _UUID.fullmatch(gpu):
        return ""
    return f"{gpu!r} is neither an index (0, 1, …) nor a UUID (GPU-… as nvidia-smi -L prints it)"


def _scratch_fault(scratch: str) -> str:
    if not scratch or (scratch.startswith("~/") and len(scratch) > 2):
        folder = scratch[2:]
    elif scratch.startswith("/"):
        folder = scratch.strip("/")
    else:
        return f"{scratch!r} is no absolute path (nor one under ~/)"
    if scratch and not folder:
        return "/ is no folder to fill and to clean"
    wild = ".." in folder.split("/") or not scratch.isprintable()
    return f"{scratch!r} holds .. or unprintable characters" if wild else ""


def _amount_fault(megabytes: float) -> str:
    return "" if 0 <= megabytes < MOST_MB else f"{megabytes!r} is no number of megabytes from 0"


def _python_fault(python: str) -> str:
    if not python or _PYTHON.fullmatch(python):
        return ""
    return f"{python!r} is neither python3 nor an absolute path of plain characters"


def _variable_fault(name: str, value: str) -> str:
    if not _VARIABLE.fullmatch(name):
        return f"{name!r} is no name of a variable"
    if name.startswith("KERNELDECK_"):
        return f"{name} is set for every trial by itself"
    return f"{name} holds a NUL byte" if "\0" in value else ""


def here() -> Place:
    """This machine."""
    return Place(LOCAL, description="this machine")


def by_address(text: str, source: str) -> Place:
    """A place that is only an address, `ssh:HOST`; ArgumentFault when it is none."""
    address = parse_address(text)
    return Place(address.label, address, source=source)


def foreign_place(environ: Mapping[str, str]) -> Place | None:
    """The place that HARNESSGYM_GPU_HOST and its companions describe; None without a host."""
    host = environ.get(FOREIGN_PREFIX + "HOST", "").strip()
    if not host:
        return None
    variable = FOREIGN_PREFIX + "HOST"
    try:
        address = split_destination(host.removeprefix(SCHEME))
        variable = FOREIGN_PREFIX + "PORT"
        port = environ.get(variable, "").strip()
        address = Address(address.host, address.user, check_port(port) if port else address.port)
    except ValueError as error:
        raise ArgumentFault(f"{variable}: {error}", "correct the variable, or unset it") from None
    root = environ.get(FOREIGN_PREFIX + "REMOTE_ROOT", "").strip()
    fault = _scratch_fault(root)
    if fault:
        raise ArgumentFault(f"{FOREIGN_PREFIX}REMOTE_ROOT: {fault}", "write a path like /scratch/me")
    return Place(
        address.label, address, scratch=root, source=FOREIGN_PREFIX + "HOST", key_file=_foreign_key(environ)
    )


def _foreign_key(environ: Mapping[str, str]) -> Path | None:
    key = environ.get(FOREIGN_PREFIX + "KEY", "").strip()
    try:
        return expanded(key) if key else None
    except ValueError as error:
        raise ArgumentFault(f"{FOREIGN_PREFIX}KEY: {error}", "write the path out, or unset it") from None
