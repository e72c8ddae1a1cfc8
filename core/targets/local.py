"""The local machine as a target: each job in a staging folder, under a watchdog of its own."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import sys
from pathlib import Path

from core.errors import StorageFault, TargetFault
from core.targets.job import GRACE_S, Job, Outcome, TargetFacts
from core.targets.result import Asked, Ended, judge
from core.targets.staging import Stage, Staging
from core.targets.supervisor_client import SupervisorClient
from core.words import JsonObject, Status
from core.workspace.config import Objective


class LocalTarget:
    """Runs jobs here. `run` answers with an outcome whatever happens to a job."""

    name = "local"

    def __init__(self, staging: Staging, objective: Objective) -> None:
        self._staging = staging
        self._objective = objective
        self._supervisor = SupervisorClient()

    def facts(self) -> TargetFacts:
        return local_facts()

    async def run(self, job: Job) -> Outcome:
        try:
            job.output_dir.mkdir(parents=True, exist_ok=True)
            stage = self._staging.lay_out(job.slots)
        except (OSError, StorageFault) as error:
            return Outcome(Status.INFRA, f"the trial could not be laid out: {error}", "scratch")
        try:
            return await self._run_staged(job, stage)
        except TargetFault as fault:
            return Outcome(Status.INFRA, fault.sentence, fault.stage)
        finally:
            stage.remove()

    async def _run_staged(self, job: Job, stage: Stage) -> Outcome:
        nonce = secrets.token_hex(16)
        visits = _visits_file(job, stage)
        stdout, stderr = job.output_dir / "stdout", job.output_dir / "stderr"
        reply = await self._supervisor.run(
            {
                "argv": list(job.command),
                "cwd": str(stage.folders[0]),
                "env": _environment(job, stage, nonce, visits),
                "wall_s": job.timeout_s,
                "grace_s": GRACE_S,
                "stdout": str(stdout),
                "stderr": str(stderr),
            }
        )
        if visits is not None:
            visits.unlink(missing_ok=True)
        if "failure" in reply:
            raise TargetFault("spawn", f"{job.command[0]} could not be started: {reply['failure']}")
        tampering = self._staging.tampering(stage)
        self._staging.drop_changed_copies(stage)
        ended = _ended(reply)
        if tampering:
            return Outcome(Status.TAMPERED, tampering, exit_code=ended.exit_code, duration_s=ended.duration_s)
        asked = Asked(self._objective, job.mode, nonce, job.needs_score)
        return judge(asked, ended, stage.result_file, _text(stdout), _text(stderr))

    async def close(self) -> None:
        await self._supervisor.close()


def _visits_file(job: Job, stage: Stage) -> Path | None:
    if not job.visits:
        return None
    path = stage.result_file.with_suffix(".visits")
    path.write_text(job.visits)
    return path


def probe_environment() -> dict[str, str]:
    """The caller's environment without variables of ours, and our interpreter first on PATH."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNELDECK_")}
    interpreter = str(Path(sys.executable).parent)
    environment["PATH"] = os.pathsep.join([interpreter, os.environ.get("PATH", os.defpath)])
    return environment


def _environment(job: Job, stage: Stage, nonce: str, visits: Path | None) -> dict[str, str]:
    """The trial interface's variables; nothing in them tells a candidate why it is run."""
    environment = probe_environment()
    environment["KERNELDECK_RESULT"] = str(stage.result_file)
    environment["KERNELDECK_NONCE"] = nonce
    if len(stage.folders) > 1:
        environment["KERNELDECK_ARMS"] = json.dumps([str(folder) for folder in stage.folders])
    if visits is not None:
        environment["KERNELDECK_VISITS"] = str(visits)
    if job.warm_s is not None:
        environment["KERNELDECK_WARM_S"] = str(job.warm_s)
    return environment


def _ended(reply: JsonObject) -> Ended:
    return Ended(
        exit_code=reply["exit_code"],
        signal=reply["signal"],
        ended_by=reply["ended_by"],
        duration_s=reply["duration_s"],
        left_behind=reply["left_behind"],
        oom_kills=reply["oom_kills"],
    )


def _text(path: Path) -> str:
    """A captured stream as text; bytes that are no UTF-8 become replacement characters."""
    return path.read_bytes().decode("utf-8", "replace")


def local_facts() -> TargetFacts:
    """The processor's model, the system, and the interpreter and C compiler that `python3` and `cc` mean."""
    compiler = shutil.which("cc")
    versions = [f"python {platform.python_version()}"]
    if compiler:
        versions.append(Path(compiler).resolve().name)
    return TargetFacts(_cpu_model(), f"{platform.system()} {platform.machine()}", ", ".join(versions))


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )
