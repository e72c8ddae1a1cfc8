"""Targets and their health as text."""

from __future__ import annotations

from core.targets.ssh.places import MIN_FREE_MB, SCRATCH_LIMIT_MB
from core.words import JsonObject
from kerneldeck.text import printable

_DONE = {"added": "added", "in_use": "now in use:", "removed": "removed"}


def render_health(content: JsonObject) -> None:
    """One line a stage, one a GPU."""
    age = f", {content['age_s']:.0f} s ago" if content["cached"] else ""
    python = f", Python {content['python']}" if content["python"] else ""
    free = f", {content['free_mb']:,.0f} MB free" if content["free_mb"] is not None else ""
    _say(f"{content['target']}: {content['status']}{age}{python}{free}")
    for stage in content["stages"]:
        ms = "" if stage["ms"] is None else f"  {stage['ms']:.0f} ms"
        sentence = f"  {stage['sentence']}" if stage["sentence"] else ""
        _say(f"  {stage['state']:<8}{stage['stage']:<9}{stage['title']}{ms}{sentence}")
        if stage["remedy"]:
            _say(f"          what to do: {stage['remedy']}")
    index_of = {gpu.get("uuid"): gpu["index"] for gpu in content["gpus"]}
    for gpu in content["gpus"]:
        here = " (trials run on it)" if gpu.get("uuid") == content["trial_gpu"] else ""
        _say(f"  GPU {gpu['index']}{here}: {_gpu(gpu)}")
    for process in content["processes"] or ():
        memory = "" if process["memory_mib"] is None else f", {process['memory_mib']:,.0f} MiB"
        _say(
            f"  GPU {index_of.get(process['gpu'], process['gpu'])} is in use by process {process['pid']} "
            f"({process['name']}{memory})"
        )


def _gpu(gpu: JsonObject) -> str:
    units = {
        "temperature_c": " °C",
        "power_w": " W",
        "sm_clock_mhz": " MHz",
        "utilization_percent": " % busy",
    }
    figures = [f"{_figure(gpu[key])}{unit}" for key, unit in units.items() if gpu.get(key) is not None]
    used, total = (_figure(gpu.get(f"memory_{what}_mib")) for what in ("used", "total"))
    throttled = [f"throttled by {reason}" for reason in gpu.get("throttle_reasons") or () if reason != "idle"]
    memory = f"{used} of {total} MiB used"
    return ", ".join([str(gpu["name"]), f"driver {gpu['driver']}", memory, *figures, *throttled])


def _figure(value: object) -> str:
    """Whole where it is a number; as nvidia-smi wrote it otherwise."""
    try:
        return f"{float(str(value)):,.0f}"
    except ValueError:
        return "?" if value is None else str(value)


def dry_health(content: JsonObject) -> None:
    _say(f"{content['target']}: would check {', '.join(content['would_check'])}")


def render_targets(content: JsonObject) -> None:
    """What was done, the described targets, and where trials run."""
    if content["outcome"] in _DONE:
        _say(f"{_DONE[content['outcome']]} {content['name']}")
    for row in content["targets"]:
        gpu = f", GPU {row['gpu']}" if row["gpu"] else ""
        about = f"  {row['description']}" if row["description"] else ""
        _say(f"{'*' if row['in_use'] else ' '} {row['name']}: {row['host']}{gpu}{about}")
        details = _details(row)
        if details:
            _say(f"    {details}")
    if content.get("warning"):
        _say(f"warning: {content['warning']}")
    _say(f"trials run on: {content['default']} ({content['default_from']})")
    for command in content.get("next", ()):
        _say(f"next: {command}")


def _details(row: JsonObject) -> str:
    """What the description says beyond the host, in short."""
    said = {
        "python": row["python"],
        "scratch": row["scratch"],
        "wrapper": " ".join(row["wrapper"]),
        "variables": " ".join(row["environment"]),
        "key": "its own" if row["own_key"] else "",
        "scratch below": _megabytes(row["scratch_limit_mb"], SCRATCH_LIMIT_MB),
        "free at least": _megabytes(row["min_free_mb"], MIN_FREE_MB),
    }
    return ", ".join(f"{name} {value}" for name, value in said.items() if value)


def _megabytes(value: float, usual: float) -> str:
    return "" if value == usual else f"{value:,.0f} MB"


def render_clean(content: JsonObject) -> None:
    freed, kept, free = (content[f"{name}_bytes"] / 1e6 for name in ("freed", "kept", "free"))
    _say(f"{content['target']}: freed {freed:,.1f} MB, kept {kept:,.1f} MB; {free:,.0f} MB are free there")


def dry_clean(content: JsonObject) -> None:
    _say(f"{content['target']}: would remove ended trials, and contents beyond {content['keep_mb']:g} MB")


def _say(text: str) -> None:
    print(printable(text))
