"""init_workspace: a kerneldeck.toml by looking, or a shipped workspace laid out."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from core.errors import ArgumentFault, StorageFault
from core.operations.declaration import Answer
from core.targets.local import probe_environment
from core.targets.supervisor_client import SupervisorClient
from core.words import JsonObject
from core.workspace.config import WorkspaceConfig
from core.workspace.infer import Inference, Probe, ProbeOutput, infer, refuse_existing, write_new
from core.workspace.needed import needed_files, total_bytes
from core.workspace.templates import TIMING_FILE, lay_out, lay_timing_file
from core.workspace.toml_writer import to_toml

COPY_UP_TO_BYTES = 500_000_000


async def init_workspace(folder: Path, arguments: JsonObject) -> Answer:
    """Nothing that exists is overwritten, whatever is asked."""
    if arguments["template"]:
        return _template(folder, arguments)
    refuse_existing(folder)
    choices = {name: arguments[name] for name in ("benchmark", "verifier", "config", "metric")}
    found = await _inferred(folder, choices, arguments["dev_run"])
    content = _content(folder, found)
    known = arguments["direction"] or any(finding.topic == "direction" for finding in found.findings)
    if found.config is None or not known:
        return Answer({"outcome": "not_enough", **content}, 2)
    config = _as_asked(found.config, arguments)
    content["toml"] = to_toml(config)
    if arguments["dry_run"]:
        return Answer({"outcome": "dry_run", **content})
    content["written"] = [str(write_new(folder, config))]
    if arguments["timing"]:
        content["written"].append(str(lay_timing_file(folder)))
    return Answer({"outcome": "written", **content})


def _as_asked(config: WorkspaceConfig, arguments: JsonObject) -> WorkspaceConfig:
    """What was inferred, with what the person knows better; the timing file is sealed with the benchmark."""
    objective, files = config.objective, config.files
    if arguments["direction"]:
        objective = replace(objective, direction=arguments["direction"])
    if arguments["timing"] and TIMING_FILE not in files.protected:
        files = replace(files, protected=(*files.protected, TIMING_FILE))
    return replace(config, objective=objective, files=files)


def _template(folder: Path, arguments: JsonObject) -> Answer:
    if arguments["dry_run"]:
        raise ArgumentFault("a template is laid out or not; there is nothing to try", "leave out --dry-run")
    written = lay_out(arguments["template"], folder)
    content = {"outcome": "written", "folder": str(folder), "written": [str(path) for path in written],
               "next": [f"cd {folder}", "kerneldeck inspect", "kerneldeck run"]}  # fmt: skip
    return Answer(content)


def _content(folder: Path, found: Inference) -> JsonObject:
    return {
        "folder": str(folder),
        "findings": [asdict(finding) for finding in found.findings],
        "open_points": list(found.open_points),
        "files": found.file_count,
        "file_bytes": found.file_bytes,
        "next": ["kerneldeck inspect", "kerneldeck run"],
    }


async def _inferred(folder: Path, choices: Mapping[str, str], dev_run: bool) -> Inference:
    """Inference runs beside the loop, so that its probes can use the supervisor on it."""
    if not dev_run or not _can_be_copied(folder):
        return infer(folder, None, **choices)
    supervisor = SupervisorClient()
    try:
        with tempfile.TemporaryDirectory(prefix="kerneldeck-init-") as scratch:
            probe = _probe(folder, Path(scratch), supervisor)
            try:
                return await asyncio.to_thread(lambda: infer(folder, probe, **choices))
            finally:
                await supervisor.close()
    except OSError as error:
        raise StorageFault(
            f"the benchmark cannot be run in a copy of the folder: {error.strerror} ({error.filename})",
            "make room or give permission there, or only read the source: --no-dev-run",
        ) from error


def _can_be_copied(folder: Path) -> bool:
    """Whether a throw-away copy is cheap: somebody may have called it in a folder of everything."""
    return folder.is_dir() and total_bytes(folder, needed_files(folder)) <= COPY_UP_TO_BYTES


def _probe(folder: Path, scratch: Path, supervisor: SupervisorClient) -> Probe:
    """Runs a command of the folder in a throw-away copy of it, under a watchdog."""
    loop = asyncio.get_running_loop()

    def probe(command: tuple[str, ...], timeout_s: float) -> ProbeOutput:
        copy, stdout = scratch / "copy", scratch / "stdout"
        if not copy.exists():
            _copy(folder, copy)
        request: JsonObject = {
            "argv": list(command), "cwd": str(copy), "env": probe_environment(), "wall_s": timeout_s,
            "grace_s": 1.0, "stdout": str(stdout), "stderr": str(scratch / "stderr"),
        }  # fmt: skip
        reply = asyncio.run_coroutine_threadsafe(supervisor.run(request), loop).result()
        if "failure" in reply:
            return ProbeOutput("", None, str(reply["failure"]))
        note = "" if reply["ended_by"] == "itself" else f"ended by {reply['ended_by']}"
        return ProbeOutput(stdout.read_text("utf-8", "replace"), reply["exit_code"], note)

    return probe


def _copy(folder: Path, copy: Path) -> None:
    for name in needed_files(folder):
        place = copy / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, place)
