"""Targets that were well a moment ago: kept for the user's next commands, so that each need not look again.

An entry says nothing of who logs in where: it lies under a hash of the place's description. It is believed
for `FRESH_S` by two clocks, and by a run only while the machine over there is the one that was looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from core.targets.regular_file import read_regular
from core.targets.ssh.places import Place
from core.words import JsonObject

FRESH_S = 60.0
_SWEPT_AFTER_S = 86400.0
_MOST_BYTES = 1 << 20
_FORM = 1

Clock = Callable[[], float]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where the user's entries lie."""
    base = environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if base.startswith("/") else Path("~/.cache").expanduser()
    return folder / "kerneldeck-health"  # ~/.cache/kerneldeck is a scratch folder where we are the target


@dataclass(frozen=True, slots=True)
class FoundWell:
    """What a check found of a machine on which trials can run.

    `boot_id` tells whether it is still the same machine. `gpus` are nvidia-smi's rows, `processes` who
    computed there (None: not asked), `ms` the time of each stage that was taken.
    """

    boot_id: str
    smi_found: bool
    gpus: tuple[JsonObject, ...]
    processes: tuple[JsonObject, ...] | None = None
    free_mb: int = 0
    python: str = ""
    ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    age_s: float = 0.0


class HealthCache:
    """Entries in `folder`, one a place. A folder that cannot be used only means that nothing is known."""

    def __init__(
        self, folder: Path, *, wall_s: Clock = time.time, since_start_s: Clock = time.monotonic
    ) -> None:
        self.folder = folder
        self._wall_s = wall_s
        self._since_start_s = since_start_s

    def fresh(self, place: Place) -> FoundWell | None:
        """What was found at `place` less than `FRESH_S` ago."""
        try:
            told = json.loads(read_regular(self._path(place), _MOST_BYTES))
            if told["form"] != _FORM:
                return None
            # A clock that was put back must not make an entry young, nor one of before a restart.
            ages_s = (self._wall_s() - told["wall_s"], self._since_start_s() - told["since_start_s"])
            if not all(0 <= age_s < FRESH_S for age_s in ages_s):
                return None
            return _found_well(told, max(ages_s))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def keep(self, place: Place, found: FoundWell) -> None:
        told = {
            "form": _FORM, "wall_s": self._wall_s(), "since_start_s": self._since_start_s(),
            "boot_id": found.boot_id, "smi_found": found.smi_found, "gpus": list(found.gpus),
            "processes": None if found.processes is None else [_nameless(row) for row in found.processes],
            "free_mb": found.free_mb, "python": found.python, "ms": dict(found.ms),
        }  # fmt: skip
        path = self._path(place)
        beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                json.dump(told, file)
            beside.replace(path)
            self._sweep()
        except OSError:
            with suppress(OSError):
                beside.unlink()

    def forget(self, place: Place) -> None:
        with suppress(OSError):
            self._path(place).unlink()

    def _path(self, place: Place) -> Path:
        told = [
            str(place.address), place.gpu, place.scratch, place.python, list(place.wrapper),
            sorted(place.environment.items()), str(place.key_file or ""),
        ]  # fmt: skip
        return self.folder / hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]

    def _sweep(self) -> None:
        """Targets that nobody asks for any more leave nothing behind."""
        for path in self.folder.iterdir():
            with suppress(OSError):
                if abs(time.time() - path.lstat().st_mtime) > _SWEPT_AFTER_S:
                    path.unlink()


def _nameless(row: JsonObject) -> JsonObject:
    """A program's path may name a user."""
    return {**row, "name": str(row.get("name", "")).rpartition("/")[2]}


def _found_well(told: JsonObject, age_s: float) -> FoundWell:
    processes = told["processes"]
    return FoundWell(
        boot_id=str(told["boot_id"]),
        smi_found=bool(told["smi_found"]),
        gpus=tuple(dict(row) for row in told["gpus"]),
        processes=None if processes is None else tuple(dict(row) for row in processes),
        free_mb=int(told["free_mb"]),
        python=str(told["python"]),
        ms=MappingProxyType({str(stage): float(ms) for stage, ms in told["ms"].items()}),
        age_s=age_s,
    )
