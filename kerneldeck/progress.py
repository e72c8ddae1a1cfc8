"""What a person sees while an operation runs: bars and lines on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from core.events import GateStep, Note, SweepStep, TrialBegan, TrialEnded
from core.records import TrialRecord
from kerneldeck.streams import silence
from kerneldeck.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from sessions.host.events import Event


_STAGES = {"baseline": "the best", "confirm": "gate", "direct": "gate", "verify": "the winner"}


class Display:
    """Follows the engine's events on stderr. `quiet`, or no terminal there: only notes, as lines."""

    def __init__(self, quiet: bool) -> None:
        self._notes = not quiet
        self._live = not quiet and sys.stderr.isatty()
        self._stage = ""
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            with suppress(OSError):
                self._progress.stop()

    def tell(self, event: Event) -> None:
        """Show what happened. Whoever watched may have gone: the work goes on unseen."""
        try:
            self._show(event)
        except OSError:
            self._notes = self._live = False
            silence(sys.stderr)

    def _show(self, event: Event) -> None:
        match event:
            case Note(text):
                self._line(text)
            case SweepStep("screen", done, total):
                self._enter("screening", done, total)
            case SweepStep(phase, _, _):
                self._enter(_STAGES.get(phase, phase))
            case GateStep(_, processes, most, verdict):
                self._enter(f"gate {verdict}".strip(), processes, most)
            case TrialBegan(trial):
                self._trial(trial)
            case TrialEnded(trial) if trial.status not in (None, "ok"):
                self._line(f"trial #{trial.id}: {trial.status}: {trial.reason}")
            case _:
                pass

    def _line(self, text: str) -> None:
        if not self._notes:
            return
        text = printable(text)
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr)

    def _enter(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """A stage of the work has got so far; a total of None is not known."""
        self._stage = stage
        if not self._live:
            return
        progress = self._started()
        if self._task is not None:
            progress.remove_task(self._task)
        count = f"{done}/{total}" if total is not None else ""
        self._task = progress.add_task(printable(stage), total=total, completed=done, count=count)

    def _trial(self, trial: TrialRecord) -> None:
        """The stage's bar stays; a stage that nothing else tells of is named by its trials."""
        if not self._stage or (trial.purpose == "gate" and not self._stage.startswith("gate")):
            self._enter(trial.purpose)
        if self._progress is not None and self._task is not None:
            text = f"{self._stage}: trial #{trial.id}, {trial.mode}"
            self._progress.update(self._task, description=printable(text))

    def _started(self) -> Progress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(),
                TextColumn("{task.fields[count]}", markup=False), TimeElapsedColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._progress.start()
        return self._progress
