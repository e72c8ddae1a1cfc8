"""Commands to a running sweep, as clients write them."""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import ArgumentFault
from core.sweep.plan import Cancel, Command, Move, Pause, Resume, Retry, StopAsked
from core.words import JsonObject
from sessions.store import SessionStore

SHORTEST_PREFIX, SHORT_ID = 4, 12


def command_of(
    message: JsonObject, actor: str, store: SessionStore, running: Sequence[int]
) -> tuple[int, Command, str]:
    """The sweep that is meant, the command for it, and what to say once it is done.

    ArgumentFault: no such sweep runs, it has no such candidate, or there is no such command.
    """
    sweep = _sweep(message.get("sweep"), running)
    candidate = _candidate(message.get("candidate"), sweep, store)
    short = candidate[:SHORT_ID] or "the running candidate"
    match message.get("what"):
        case "pause":
            return sweep, Pause(actor), f"sweep #{sweep} is paused; what runs goes on to its end"
        case "resume":
            return sweep, Resume(actor), f"sweep #{sweep} goes on"
        case "stop":
            return sweep, StopAsked(f"stopped by {actor}", actor), f"sweep #{sweep} is stopped"
        case "cancel":
            return sweep, Cancel(candidate, actor), f"{short} is cancelled"
        case "move":
            by = _places(message.get("by"))
            moved = f"{short} was moved {abs(by)} {'sooner' if by < 0 else 'later'}"
            return sweep, Move(_needed(candidate), by, actor), moved
        case "retry":
            return sweep, Retry(_needed(candidate), actor), f"{short} waits again"
    raise ArgumentFault(f"{message.get('what')!r} is no command to a sweep")


def _sweep(asked: object, running: Sequence[int]) -> int:
    if asked is None and running:
        return running[-1]
    if isinstance(asked, int) and asked in running:
        return asked
    which = "no sweep runs" if asked is None else f"sweep #{asked} does not run"
    raise ArgumentFault(which, "see what does: kerneldeck host status")


def _candidate(asked: object, sweep: int, store: SessionStore) -> str:
    """The id that begins so, of the sweep's candidates; empty when none was named."""
    prefix = asked if isinstance(asked, str) else ""
    if not prefix:
        return ""
    if len(prefix) < SHORTEST_PREFIX:
        raise ArgumentFault(
            f"{prefix!r} is too short", f"write at least {SHORTEST_PREFIX} characters of the id"
        )
    record = store.sweep(sweep)
    known = [str(one) for one in record.plan.get("candidates", [])] if record else []
    found = [one for one in known if one.startswith(prefix)]
    if len(found) != 1:
        which = "no candidate" if not found else f"{len(found)} candidates"
        raise ArgumentFault(f"{which} of sweep #{sweep} begins with {prefix!r}", "see: kerneldeck attach")
    return found[0]


def _needed(candidate: str) -> str:
    if not candidate:
        raise ArgumentFault("no candidate is named", "name one by the beginning of its id")
    return candidate


def _places(asked: object) -> int:
    if isinstance(asked, bool) or not isinstance(asked, int) or asked == 0:
        raise ArgumentFault("by is no number of places", "a negative one means sooner: --by -1")
    return asked
