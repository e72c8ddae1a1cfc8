"""What a contract says of the remote machine, and what is kept there.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH108, PTH119, PTH123, PTH208

from __future__ import annotations

import os
import platform
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.targets.remove_tree import remove_tree
    from core.targets.ssh import agent_trials as trials
    from core.targets.ssh.agent_gpu import ask, gpus
    from core.targets.ssh.agent_quota import blobs
    from core.targets.ssh.agent_scratch import room
    from core.targets.ssh.agent_store import mark_cleaned
    from core.targets.ssh.wire import Fault, Json
else:
    import agent_trials as trials
    from agent_gpu import ask, gpus
    from agent_quota import blobs
    from agent_scratch import room
    from agent_store import mark_cleaned
    from remove_tree import remove_tree
    from wire import Fault

ANSWERS_WITHIN_S = 10.0
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,38}")


def facts(env: dict[str, str], smi: str, deadline_s: float) -> Json:
    """Processor, system, the versions of `python3` and `cc` as a trial finds them, and the GPUs."""
    answer: Json = {
        "cpu": _cpu_model(),
        "system": f"{platform.system()} {platform.machine()}",
        "kernel": platform.release(),
        "toolchain": ", ".join(filter(None, (_python(env), _compiler(env)))),
        "gpus": [],
        "no_gpus_because": "",
        "smi_found": bool(smi) and shutil.which(smi) is not None,
    }
    if smi:
        try:
            answer["gpus"] = gpus(smi, deadline_s)["gpus"]
        except Fault as fault:
            answer["no_gpus_because"] = fault.sentence
    return answer


def _python(env: dict[str, str]) -> str:
    version = _version(env, "python3", "--version")
    return f"python {version}" if version else ""


def _compiler(env: dict[str, str]) -> str:
    path = shutil.which("cc", path=env.get("PATH", os.defpath))
    if path is None:
        return ""
    name = os.path.basename(os.path.realpath(path))
    return f"{name} {_version(env, path, '-dumpfullversion', '-dumpversion')}".strip()


def _version(env: dict[str, str], program: str, *words: str) -> str:
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        return ""
    try:
        said = ask([found, *words], ANSWERS_WITHIN_S, env)
    except OSError:
        return ""
    version = _VERSION.search(said.out) if said.exit_code == 0 else None
    return version.group() if version else ""


def _cpu_model() -> str:
    with suppress(OSError), open("/proc/cpuinfo", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def kept() -> Json:
    """Bytes and files of the blobs, how many trials lie here in which state, and what is free."""
    sizes = [each.size for each in blobs()]
    states = [row["state"] for row in trials.listing()]
    counted = {state: states.count(state) for state in sorted(set(states))}
    return {"blob_bytes": sum(sizes), "blob_files": len(sizes), "trials": counted, "room": room()}


def clean(most_bytes: int, trials_older_than_s: float) -> Json:
    """Remove finished trials by age, then the blobs longest unused until `most_bytes` are left.

    Links of running trials keep their contents.
    """
    before = kept()
    for row in trials.listing():
        if row["state"] != "running" and row["age_s"] >= trials_older_than_s:
            trials.forget(row["trial"])
    found = sorted(blobs(), key=lambda one: one.order)
    left = sum(each.size for each in found)
    for each in found:
        if left <= most_bytes:
            break
        if each.remove():
            left -= each.size
    mark_cleaned()
    return {"before": before, "after": kept()}


def drop_blobs() -> None:
    """After a restart nothing that was not flushed is believed."""
    for folder in ("blobs", "manifests"):
        for name in os.listdir(folder):
            with suppress(OSError):
                remove_tree(Path(f"{folder}/{name}"))
    with suppress(OSError):
        os.unlink("held")
