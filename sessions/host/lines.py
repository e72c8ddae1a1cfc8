"""Events as single lines: for the last-event line of a screen, for logs, and for screen readers."""

from __future__ import annotations

from core import events as engine
from core.figures import figure
from core.records import TrialRecord
from sessions.host import events as host
from sessions.host.events import Numbered

_SHORT_ID = 12


def line_of(numbered: Numbered) -> str:
    """What happened, as one line without a time; empty for what nobody needs to be told."""
    event = numbered.event
    return _engine_line(event) or _sweep_line(event) or _host_line(event, numbered.actor)


def _engine_line(event: host.Event) -> str:
    match event:
        case engine.TrialBegan(trial):
            return f"trial #{trial.id} began: {trial.purpose}, mode {trial.mode}, on {trial.target}"
        case engine.TrialEnded(trial):
            return f"trial #{trial.id} ended: {_ending(trial)}"
        case engine.GateStep(candidate, processes, most, verdict):
            said = verdict or "not yet told"
            return f"gate on {candidate[:_SHORT_ID]}: {processes} of at most {most} processes, {said}"
        case engine.Note(text):
            return text
    return ""


def _ending(trial: TrialRecord) -> str:
    score = "" if trial.score is None else f" {figure(trial.score)}"
    reason = f": {trial.reason}" if trial.reason else ""
    return f"{trial.status}{score}{reason}"


def _sweep_line(event: host.Event) -> str:
    match event:
        case engine.SweepBegan(sweep, waiting, total, _, actor):
            return f"sweep #{sweep} began ({actor}): {len(waiting)} of {total} candidates wait"
        case engine.SweepStep(phase, done, total):
            return f"sweep: {phase}, {done} of {total} screened"
        case engine.CandidateScreened(sweep, candidate, status):
            return f"sweep #{sweep}: {candidate[:_SHORT_ID]} is cancelled" if status == "cancelled" else ""
        case engine.CandidateMoved(sweep, candidate, position):
            return f"sweep #{sweep}: {candidate[:_SHORT_ID]} now waits at place {position + 1}"
        case engine.CandidateRequeued(sweep, candidate):
            return f"sweep #{sweep}: {candidate[:_SHORT_ID]} waits again"
        case engine.SweepPaused(sweep, by):
            return f"sweep #{sweep} paused by {by}"
        case engine.SweepResumed(sweep, by):
            return f"sweep #{sweep} goes on, asked by {by}"
        case engine.SweepEnded(sweep, outcome, reason):
            return f"sweep #{sweep} {outcome}: {reason}"
    return ""


def _host_line(event: host.Event, actor: str) -> str:
    match event:
        case host.WorkAsked(work):
            return f"{work.command} (#{work.receipt}, {actor}) was asked for"
        case host.WorkBegan(receipt):
            return f"#{receipt} began"
        case host.WorkEnded(receipt, outcome, exit_code, sentence):
            return f"#{receipt} ended: {outcome}, exit {exit_code}{': ' if sentence else ''}{sentence}"
        case host.WorkKept(receipt):
            return f"#{receipt} goes on without whoever asked for it"
        case host.Annotated(said):
            return said
        case host.TargetSeen(target) if target.sentence:
            return f"{target.name}: {target.state}: {target.sentence}"
        case host.WorkspaceSeen(fault=fault) if fault:
            return fault
        case host.ClientCame(client):
            return f"{client.actor} came (pid {client.pid}{', reads only' if client.readonly else ''})"
        case host.ClientLeft(number):
            return f"client {number} left"
        case host.HostLeaves(reason):
            return f"the host leaves: {reason}"
    return ""
