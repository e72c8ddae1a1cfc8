"""Which place is meant, and the user's `targets.toml`: changed whole or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import tomli_w

from core.errors import ArgumentFault, ConfigFault, StorageFault
from core.targets.ssh.address import SCHEME
from core.targets.ssh.home import users_folder
from core.targets.ssh.host_lines import has_host_block
from core.targets.ssh.places import (
    HOST_VARIABLE,
    LOCAL,
    MIN_FREE_MB,
    SCRATCH_LIMIT_MB,
    Place,
    Places,
    by_address,
    checked,
    foreign_place,
    here,
)
from core.targets.ssh.places_toml import SCHEMA, read_places
from core.words import JsonObject

ADD_FIRST = "add it first: kerneldeck target add NAME HOST"


def targets_file(environ: Mapping[str, str]) -> Path | None:
    """Where the user's places are described; None for a user without a home folder, who has none."""
    folder = users_folder(environ, "XDG_CONFIG_HOME", ".config")
    return folder / "kerneldeck" / "targets.toml" if folder else None


def choose(asked: str, environ: Mapping[str, str], path: Path | None) -> Place:
    """The place that is meant: what was asked for, else the environment's, else the one in use, else here.

    `asked` is empty, `local`, `ssh:HOST` or a name from `path`. ArgumentFault or ConfigFault say what is
    wrong with the one that counts; those that do not count are not looked at.
    """
    if asked:
        return _meant(asked, "--target", path)
    host = environ.get(HOST_VARIABLE, "").strip()
    if host:
        return _from_variable(host, path)
    foreign = foreign_place(environ)
    if foreign:
        return foreign
    places = read_places(path)
    return places.named(places.used) if places.used else here()


def _meant(text: str, source: str, path: Path | None) -> Place:
    if text == LOCAL:
        return replace(here(), source=source)
    if text.startswith(SCHEME):
        return _described_as(text, path) or by_address(text, source)
    return read_places(path).named(text)


def _described_as(text: str, path: Path | None) -> Place | None:
    """The place that `ssh:NAME` means, as records call a described one; a host of that name goes first."""
    name = text.removeprefix(SCHEME)
    try:
        place = read_places(path).by_name.get(name)
    except ConfigFault:
        return None  # a broken file does not keep anybody from a host
    return None if place is None or has_host_block(name) else place


def _from_variable(host: str, path: Path | None) -> Place:
    """A name, an `ssh:HOST` or, unlike on the command line, a bare host."""
    try:
        if host == LOCAL or host.startswith(SCHEME) or host in read_places(path).by_name:
            return replace(_meant(host, HOST_VARIABLE, path), source=HOST_VARIABLE)
        return by_address(SCHEME + host, HOST_VARIABLE)
    except ArgumentFault as fault:
        raise ArgumentFault(f"{HOST_VARIABLE}: {fault.sentence}", fault.hint) from None


def add_place(path: Path | None, place: Place, anew: bool = False) -> None:
    """Describe `place` in the file under its name; ArgumentFault when it cannot be, or is there already.

    With `anew` the description that is there goes.
    """
    try:
        checked(place)
    except ValueError as error:
        key, why = error.args
        raise ArgumentFault(f"target {place.name}: {key + ': ' if key else ''}{why}") from None
    if place.address is None:
        raise ArgumentFault(f"target {place.name} names no host", "give one: ssh:HOST")
    _check_text(place)
    with _rewriting(path) as places:
        if place.name in places and not anew:
            raise ArgumentFault(
                f"a target is called {place.name} already",
                f"to describe it anew: the same with --replace, or: kerneldeck target remove {place.name}",
            )
        places[place.name] = place


def remove_place(path: Path | None, name: str) -> None:
    """Forget the place called `name`; when it was in use, none is afterwards."""
    with _rewriting(path) as places:
        del places[Places(places).named(name, ADD_FIRST).name]


def use_place(path: Path | None, name: str) -> None:
    """Make `name` the place where trials run when nothing else is said; `local` for this machine."""
    with _rewriting(path, name) as places:
        if name != LOCAL:
            Places(places).named(name, ADD_FIRST)


def _check_text(place: Place) -> None:
    """ArgumentFault when a word is no UTF-8, as the file has to be."""
    for key, value in _described(place).items():
        try:
            tomli_w.dumps({key: value}).encode()
        except UnicodeEncodeError:
            hint = "targets.toml can only hold UTF-8"
            raise ArgumentFault(f"target {place.name}: {key}: is no UTF-8", hint) from None


@contextmanager
def _rewriting(path: Path | None, use: str = "") -> Iterator[dict[str, Place]]:
    """The file's places to change; written when the body ends well, one writer at a time."""
    if path is None:
        raise ConfigFault(
            "there is no home folder to keep targets in", "set HOME, or XDG_CONFIG_HOME to a folder of yours"
        )
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise StorageFault(f"{path.parent} cannot be made: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        found = read_places(path)
        places = dict(found.by_name)
        yield places
        used = "" if use == LOCAL else use or found.used
        _write(path, places, used if used in places else "")
    finally:
        os.close(folder)


def _write(path: Path, places: Mapping[str, Place], used: str) -> None:
    document: JsonObject = {"schema": SCHEMA, **({"use": used} if used else {})}
    document["targets"] = {name: _described(place) for name, place in places.items()}
    content = tomli_w.dumps(document).encode()
    real = Path(os.path.realpath(path))  # a link to the file stays one
    beside = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(real)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if not isinstance(error, OSError):
            raise
        raise StorageFault(f"{path} cannot be written: {error.strerror}", "nothing was changed") from None


def _described(place: Place) -> JsonObject:
    assert place.address is not None
    values: JsonObject = {
        "host": str(place.address).removeprefix(SCHEME),
        "gpu": int(place.gpu) if place.gpu.isdigit() else place.gpu,
        "scratch": place.scratch,
        "python": place.python,
        "wrapper": list(place.wrapper),
        "key_file": str(place.key_file or ""),
        "description": place.description,
        "environment": dict(place.environment),
    }
    if place.min_free_mb != MIN_FREE_MB:
        values["min_free_mb"] = place.min_free_mb
    if place.scratch_limit_mb != SCRATCH_LIMIT_MB:
        values["scratch_limit_mb"] = place.scratch_limit_mb
    return {key: value for key, value in values.items() if value or value == 0}
