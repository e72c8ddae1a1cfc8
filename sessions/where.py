"""Where a call's trials run: chosen before a workspace is opened, because its contract names the facts."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from core.errors import ArgumentFault, TargetFault
from core.store import Blobs
from core.targets.job import Job, Outcome, Target, TargetFacts
from core.targets.local import LocalTarget, local_facts
from core.targets.staging import Materials, Staging
from core.words import JsonObject, Status
from core.workspace.config import Objective
from sessions.state_dir import StatePlace
from sessions.store import SessionStore

if TYPE_CHECKING:
    from core.targets.ssh.host import SshHost
    from core.targets.ssh.host_keys import AskHostKey
    from core.targets.ssh.places import Place

LOCAL = "local"
Open = Callable[["Place | None", "AskHostKey | None"], Awaitable["Where"]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a target is made of beside its machine."""

    place: StatePlace
    materials: Materials
    blobs: Blobs
    objective: Objective


class Where(Protocol):
    """A machine before a workspace is known to it."""

    @property
    def name(self) -> str: ...

    def facts(self, store: SessionStore | None) -> TargetFacts: ...

    def target(self, parts: Parts) -> Target: ...

    async def close(self) -> None: ...


class Here:
    """This machine."""

    name = LOCAL

    def facts(self, store: SessionStore | None) -> TargetFacts:
        return local_facts()

    def target(self, parts: Parts) -> Target:
        staging = Staging(parts.place.staging, parts.place.linked, parts.materials, parts.blobs)
        return LocalTarget(staging, parts.objective)

    async def close(self) -> None:
        pass


class There:
    """An SSH target whose machine answers."""

    def __init__(self, host: SshHost, release: Callable[[], None] | None = None) -> None:
        self._host = host
        self._release = release  # whoever keeps the connection between calls

    @property
    def name(self) -> str:
        return self._host.name

    def facts(self, store: SessionStore | None) -> TargetFacts:
        return self._host.facts()

    def target(self, parts: Parts) -> Target:
        from core.targets.ssh.target import SshTarget

        kept = self._release is not None
        return SshTarget(self._host, parts.materials, parts.blobs, parts.objective, keeps_host=kept)

    async def close(self) -> None:
        if self._release is None:
            await self._host.close()
        else:
            self._release()


class Remembered:
    """An SSH target for calls that run nothing there: its facts are those of its last trial."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def facts(self, store: SessionStore | None) -> TargetFacts:
        found = store.facts_of_target(self._name) if store else None
        return found or local_facts()

    def target(self, parts: Parts) -> Target:
        return _Unopened(self)

    async def close(self) -> None:
        pass


class _Unopened:
    """Runs nothing."""

    def __init__(self, where: Remembered) -> None:
        self.name = where.name
        self._where = where

    def facts(self) -> TargetFacts:
        return self._where.facts(None)

    async def run(self, job: Job) -> Outcome:
        return Outcome(Status.INFRA, f"{self.name} was not connected for this", "config")

    async def close(self) -> None:
        pass


def chosen(arguments: JsonObject) -> Place | None:
    """The place that a call means, None for this machine.

    `remote` of run_objective says true (it must not be this machine), false (it must) or auto.
    """
    asked, remote = str(arguments.get("target") or ""), arguments.get("remote", "auto")
    if remote == "false" and asked not in ("", LOCAL):
        raise ArgumentFault(f"--remote false means this machine, and --target {asked} does not", "say one")
    if remote == "true" and asked == LOCAL:
        raise ArgumentFault("--remote true means another machine, and --target local does not", "say one")
    place = None if remote == "false" else place_of(asked)
    return required(place) if remote == "true" else place


def required(place: Place | None) -> Place:
    """`place`, which must not be this machine."""
    if place is None:
        raise TargetFault(
            "config", "no GPU host is configured, so nothing can run remotely",
            "name one: --target ssh:HOST, or kerneldeck target add; or run it here: --remote auto",
        )  # fmt: skip
    return place


def place_of(asked: str) -> Place | None:
    """What `asked` means (else the environment, else the place in use); None for this machine."""
    if asked == LOCAL:
        return None
    from core.targets.ssh.places_file import choose, targets_file

    place = choose(asked, os.environ, targets_file(os.environ))
    return None if place.is_local else place


def remembered(place: Place | None) -> Where:
    """For calls that run nothing."""
    if place is None:
        return Here()
    from core.targets.ssh.host import target_name

    return Remembered(target_name(place))


async def opened(place: Place | None, ask: AskHostKey | None) -> Where:
    """For calls that run trials: connected and well, or a TargetFault before anything is sent."""
    if place is None:
        return Here()
    from core.targets.ssh.health_cache import HealthCache, cache_folder
    from core.targets.ssh.host import SshHost

    host = SshHost(place, ask=ask, healthy=HealthCache(cache_folder(os.environ)))
    await host.open()
    return There(host)
