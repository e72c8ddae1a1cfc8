"""The Health pane: the machine that runs the trials, stage by stage and GPU by GPU."""

from __future__ import annotations

from collections.abc import Iterator

from sessions.host.events import Gpu, TargetView
from tui.line import Line, Lines, Part, line_of, row, wrapped
from tui.numbers import round_trip_text, rounded, span_text
from tui.plain import padded, plain
from tui.showing import STALE_AFTER_S, Probe, Showing, Stage

_STAGE_ROLES = {"ok": "ok", "failed": "bad", "skipped": "dim"}
_WIDTH = 10
EMPTY = "not looked at yet: r probes, T chooses another target"


def health_head(showing: Showing, width: int) -> Line:
    """One line: temperature, power, clock, memory, processes; or what is wrong, and how old it is."""
    target, probe = showing.target, showing.probe
    if probe.running:
        return line_of(("probing the target", "warn"))
    gpus = gpus_shown(showing)
    parts = (
        [Part(line_of((f"{target.state.upper()} {plain(target.sentence)}", "bad")), 0)]
        if target.sentence
        else []
    )
    if probe.sentence and not target.sentence:
        parts.append(Part(line_of((plain(probe.sentence), "bad")), 0))
    parts += [Part(_gpu_short(gpus[0], len(gpus)), 2, cuts=True)] if gpus else []
    if not gpus and not parts:
        parts.append(Part(_without_gpu(showing), 2))
    parts.append(Part(_age(showing), 1))
    return row(parts, width, "  ", showing.glyphs.ascii)


def _wrong(target: TargetView, probe: Probe) -> list[Part]:
    if target.sentence:
        return [Part(line_of((f"{target.state.upper()} {plain(target.sentence)}", "bad")), 0, cuts=True)]
    return [Part(line_of((plain(probe.sentence), "bad")), 0, cuts=True)] if probe.sentence else []


def gpus_shown(showing: Showing) -> tuple[Gpu, ...]:
    """The newest figures there are: the host's samples, or the last probe's."""
    target, probe = showing.target, showing.probe
    newer = probe.target == target.name and probe.at_s > (target.sampled_s or 0.0)
    return probe.gpus if newer and probe.gpus else target.gpus


def sampled_s(showing: Showing) -> float | None:
    target, probe = showing.target, showing.probe
    newest = max(target.sampled_s or 0.0, probe.at_s if probe.target == target.name else 0.0)
    return newest or None


def _without_gpu(showing: Showing) -> Line:
    target = showing.target
    if not target.device and not showing.probe.at_s:
        return line_of((EMPTY, "dim"))
    told = next((stage.sentence for stage in showing.probe.stages if stage.name == "gpu"), "")
    why = plain(told) or ("r probes" if not showing.probe.at_s else "none found")
    return line_of(plain(target.device) or plain(target.name), (f"  no GPU figures: {why}", "dim"))


def _gpu_short(gpu: Gpu, count: int) -> Line:
    words = [*(f"throttled: {plain(one)}" for one in gpu.throttle if one != "idle"), *_figures(gpu)]
    more = [f"and {count - 1} more GPUs"] if count > 1 else []
    return line_of(" ".join(words + more))


def _figures(gpu: Gpu) -> Iterator[str]:
    """Rounded, so that what nobody would notice repaints nothing."""
    if (temperature := rounded(gpu.temperature_c, 5)) is not None:
        yield f"{temperature}C"
    if (power := rounded(gpu.power_w, 10)) is not None:
        yield f"{power}/{gpu.power_limit_w:.0f}W" if gpu.power_limit_w else f"{power}W"
    if gpu.clock_mhz is not None:
        yield f"{gpu.clock_mhz:.0f}MHz"
    if gpu.memory_used_mb is not None and gpu.memory_total_mb:
        yield f"mem {gpu.memory_used_mb / 1024:.0f}/{gpu.memory_total_mb / 1024:.0f}G"
    yield f"processes {gpu.processes}" if gpu.processes else "no other process"


def _age(showing: Showing) -> Line:
    """Told only once it is old: a running clock would repaint for nothing."""
    age_s = showing.age_s(sampled_s(showing)) if gpus_shown(showing) else None
    if age_s is None or age_s < STALE_AFTER_S:
        return ()
    return line_of((f"STALE {span_text(age_s // 60 * 60)} old", "warn"))


def health_body(showing: Showing, width: int) -> Lines:
    """The open pane."""
    lines = [*_where(showing), *_trouble(showing), *_stages(showing.probe), *_gpu_lines(showing)]
    return wrapped(lines, width)


def _named(name: str, *pieces: str | tuple[str, str]) -> Line:
    return line_of((padded(name, _WIDTH), "dim"), *pieces)


def _where(showing: Showing) -> Iterator[Line]:
    target = showing.target
    yield _named("target", (plain(target.name), "strong"))
    if target.device:
        yield _named("device", plain(target.device))
    role = {"connected": "ok", "lost": "bad", "connecting": "warn"}.get(target.state, "dim")
    rtt = "" if target.rtt_ms is None else f", {round_trip_text(target.rtt_ms)} ms there and back"
    yield _named("state", (target.state, role), rtt)
    if age := _age(showing):
        yield _named("figures", *((span.text, span.role) for span in age))


def _trouble(showing: Showing) -> Iterator[Line]:
    told = [(showing.target.sentence, showing.target.hint), (showing.probe.sentence, showing.probe.hint)]
    for sentence, hint in dict.fromkeys(told):
        if sentence:
            yield line_of((plain(sentence), "bad"))
            yield line_of((plain(hint) or "r tries again, T chooses another target", "dim"))
    if showing.probe.running:
        yield line_of(("probing: connection, login, Python, scratch folder, GPU", "warn"))
    elif not showing.probe.at_s and not showing.target.gpus:
        yield line_of((EMPTY, "dim"))


def _stages(probe: Probe) -> Iterator[Line]:
    if probe.stages:
        yield line_of()
    for stage in probe.stages:
        yield _stage(stage)
        if stage.remedy:
            yield line_of((f"  what to do: {plain(stage.remedy)}", "dim"))


def _stage(stage: Stage) -> Line:
    took = "" if stage.ms is None else f" {stage.ms:.0f}ms"
    word = padded(stage.state, 9)
    return line_of(
        (padded(plain(stage.name), _WIDTH), "dim"), (word, _STAGE_ROLES.get(stage.state, "dim")), took,
        f" {plain(stage.sentence)}" if stage.sentence else "",
    )  # fmt: skip


def _gpu_lines(showing: Showing) -> Iterator[Line]:
    gpus = gpus_shown(showing)
    if gpus:
        yield line_of()
    for gpu in gpus:
        yield line_of((f"GPU {gpu.index} {plain(gpu.name)}", "strong"))
        yield line_of("  " + "  ".join(_figures(gpu)))
        for reason in gpu.throttle:
            if reason != "idle":
                yield line_of((f"  throttled: {plain(reason)}", "warn"))
    for process in showing.probe.processes:
        yield line_of((f"  in use by {plain(process)}", "warn"))
