"""After a kill: what is there, what the next command makes of it, and the same operation to its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import crash_checks as checks
from crash_workspace import NEXT, RESTORE, RESUME, Call
from forked import Said, in_child, say
from grounds import Ground, operate

from core.events import Event, Note


@dataclass(frozen=True, slots=True)
class Aftermath:
    """The workspace at `root`, left so by a kill in `ground`'s operation; `said` by the killed process."""

    ground: Ground
    root: Path
    said: Said

    def faults(self) -> list[str]:
        """Sentences on what does not hold; the product runs in a forked process for it."""
        running = [f"process {pid} still runs" for pid in checks.processes_of(self.root)]
        _, found = in_child(self._report)
        return running + [one["fault"] for one in found]

    def _report(self, report: int) -> None:
        before = checks.read_history(self.root)
        for fault in (*self._killed(before), *self._next_command(before), *self._once_more()):
            say(report, fault=fault)

    def _killed(self, before: checks.History) -> Iterator[str]:
        old, end = self.ground.old, self.ground.end
        yield from checks.whole_faults(checks.read_files(self.root), old, end)
        yield from before.faults
        if before.best not in (old.history.best, end.history.best):
            yield f"the best is {before.best[:12]} after the kill"

    def _next_command(self, before: checks.History) -> Iterator[str]:
        notes: list[str] = []

        def tell(event: Event) -> None:
            notes.append(event.text if isinstance(event, Note) else "")

        operate(self.root, NEXT, tell)
        for fault in self._recovered(before, checks.snapshot(self.root)):
            yield f"{fault} (the next command said: {'; '.join(notes) or 'nothing'})"

    def _recovered(self, before: checks.History, now: checks.Snapshot) -> Iterator[str]:
        old, end = self.ground.old, self.ground.end
        told = {one["ended"]: (one["status"], one["score"]) for one in self.said if "ended" in one}
        yield from checks.settled_faults(now.files, old, end)
        yield from checks.kept_faults(before, now.history, told)
        yield from checks.rest_faults(self.root, now.history)
        if before.best != now.history.best:
            yield f"the best was {before.best[:12]} and is {now.history.best[:12]}"
        if now.mutable != old.mutable and now.history.best != end.history.best:
            yield "the files are new, and the best that they hold is not kept"

    def _rest_of_it(self, before: checks.History) -> Call:
        """A detached operation that was on record goes on; everything else is asked for again."""
        call = self.ground.walk.call
        return RESUME if call.detached and before.sweeps else call

    def _once_more(self) -> Iterator[str]:
        """The same operation leads to the same files and the same best as without a kill."""
        end = self.ground.end
        before = checks.read_history(self.root)
        exit_code = operate(self.root, self._rest_of_it(before))
        if exit_code not in (0, self.ground.exit_code):
            yield f"run again, it ended with exit code {exit_code}"
        if self.ground.walk.call.detached:
            yield from checks.resumed_faults(checks.snapshot(self.root), end)
        elif checks.read_files(self.root) != end.files:
            # Cut off between keeping its winner and writing it, a sweep finds nothing better any more.
            operate(self.root, RESTORE)
        now = checks.snapshot(self.root)
        if now.files != end.files:
            yield "run again, it did not lead to the files of an undisturbed run"
        if now.history.best != end.history.best:
            yield f"run again, the best is {now.history.best[:12]}"
        yield from checks.kept_faults(before, now.history, {})
        yield from checks.rest_faults(self.root, now.history)
