"""The local machine as a target: each job in a staging folder, under a watchdog of its own."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from core.errors import StorageFault, TargetFault
from core.targets.cross_check import CrossCheck
from core.targets.job import GRACE_S, Job, Outcome, TargetFacts
from core.targets.parents import Parents
from core.targets.prefork import IMPORT_WITHIN_S, Declined, declined_note
from core.targets.regular_file import read_regular
from core.targets.result import Asked, Ended, judge
from core.targets.staging import Stage, Staging
from core.targets.supervisor_client import SupervisorClient
from core.targets.texts import plain
from core.words import JsonObject, Status
from core.workspace.config import Objective

_MOST_CAPTURED_BYTES = 8 << 20  # the supervisor keeps less
_COMPILER_ANSWERS_WITHIN_S = 10


class LocalTarget:
    """Runs jobs here. `run` answers with an outcome whatever happens to a job."""

    name = "local"

    def __init__(
        self, staging: Staging, objective: Objective, import_within_s: float = IMPORT_WITHIN_S
    ) -> None:
        self._staging = staging
        self._objective = objective
        self._supervisor = SupervisorClient()
        self._parents = Parents(import_within_s)
        self._cross_check = CrossCheck()

    def facts(self) -> TargetFacts:
        return local_facts()

    async def run(self, job: Job) -> Outcome:
        return await self._cross_check.run(job, self._run_once)

    async def _run_once(self, job: Job) -> Outcome:
        try:
            job.output_dir.mkdir(parents=True, exist_ok=True)
            stage = self._staging.lay_out(job.slots)
        except (OSError, StorageFault) as error:
            return Outcome(Status.INFRA, f"the trial could not be laid out: {_told(error)}", "scratch")
        try:
            return await self._run_staged(job, stage)
        except TargetFault as fault:
            return Outcome(Status.INFRA, fault.sentence, fault.stage)
        except (OSError, StorageFault) as error:
            return Outcome(Status.INFRA, f"the trial could not be kept: {_told(error)}", "scratch")
        finally:
            stage.remove()

    async def _run_staged(self, job: Job, stage: Stage) -> Outcome:
        nonce = secrets.token_hex(16)
        if job.visits:
            stage.visits_file.write_text(job.visits)
        request = {
            "argv": list(job.command),
            "cwd": str(stage.folders[0]),
            "env": _environment(job, stage, nonce),
            "wall_s": job.timeout_s,
            "grace_s": GRACE_S,
            "cpu_s": job.cpu_s,
            "stdout": str(job.output_dir / "stdout"),
            "stderr": str(job.output_dir / "stderr"),
        }
        reply, forked, notes = await self._reply(job, request)
        outcome = self._judged(job, stage, nonce, reply)
        return replace(outcome, notes=outcome.notes + notes, forked=forked)

    def _judged(self, job: Job, stage: Stage, nonce: str, reply: JsonObject) -> Outcome:
        if "failure" in reply:
            fault = _fault(job.command[0], reply, stage.folders[0])
            return Outcome(Status.INFRA, fault.sentence, fault.stage)
        ended = _ended(reply)
        polluted = self._staging.drop_changed_copies(stage)
        tampering = self._staging.tampering(stage)
        if tampering:
            return Outcome(
                Status.TAMPERED, plain(tampering), exit_code=ended.exit_code, duration_s=ended.duration_s
            )
        asked = Asked(
            self._objective, job.mode, nonce, job.timeout_s, job.needs_score, job.score_slot,
            job.own_channel, job.cpu_s,
        )  # fmt: skip
        stdout, stderr = (_text(job.output_dir / name) for name in ("stdout", "stderr"))
        outcome = judge(asked, ended, stage.result_file, stdout, stderr)
        written = tuple(f"{name} was written into; the workspace's own is untouched" for name in polluted)
        return replace(outcome, notes=outcome.notes + written)

    async def _reply(self, job: Job, request: JsonObject) -> tuple[JsonObject, bool, tuple[str, ...]]:
        """The supervisor's answer, whether the trial was forked, and what is to be noted of that."""
        notes: tuple[str, ...] = ()
        try:
            reply = await self._parents.run(job.prefork, request)
            if reply is not None:
                return reply, True, ()
        except Declined as declined:
            notes = (plain(declined_note(str(declined))),)
        return await self._supervisor.run(request), False, notes

    async def close(self) -> None:
        await self._parents.close()
        await self._supervisor.close()


def probe_environment() -> dict[str, str]:
    """The caller's environment without variables of ours, and our interpreter first on PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELDECK_")}
    interpreter = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([interpreter, os.environ.get("PATH", os.defpath)])
    return environment


def _environment(job: Job, stage: Stage, nonce: str) -> dict[str, str]:
    """The trial interface's variables; nothing in them tells a candidate why it is run."""
    environment = probe_environment()
    environment.pop("OLDPWD", None)
    environment["PWD"] = str(stage.folders[0])  # inherited, it would lead into the user's folder
    environment["KERNELDECK_RESULT"] = str(stage.result_file)
    environment["KERNELDECK_NONCE"] = nonce
    if len(stage.folders) > 1:
        environment["KERNELDECK_ARMS"] = json.dumps([str(folder) for folder in stage.folders])
    if job.visits:
        environment["KERNELDECK_VISITS"] = str(stage.visits_file)
    return environment


def _fault(program: str, reply: JsonObject, folder: Path) -> TargetFault:
    """Why there is no outcome, from a supervisor's reply that says failure."""
    reason, stage = str(reply["failure"]), str(reply["stage"])
    if stage != "spawn":
        return TargetFault(stage, f"the trial was not seen to its end: {reason}")
    if "/" in program and (folder / program).exists() and "No such file" in reason:
        reason = "its first line names an interpreter that is not there"
    elif "Exec format" in reason:
        reason += "; a script begins with a line like #!/bin/sh"
    return TargetFault(stage, f"{plain(program)} could not be started: {reason}")


def _ended(reply: JsonObject) -> Ended:
    return Ended(
        exit_code=reply["exit_code"],
        signal=reply["signal"],
        ended_by=reply["ended_by"],
        duration_s=reply["duration_s"],
        stdout_left_out=reply["stdout_left_out"],
        stdout_lost=reply["stdout_lost"],
        left_behind=reply["left_behind"],
        survivors=tuple(reply["survivors"]),
        oom_kills=reply["oom_kills"],
    )


def _text(path: Path) -> str:
    """A captured stream as text; bytes that are no UTF-8 become replacement characters."""
    return read_regular(path, _MOST_CAPTURED_BYTES).decode("utf-8", "replace")


def _told(error: OSError | StorageFault) -> str:
    if isinstance(error, StorageFault):
        return error.sentence
    return plain(": ".join(str(part) for part in (error.strerror or error, error.filename) if part))


def local_facts() -> TargetFacts:
    """The processor's model, the system, and the interpreter and C compiler that `python3` and `cc` mean."""
    versions = [f"python {platform.python_version()}"]
    compiler = shutil.which("cc", path=probe_environment()["PATH"])
    if compiler:
        versions.append(_compiler(compiler))
    return TargetFacts(_cpu_model(), f"{platform.system()} {platform.machine()}", ", ".join(versions))


def _compiler(path: str) -> str:
    """The compiler's name and version; only its name when it does not tell."""
    name = Path(path).resolve().name
    try:
        done = subprocess.run(
            [path, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=_COMPILER_ANSWERS_WITHIN_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return name
    version = done.stdout.strip() if done.returncode == 0 else ""
    return f"{name} {plain(version, 40)}".strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
