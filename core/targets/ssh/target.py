"""An SSH target: each job in a folder of its own over there, judged here exactly as a local one is."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from getpass import getuser
from pathlib import Path

from core.errors import StorageFault, TargetFault
from core.records import fileset_id
from core.store import Blobs
from core.targets.cross_check import CrossCheck
from core.targets.job import Job, Outcome, TargetFacts
from core.targets.regular_file import read_regular
from core.targets.result import Asked, Ended, judge
from core.targets.ssh.host import SMI, SMI_ANSWERS_WITHIN_S, SshHost
from core.targets.ssh.link import NoteSink
from core.targets.ssh.remote_layout import Layouts, Seal, WorkspaceContents, written_into
from core.targets.ssh.remote_sync import ANSWERS_WITHIN_S, RemoteSync
from core.targets.ssh.remote_trials import Collected, GpuLook, LockWish, RemoteTrial, RemoteTrials
from core.targets.staging import Materials, first_change
from core.targets.texts import plain
from core.words import Status
from core.workspace.config import Objective

LOCK_WAIT_S = 600.0
CPU_LOCK = "cpu"
GPU_SEEN = "gpu.json"  # beside a trial's output: the GPU before and after it
_MOST_CAPTURED_BYTES = 8 << 20
_CLEARED_UP_WITHIN_S = 5.0
_LOOKS_AGAIN_AFTER_S = 0.02
_PERHAPS_THE_GPUS_FAULT = (Status.CRASH, Status.TIMEOUT)
_LACKS_A_MODULE = "ModuleNotFoundError: "
_END_OF_STDERR = 2000
_HOLDS_S = 10.0
_LINKS_THAT_DO_NOT_HOLD = 6  # one after the other, before no other is tried
_MOST_UNCOLLECTED = 8  # earlier ones were forgotten there with the request of a later one


class SshTarget:
    """Runs jobs on an opened host. `run` answers with an outcome whatever happens to a job or the link."""

    def __init__(
        self,
        host: SshHost,
        materials: Materials,
        blobs: Blobs,
        objective: Objective,
        keeps_host: bool = False,
    ) -> None:
        self._host = host
        self._keeps_host = keeps_host  # the next call uses its connection
        self._objective = objective
        self._contents = WorkspaceContents(blobs)
        self._layouts = Layouts(materials, self._contents)
        self._seal = Seal(materials.protected, blobs, first_change)
        self._trials: RemoteTrials | None = None
        self._uncollected: list[str] = []
        self._cross_check = CrossCheck()

    @property
    def name(self) -> str:
        return self._host.name

    def facts(self) -> TargetFacts:
        return self._host.facts()

    async def open(self) -> None:
        await self._host.open()

    async def run(self, job: Job) -> Outcome:
        return await self._cross_check.run(job, self._run_once)

    async def _run_once(self, job: Job) -> Outcome:
        try:
            job.output_dir.mkdir(parents=True, exist_ok=True)
            trial, collected = await self._ran(job)
            if collected.outcome.get("gpu"):
                (job.output_dir / GPU_SEEN).write_text(json.dumps(collected.outcome["gpu"]))
            forked = bool(collected.outcome.get("forked"))
            outcome = replace(self._judged(job, trial, collected), forked=forked)
            if outcome.status in _PERHAPS_THE_GPUS_FAULT:
                self._host.distrust()
            return outcome
        except TargetFault as fault:
            self._host.distrust()
            return Outcome(Status.INFRA, plain(fault.sentence), fault.stage)
        except (OSError, StorageFault) as error:
            told = error.sentence if isinstance(error, StorageFault) else error.strerror or str(error)
            return Outcome(Status.INFRA, f"the trial could not be kept: {plain(told)}", "scratch")

    async def _ran(self, job: Job) -> tuple[RemoteTrial, Collected]:
        """A trial of the files as they are, and what it left.

        Where there are many, those whose status says that nothing changed are read while the trial runs; if
        one of them says otherwise, the trial was one of other files: it does not count, and runs again. So
        does one for which what was believed could not be sent.
        """
        believed: dict[str, str] | None = {} if self._layouts.many else None
        trial = self._trial(job, believed)
        begun = asyncio.Event()
        reading = asyncio.create_task(self._differing(believed or {}, begun))
        collected: Collected | None = None
        try:
            collected = await self._collected(trial, job.output_dir, lambda _: begun.set())
        except TargetFault as fault:
            if fault.stage != "sync" or not believed:
                raise
        finally:
            begun.set()
            differing = await reading
        if collected is None or differing:
            trial = self._trial(job)
            collected = await self._collected(trial, job.output_dir)
        return trial, collected

    async def _differing(self, believed: dict[str, str], begun: asyncio.Event) -> list[str]:
        """Which files are not what was believed; read once the trial runs, not in the way of its start."""
        await begun.wait()
        return await asyncio.to_thread(self._layouts.differing, believed)

    def _trial(self, job: Job, believed: dict[str, str] | None = None) -> RemoteTrial:
        by_id = {fileset_id(slot.mutable): slot.mutable for slot in job.slots}
        distinct = list(by_id)
        place, gpu = self._host.place, self._host.gpu_uuid
        return RemoteTrial(
            argv=job.command,
            wall_s=job.timeout_s,
            cpu_s=job.cpu_s,
            trees=tuple(self._layouts.trees(by_id.values(), believed)),
            nonce=secrets.token_hex(16),
            slots=tuple(distinct.index(fileset_id(slot.mutable)) for slot in job.slots),
            visits=job.visits,
            wrapper=place.wrapper,
            env=self._environment(),
            path_first=self._host.path_first,
            lock=LockWish(gpu or CPU_LOCK, getuser(), socket.gethostname(), LOCK_WAIT_S),
            prefork=job.prefork,
            look=GpuLook(gpu, SMI, SMI_ANSWERS_WITHIN_S) if gpu else None,
        )

    def _environment(self) -> Mapping[str, str | None]:
        """Of several GPUs, or when one was named, the trial sees only that one, whose lock it holds.

        Its UUID means the same to CUDA as to us.
        """
        place = self._host.place
        one_of = place.gpu or self._host.gpu_count > 1
        chosen = {"CUDA_VISIBLE_DEVICES": self._host.gpu_uuid} if one_of else {}
        return {**chosen, **place.environment}

    async def _collected(
        self, trial: RemoteTrial, folder: Path, on_note: NoteSink | None = None
    ) -> Collected:
        """What the trial left; one that found a content gone or spoilt over there is run once more, with it.

        After a lost link it is looked for again, over a new one.
        """
        collected = await self._collected_once(trial, folder, on_note)
        if collected.outcome.get("stage") == "sync":
            again = replace(trial, id=secrets.token_hex(16))
            collected = await self._collected_once(again, folder, on_note)
        return collected

    async def _collected_once(self, trial: RemoteTrial, folder: Path, on_note: NoteSink | None) -> Collected:
        trials = await self._linked()
        self._uncollected = [*self._uncollected[-_MOST_UNCOLLECTED:], trial.id]
        try:
            collected = await trials.run(trial, folder, on_note)
        except TargetFault as fault:
            if not trials.link.lost:
                raise
            collected = await self._collected_again(trial, folder, trials.link.lost or fault.sentence)
        return collected

    async def _collected_again(self, trial: RemoteTrial, folder: Path, lost: str) -> Collected:
        """A request with the id of a trial that runs there already attaches to it.

        A link that is lost once more is made once more, as long as the trial could still have an outcome to
        collect; but not for ever where none of them holds.
        """
        until_s = time.monotonic() + trial.deadline_s
        left = _LINKS_THAT_DO_NOT_HOLD
        while True:
            began_s = time.monotonic()
            try:
                trials = await self._linked()
                return await trials.run(trial, folder)
            except TargetFault as again:
                now_s = time.monotonic()
                left = _LINKS_THAT_DO_NOT_HOLD if now_s > began_s + _HOLDS_S else left - 1
                if again.stage != "lost" or self._host.is_linked or not left or now_s > until_s:
                    why = f"the link to {self.name} was lost ({lost}), and then: {again.sentence}"
                    raise TargetFault("lost", why, again.hint) from None

    async def _linked(self) -> RemoteTrials:
        link = await self._host.link()
        if self._trials is None or self._trials.link is not link:
            self._trials = RemoteTrials(link, RemoteSync(link, self._contents))
        return self._trials

    def _judged(self, job: Job, trial: RemoteTrial, collected: Collected) -> Outcome:
        ended = _ended(job, collected)
        started = "not_started" not in collected.outcome
        tampering = self._seal.tampering(collected) if started else ""
        if tampering:
            return Outcome(
                Status.TAMPERED, plain(tampering), exit_code=ended.exit_code, duration_s=ended.duration_s
            )
        if ended.ended_by == "lease":
            raise TargetFault("lost", f"{self.name} ended the trial: nobody had been connected for too long")
        asked = Asked(
            self._objective, job.mode, trial.nonce, job.timeout_s, job.needs_score, job.score_slot,
            job.own_channel, job.cpu_s,
        )  # fmt: skip
        stdout, stderr = (_text(collected.folder / name) for name in ("stdout", "stderr"))
        outcome = judge(asked, ended, collected.folder / "result", stdout, stderr)
        if outcome.status is Status.CRASH and _LACKS_A_MODULE in stderr[-_END_OF_STDERR:]:
            outcome = replace(outcome, reason=f"{outcome.reason}; {self._lacking}")
        return replace(outcome, notes=outcome.notes + _notes(collected))

    @property
    def _lacking(self) -> str:
        """What a program imports must be over there; a path of the user's is not said."""
        python = self._host.place.python.rpartition("/")[2] or "python3"
        return f"{python} on {self.name} lacks it: kerneldeck target add … --python PATH"

    async def close(self) -> None:
        """Leave nothing of ours over there but what the next connection reuses."""
        trials, self._trials = self._trials, None
        try:
            if trials is not None and not trials.link.lost:
                with suppress(TargetFault):
                    await self._forget(trials)
        finally:
            if not self._keeps_host:
                await self._host.close()

    async def _forget(self, trials: RemoteTrials) -> None:
        """A trial whose outcome has just come is still being cleared up: it is asked about again."""
        until_s = time.monotonic() + _CLEARED_UP_WITHIN_S
        while self._uncollected and time.monotonic() < until_s:
            answer = await trials.link.request("forget", {"trials": self._uncollected}, ANSWERS_WITHIN_S)
            self._uncollected = [str(trial) for trial in answer["left"]]
            if self._uncollected:
                await asyncio.sleep(_LOOKS_AGAIN_AFTER_S)


def _ended(job: Job, collected: Collected) -> Ended:
    """A program that could not be started is told by its name."""
    try:
        return collected.ended
    except TargetFault as fault:
        if fault.stage != "spawn":
            raise
        sentence = f"{plain(job.command[0])} could not be started: {fault.sentence}"
        raise TargetFault("spawn", sentence, fault.hint) from None


def _notes(collected: Collected) -> tuple[str, ...]:
    names = written_into(collected.outcome)
    notes = [f"{name} was written into; the workspace's own is untouched" for name in names]
    gpu = collected.outcome.get("gpu") or {}
    for when in ("before", "after"):
        others = gpu.get(when, {}).get("processes", [])
        if others:
            count = len(others)
            notes.append(f"{count} other {'process' if count == 1 else 'processes'} on the GPU {when} it")
    card = gpu.get("after", {}).get("card") or {}
    held_back = [str(reason) for reason in card.get("throttle_reasons") or () if reason != "idle"]
    if held_back:
        notes.append(f"the GPU was throttled after it: {', '.join(held_back)}")
    if collected.outcome.get("note"):
        notes.append(str(collected.outcome["note"]))
    return tuple(plain(note) for note in notes)


def _text(path: Path) -> str:
    return read_regular(path, _MOST_CAPTURED_BYTES).decode("utf-8", "replace")
