"""remote_health_check, and the user's own descriptions of targets."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from core.errors import ArgumentFault
from core.operations.declaration import Answer
from core.targets.ssh.address import SCHEME
from core.targets.ssh.health import CHECKED, Health, Wanted, check_host
from core.targets.ssh.health_cache import HealthCache, cache_folder
from core.targets.ssh.host import MEGABYTE, SshHost, target_name
from core.targets.ssh.places import (
    FOREIGN_PREFIX,
    MIN_FREE_MB,
    SCRATCH_LIMIT_MB,
    Place,
    by_address,
    foreign_place,
)
from core.targets.ssh.places_file import add_place, choose, remove_place, targets_file, use_place
from core.targets.ssh.places_toml import read_places
from core.words import JsonObject
from sessions.handlers.local_health import local_health
from sessions.session import Caller, home_expanded
from sessions.where import LOCAL, place_of, required

_CLEANED_WITHIN_S = 120.0


async def remote_health_check(caller: Caller, arguments: JsonObject) -> Answer:
    """Every stage that a trial's machine must pass; exit code 3 when one fails."""
    place = _asked_place(arguments)
    if arguments["require_remote"]:
        required(place)
    if arguments["dry_run"]:
        name = target_name(place) if place else LOCAL
        return Answer({"dry_run": True, "target": name, "would_check": list(CHECKED) if place else ["gpu"]})
    if place is None:
        needed = arguments["require_gpu"] and arguments["check_local_cuda"]
        content = await local_health(arguments["timeout_seconds"], needed)
    else:
        content = (await _health_of(place, caller, arguments)).json
    return Answer(content, 0 if content["status"] == "ok" else 3)


async def _health_of(place: Place, caller: Caller, arguments: JsonObject) -> Health:
    healthy = HealthCache(cache_folder(os.environ))
    free_mb = _given(arguments["min_free_mb"], place.min_free_mb)
    wanted = Wanted(arguments["timeout_seconds"], free_mb, arguments["require_gpu"])
    known = healthy.fresh(place) if arguments["cached"] else None
    if known and known.free_mb >= free_mb and (known.gpus or not wanted.require_gpu):
        return Health.remembered(place, known)
    return await check_host(place, wanted, caller.ask_host_key, healthy)


async def check_target(caller: Caller, arguments: JsonObject) -> Answer:
    """The same under the name that a person looks for among the verbs of targets."""
    return await remote_health_check(caller, arguments)


def _asked_place(arguments: JsonObject) -> Place | None:
    """By target, or by host, port, key and remote_root as people coming from HarnessGym write them."""
    given = {name: arguments.get(name) for name in ("host", "port", "key", "remote_root")}
    asked = _asked_name(arguments)
    if not any(given.values()):
        return place_of(asked)
    if not given["host"]:
        raise ArgumentFault(
            "port, key and remote_root go with host",
            "add --host HOST; those of a target are in its description: kerneldeck target add --help",
        )
    if asked:
        raise ArgumentFault(
            "host and target both say which machine",
            f"leave one away: kerneldeck health {asked}, or kerneldeck health --host {given['host']}",
        )
    names = {FOREIGN_PREFIX + name.upper(): str(value) for name, value in given.items() if value}
    return foreign_place(names)


def _asked_name(arguments: JsonObject) -> str:
    """The target, which stands alone or after --target."""
    name, target = str(arguments["name"] or ""), str(arguments["target"] or "")
    if name and target and name != target:
        raise ArgumentFault(f"two targets are named: {name} and {target}", "name one")
    return name or target


async def add_target(caller: Caller, arguments: JsonObject) -> Answer:
    """Describe a target; it is not connected to."""
    name, host = (_needed(arguments, what, "add") for what in ("name", "host"))
    address = by_address(SCHEME + host.removeprefix(SCHEME), "").address
    place = Place(
        name, address,
        gpu=arguments["gpu"], scratch=arguments["scratch"], python=arguments["python"],
        wrapper=_words(arguments["wrapper"]), environment=dict(map(_variable, arguments["variables"])),
        description=arguments["description"],
        key_file=home_expanded(arguments["key_file"]).absolute() if arguments["key_file"] else None,
        min_free_mb=_given(arguments["min_free_mb"], MIN_FREE_MB),
        scratch_limit_mb=_given(arguments["scratch_limit_mb"], SCRATCH_LIMIT_MB),
    )  # fmt: skip
    path = targets_file(os.environ)
    add_place(path, place, anew=arguments["replace"])
    if arguments["use"]:
        use_place(path, name)
    answer = _listing(path, "added", name)
    lacking = place.key_file is not None and not place.key_file.is_file()
    answer.content["warning"] = f"there is no key file {place.key_file}" if lacking else ""
    answer.content["next"] = [f"kerneldeck target check {name}"]
    return answer


async def list_targets(caller: Caller, arguments: JsonObject) -> Answer:
    return _listing(targets_file(os.environ), "listed", "")


async def use_target(caller: Caller, arguments: JsonObject) -> Answer:
    path, name = targets_file(os.environ), _needed(arguments, "name", "use")
    use_place(path, name)
    return _listing(path, "in_use", name)


async def remove_target(caller: Caller, arguments: JsonObject) -> Answer:
    path, name = targets_file(os.environ), _needed(arguments, "name", "remove")
    remove_place(path, name)
    return _listing(path, "removed", name)


async def clean_target(caller: Caller, arguments: JsonObject) -> Answer:
    """Ended trials go at once; a running one keeps what it needs."""
    place = place_of(arguments["target"])
    if place is None:
        raise ArgumentFault(f"{LOCAL} has no scratch folder to clean", "here it is: kerneldeck gc")
    if arguments["dry_run"]:
        return Answer({"dry_run": True, "target": target_name(place), "keep_mb": arguments["keep_mb"]})
    host = SshHost(place, ask=caller.ask_host_key)
    try:
        link = await host.link()
        most_bytes = int(arguments["keep_mb"] * MEGABYTE)
        fields = {"most_bytes": most_bytes, "trials_older_than_s": 0.0}
        told = await link.request("clean", fields, _CLEANED_WITHIN_S)
    finally:
        await host.close()
    before, after = told["before"], told["after"]
    return Answer(
        {
            "target": host.name,
            "freed_bytes": before["blob_bytes"] - after["blob_bytes"],
            "kept_bytes": after["blob_bytes"],
            "trials": after["trials"],
            "free_bytes": after["room"]["free_bytes"],
        }
    )


def _listing(path: Path | None, outcome: str, name: str) -> Answer:
    """The described targets, and where trials run when nothing is said."""
    places = read_places(path)
    meant = choose("", os.environ, path)
    rows = [_row(place) | {"in_use": place.name == meant.name} for place in places.by_name.values()]
    content = {"outcome": outcome, "name": name, "targets": rows, "default": meant.name}
    return Answer({**content, "default_from": meant.source or "nothing else was said"})


def _row(place: Place) -> JsonObject:
    """A description as its list tells it: of variables the names alone, of a key that there is one."""
    return {
        "name": place.name,
        "host": place.address.label if place.address else "",
        "gpu": place.gpu,
        "description": place.description,
        "scratch": place.scratch,
        "python": place.python,
        "wrapper": list(place.wrapper),
        "environment": sorted(place.environment),
        "own_key": place.key_file is not None,
        "min_free_mb": place.min_free_mb,
        "scratch_limit_mb": place.scratch_limit_mb,
    }


def _needed(arguments: JsonObject, name: str, verb: str) -> str:
    value = arguments[name]
    if not isinstance(value, str) or not value:
        raise ArgumentFault(f"the {name} is missing", f"see: kerneldeck target {verb} --help")
    return value


def _given(value: float | None, usual: float) -> float:
    return usual if value is None else float(value)


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise ArgumentFault(f"wrapper: {error}", "write it as in a shell: 'docker exec -i NAME'") from None


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ArgumentFault(f"{text!r} sets no variable", "write NAME=VALUE")
    return name, value
