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
from core.targets.ssh.home import users_folder
from core.targets.ssh.places import Place
from core.words import JsonObject
from core.workspace.toml_table import is_finite

FRESH_S = 60.0
_SWEPT_AFTER_S = 86400.0
_MOST_BYTES = 1 << 20
_FORM = 1
_GPU_WORDS = ("index", "uuid", "name", "driver")
_NUMBERS = ("pid", "memory_mib")

Clock = Callable[[], float]


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Where the user's entries lie; None for a user without a home folder, for whom nothing is kept."""
    folder = users_folder(environ, "XDG_CACHE_HOME", ".cache")
    # ~/.cache/kerneldeck is a scratch folder where we are the target
    return folder / "kerneldeck-health" if folder else None


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
        self, folder: Path | None, *, wall_s: Clock = time.time, since_start_s: Clock = time.monotonic
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
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None

    def keep(self, place: Place, found: FoundWell) -> None:
        if self.folder is None:
            return
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
            self._sweep(self.folder)
        except OSError:
            with suppress(OSError):
                beside.unlink()

    def forget(self, place: Place) -> None:
        with suppress(OSError):
            self._path(place).unlink()

    def _path(self, place: Place) -> Path:
        if self.folder is None:
            raise FileNotFoundError
        told = [
            str(place.address), place.gpu, place.scratch, place.python, list(place.wrapper),
            sorted(place.environment.items()), str(place.key_file or ""),
        ]  # fmt: skip
        return self.folder / hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]

    def _sweep(self, folder: Path) -> None:
        """Targets that nobody asks for any more leave nothing behind."""
        for path in folder.iterdir():
            with suppress(OSError):
                if abs(time.time() - path.lstat().st_mtime) > _SWEPT_AFTER_S:
                    path.unlink()


def _nameless(row: JsonObject) -> JsonObject:
    """A program's path may name a user."""
    return {**row, "name": str(row.get("name", "")).rpartition("/")[2]}


def _found_well(told: JsonObject, age_s: float) -> FoundWell:
    """ValueError and its like for an entry that we did not write so."""
    processes = told["processes"]
    return FoundWell(
        boot_id=str(told["boot_id"]),
        smi_found=bool(told["smi_found"]),
        gpus=tuple(_row(row, _GPU_WORDS, ()) for row in told["gpus"]),
        processes=None if processes is None else tuple(_row(row, ("name",), _NUMBERS) for row in processes),
        free_mb=int(told["free_mb"]),
        python=str(told["python"]),
        ms=MappingProxyType({str(stage): _finite(ms) for stage, ms in told["ms"].items()}),
        age_s=age_s,
    )


def _row(row: JsonObject, words: tuple[str, ...], numbers: tuple[str, ...]) -> JsonObject:
    """`row`, which has these; what else is in it is shown, if anything, as it is."""
    reasons = row.get("throttle_reasons") or ()
    if not all(isinstance(word, str) for word in (*reasons, *(row[word] for word in words))):
        raise ValueError("a word is none")
    for number in numbers:
        if row[number] is not None:
            _finite(row[number])
    return dict(row)


def _finite(value: object) -> float:
    if not is_finite(value):
        raise ValueError("a number is none")
    assert isinstance(value, int | float)
    return float(value)
