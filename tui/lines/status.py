"""The pinned row: where trials run, the connection, the sweep, the best, how long."""

from __future__ import annotations

from sessions.host.events import Work
from sessions.host.snapshot import SweepView
from tui.line import Line, Part, Span, joined, line_of, row, width_of
from tui.numbers import clock_text, round_trip_text, score_text
from tui.plain import fit, plain
from tui.showing import CONNECTED, ENDED, Showing

_LONGEST_NAME = 24
STATE_ROLES = {"RUN": "run", "PAUSED": "warn", "DONE": "ok", "STOPPED": "warn", "FAILED": "bad"}


def status_line(showing: Showing, width: int) -> Line:
    """The row; what does not fit goes in the order of its rank, the target's name and the sweep last."""
    name, device = plain(showing.target.name), fit(plain(showing.target.device), _LONGEST_NAME)
    named = line_of((name, "strong"))
    rest = [
        Part(_link(showing), 1 if showing.target.state == "lost" or not showing.live else 4),
        Part(_work(showing), 0),
        Part(_best(showing), 1),
        Part(_paused_by(showing.sweep), 5),
        Part(line_of(("reads only", "warn")) if showing.readonly else (), 2),
        Part(_elapsed(showing), 3),
    ]
    bar = f" {showing.glyphs.divider} "
    if device and device != name:
        full = line_of((f"{name} {device}", "strong"))
        # The device is worth its place only where nothing but the connection's word goes for it.
        if width_of(joined([full, *(part.line for part in rest[1:] if part.line)], bar)) <= width - 2:
            named = full
    return (Span(" "), *row([Part(named, 0), *rest], width - 2, bar, showing.glyphs.ascii))


def _link(showing: Showing) -> Line:
    if showing.link.state != CONNECTED:
        role = "warn" if showing.link.state != ENDED else "bad"
        return line_of((f"host {showing.link.state}", role))
    target = showing.target
    if target.state == "lost":
        return line_of((f"LOST at {plain(target.stage)}", "bad"))
    if target.state == "connecting":
        return line_of(("connecting", "warn"))
    if target.state == "connected":
        rtt = "" if target.rtt_ms is None else f" {round_trip_text(target.rtt_ms)}ms"
        return line_of((f"up{rtt}", "ok"))
    return line_of((plain(target.state), "dim"))


def sweep_name(showing: Showing, sweep: SweepView) -> str:
    name = plain(showing.workspace.name) if showing.workspace else "sweep"
    return f"{fit(name, 20)}#{sweep.id:02}"


def done_of(sweep: SweepView) -> int:
    """How many of a sweep's candidates are screened."""
    return sum(sweep.counts.values())


def _work(showing: Showing) -> Line:
    sweep, work = showing.sweep, showing.snapshot.work
    if sweep is not None and (not sweep.ended or work is None):
        state = (sweep.state, STATE_ROLES.get(sweep.state, ""))
        phase = f" {sweep.phase}" if sweep.phase not in ("", "screen") and not sweep.ended else ""
        return line_of(f"{sweep_name(showing, sweep)} ", state, f" {done_of(sweep)}/{sweep.total}{phase}")
    if work is not None:
        return line_of(f"{_verb(work)} ", ("RUN", "run"))
    return line_of((_idle(showing), "dim"))


def _verb(work: Work) -> str:
    words = plain(work.command or work.operation).removeprefix("kerneldeck ")
    return fit(words, 30)


def _idle(showing: Showing) -> str:
    name = plain(showing.workspace.name) if showing.workspace else ""
    return f"{fit(name, 24)} idle".strip() if showing.live else name


def _best(showing: Showing) -> Line:
    workspace = showing.workspace
    if workspace is None:
        return ()
    if workspace.best is None:
        return line_of(("best none yet", "dim"))
    trial = f" #{workspace.best.trial_id}" if workspace.best.trial_id else ""
    return line_of("best ", (score_text(workspace.best.score, plain(workspace.unit)), "best"), trial)


def _paused_by(sweep: SweepView | None) -> Line:
    if sweep is None or not sweep.paused_by:
        return ()
    return line_of((f"paused by {plain(sweep.paused_by)}", "warn"))


def _elapsed(showing: Showing) -> Line:
    work, sweep = showing.snapshot.work, showing.sweep
    if sweep is not None and sweep.began_s and not (sweep.ended and work):
        end_s = sweep.ended_s if sweep.ended_s is not None else showing.now_s
        return line_of(clock_text(end_s - sweep.began_s))
    if work is not None and work.began_s:
        return line_of(clock_text(showing.now_s - work.began_s))
    return ()
