"""Trials on the other side, as values: what is asked, how it is sent, and what comes back.

A lost link is a TargetFault of stage `lost`; the trial goes on there, and `attach` over a new link collects
it under the same id.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from core.errors import TargetFault
from core.targets.job import GRACE_S
from core.targets.prefork import IMPORT_WITHIN_S
from core.targets.remove_tree import remove_tree
from core.targets.result import Ended
from core.targets.result_channel import MOST_RESULT_BYTES
from core.targets.ssh.link import AgentLink, NoteSink
from core.targets.ssh.remote_sync import ANSWERS_WITHIN_S, RemoteSync, RemoteTree
from core.targets.ssh.wire import PROTOCOL
from core.words import JsonObject

HEAD_BYTES = 4 << 20
LEASE_S = 120.0
SILENCE_S = 60.0
YOUNG_S = 900.0
_AFTER_END_S = 60.0  # the watchdog's own bounds and the way of the output are below this
_MOST_ATTEMPTS = 3
_MOST_PART_BYTES = 256 << 20
_PART = re.compile(r"result|stdout|stderr|(changed|wanted)\.[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class Greeting:
    """What an agent says of itself. `clock_ahead_s` is how far its clock is ahead of ours."""

    python: str
    uid: int
    boot_id: str
    clock_s: float
    scratch: str
    free_bytes: int
    free_inodes: int | None
    restarted: bool
    swept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LockWish:
    """The lock that a trial holds (a GPU's UUID, or `cpu`), for whom, and how long it may wait for it."""

    name: str
    holder_name: str
    holder_host: str
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GpuLook:
    """Who else computes on the GPU, asked of nvidia-smi before and after a trial."""

    gpu: str
    smi: str = "nvidia-smi"
    deadline_s: float = 10.0
    before: bool = True
    after: bool = True
    refuse_busy: bool = False


@dataclass(frozen=True, slots=True)
class RemoteTrial:
    """One process to run there. `slots` are indexes of `trees`; `env` sets variables, or removes them (None).

    Words of `wrapper` come before the command; {cwd} in them is the folder, a word {env} becomes `-e NAME`
    for each variable of the trial interface and each that `env` sets.
    """

    argv: tuple[str, ...]
    wall_s: float
    trees: tuple[RemoteTree, ...]
    nonce: str
    slots: tuple[int, ...] = (0,)
    visits: str = ""
    wrapper: tuple[str, ...] = ()
    env: Mapping[str, str | None] = field(default_factory=dict)
    path_first: str = ""
    cpu_s: float | None = None
    grace_s: float = GRACE_S
    head_bytes: int = HEAD_BYTES
    lease_s: float = LEASE_S
    lock: LockWish | None = None
    look: GpuLook | None = None
    wanted: tuple[str, ...] = ()
    about: str = ""
    prefork: tuple[str, ...] = ()  # modules that a parent there may have imported; empty: from nothing
    import_within_s: float = IMPORT_WITHIN_S
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def deadline_s(self) -> float:
        waits_s = self.lock.wait_s if self.lock else 0.0
        looks_s = 2 * self.look.deadline_s if self.look else 0.0
        imports_s = self.import_within_s if self.prefork else 0.0
        return waits_s + looks_s + imports_s + self.wall_s + self.grace_s + _AFTER_END_S


@dataclass(frozen=True, slots=True)
class Collected:
    """A trial's outcome as its watchdog wrote it, and the folder that holds what it left.

    The folder has stdout, stderr, result, changed.N (of tree N the first protected file that differs) and
    wanted.N; `states` says of each: file, missing, link, other, large, or unreadable: why.
    """

    outcome: JsonObject
    states: Mapping[str, str]
    folder: Path

    @property
    def ended(self) -> Ended:
        """TargetFault when the trial could not be started or watched to its end."""
        told = self.outcome
        if "failure" in told:
            raise TargetFault(str(told["stage"]), str(told["failure"]), str(told.get("hint", "")))
        if "not_started" in told:
            return Ended(None, None, ended_by=str(told["not_started"]))
        return Ended(
            exit_code=told["exit_code"],
            signal=told["signal"],
            ended_by=told["ended_by"],
            duration_s=told["duration_s"],
            stdout_left_out=told["stdout_left_out"],
            stdout_lost=told["stdout_lost"],
            left_behind=told["left_behind"],
            survivors=tuple(told["survivors"]),
            oom_kills=told["oom_kills"],
        )


async def greet(
    link: AgentLink,
    *,
    silence_s: float = SILENCE_S,
    locks: str | None = None,
    limit_bytes: int = 0,
    young_s: float = YOUNG_S,
) -> Greeting:
    """The first request: it makes the scratch folder usable and ends what dead agents left.

    With a limit the folder is kept below it; what was used within `young_s` stays.
    """
    fields = {
        "protocol": PROTOCOL, "silence_s": silence_s, "locks": locks,
        "limit_bytes": limit_bytes, "young_s": young_s,
    }  # fmt: skip
    told = await link.request("hello", fields, ANSWERS_WITHIN_S)
    room = told["room"]
    return Greeting(
        told["python"], told["uid"], told["boot"], told["clock_s"], room["path"], room["free_bytes"],
        room["free_inodes"], told["restarted"], tuple(told["swept"]),
    )  # fmt: skip


class RemoteTrials:
    """Runs trials through one link."""

    def __init__(self, link: AgentLink, sync: RemoteSync) -> None:
        self.link = link
        self.sync = sync
        self._collected: list[str] = []  # or ended for nobody: to be forgotten there with the next request

    async def run(self, trial: RemoteTrial, folder: Path, on_note: NoteSink | None = None) -> Collected:
        """Run it and land what it left in `folder`. When the waiting task is cancelled, it is ended first.

        OSError when `folder` does not take it; the trial's outcome then waits there for `attach`.
        """
        for _ in range(_MOST_ATTEMPTS):
            collected = await self._asked(trial, folder, on_note)
            need = collected.outcome.get("need")
            if need is None:
                return collected
            await self.sync.supply(need, trial.trees)
        raise TargetFault("sync", "the agent goes on asking for files that it was sent", "run it again")

    async def _asked(self, trial: RemoteTrial, folder: Path, on_note: NoteSink | None) -> Collected:
        specs, inline, body = await self.sync.delta(trial.trees)
        fields = {**_fields(trial), "trees": specs, "inline": inline, "forget": self._collected}
        collected = await self._collect("run", trial.id, fields, trial.deadline_s, folder, body, on_note)
        self._collected = [] if "need" in collected.outcome else [trial.id]
        if "need" not in collected.outcome:
            self.sync.has(trial.trees)
            self.sync.lacks(collected.outcome.get("dropped"))
        return collected

    async def attach(self, trial_id: str, folder: Path, deadline_s: float) -> Collected:
        """Wait for a trial that was started before; TargetFault `lost` when it is not known there."""
        collected = await self._collect("attach", trial_id, {"trial": trial_id}, deadline_s, folder)
        self._collected.append(trial_id)
        return collected

    async def cancel(self, trial_id: str) -> bool:
        """Whether there was something to cancel."""
        answer = await self.link.request("cancel", {"trial": trial_id}, ANSWERS_WITHIN_S)
        return bool(answer.get("running"))

    async def _collect(
        self,
        word: str,
        trial_id: str,
        fields: JsonObject,
        deadline_s: float,
        folder: Path,
        body: bytes = b"",
        on_note: NoteSink | None = None,
    ) -> Collected:
        landing = Landing(folder)
        asked = asyncio.ensure_future(
            self.link.request(word, fields, deadline_s, body=body, on_part=landing.take, on_note=on_note)
        )
        try:
            answer = await asyncio.shield(asked)
        except asyncio.CancelledError:
            await self._end(trial_id, asked)
            raise
        finally:
            landing.close()
        if "need" in answer:
            return Collected({"need": answer["need"]}, {}, folder)
        return landing.landed(answer)

    async def _end(self, trial_id: str, asked: asyncio.Future[JsonObject]) -> None:
        with suppress(TargetFault):
            await self.cancel(trial_id)
            await asyncio.wait([asked], timeout=GRACE_S + _AFTER_END_S)
        self._collected.append(trial_id)
        asked.cancel()
        await asyncio.wait([asked])
        if not asked.cancelled():
            asked.exception()


def _fields(trial: RemoteTrial) -> JsonObject:
    lock = trial.lock and {
        "name": trial.lock.name,
        "wait_s": trial.lock.wait_s,
        "holder": {"name": trial.lock.holder_name, "host": trial.lock.holder_host, "pid": os.getpid()},
    }
    look = trial.look and {
        "gpu": trial.look.gpu, "smi": trial.look.smi, "deadline_s": trial.look.deadline_s,
        "before": trial.look.before, "after": trial.look.after, "refuse_busy": trial.look.refuse_busy,
    }  # fmt: skip
    prefork = trial.prefork and {"modules": list(trial.prefork), "within_s": trial.import_within_s}
    return {
        "trial": trial.id, "argv": list(trial.argv), "wrapper": list(trial.wrapper), "env": dict(trial.env),
        "path_first": trial.path_first, "slots": list(trial.slots), "nonce": trial.nonce,
        "visits": trial.visits, "wall_s": trial.wall_s, "cpu_s": trial.cpu_s, "grace_s": trial.grace_s,
        "head_bytes": trial.head_bytes, "lease_s": trial.lease_s, "lock": lock, "look": look,
        "wanted": list(trial.wanted), "about": trial.about, "prefork": prefork,
    }  # fmt: skip


class Landing:
    """Where the files that a trial left are written, piece by piece; names from there are not believed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for stale in folder.iterdir() if folder.is_dir() else ():
            if _PART.fullmatch(stale.name):
                remove_tree(stale)
        self._files: dict[str, IO[bytes]] = {}
        self._bytes: dict[str, int] = {}

    def take(self, name: str, piece: bytes) -> None:
        if not _PART.fullmatch(name):
            return
        if name not in self._files:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._files[name] = (self.folder / name).open("wb")
        self._bytes[name] = self._bytes.get(name, 0) + len(piece)
        if self._bytes[name] <= _MOST_PART_BYTES:
            self._files[name].write(piece)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def landed(self, answer: JsonObject) -> Collected:
        """What stood there stands here: a link as a link, so that the same judge says the same of it."""
        states = {
            str(name): str(state) for name, state in answer["parts"].items() if _PART.fullmatch(str(name))
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, state in states.items():
            if name not in self._files:
                _stand_in(self.folder / name, state)
        return Collected(answer["outcome"], states, self.folder)


def _stand_in(path: Path, state: str) -> None:
    if state == "file" or path.name in ("stdout", "stderr"):
        path.touch()
    elif state == "link":
        path.symlink_to("elsewhere")
    elif state == "large":
        with path.open("wb") as file:
            file.truncate(MOST_RESULT_BYTES + 1)
    elif state != "missing":
        path.mkdir()
