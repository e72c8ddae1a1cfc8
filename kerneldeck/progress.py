"""What a person sees while an operation runs: bars and lines on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from core.events import Event, GateStep, Note, SweepStep, TrialBegan, TrialEnded
from kerneldeck.streams import silence
from kerneldeck.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Display:
    """Follows the engine's events on stderr. `quiet`, or no terminal there: only notes, as lines."""

    def __init__(self, quiet: bool) -> None:
        self._notes = not quiet
        self._live = not quiet and sys.stderr.isatty()
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
                self._bar("screening", done, total)
            case SweepStep(phase, _, _):
                self._bar(phase, None, None)
            case GateStep(_, processes, most, verdict):
                self._bar(f"gate {verdict}".strip(), processes, most)
            case TrialBegan(trial):
                self._bar(f"{trial.purpose} #{trial.id} {trial.mode}", None, None)
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

    def _bar(self, text: str, done: int | None, total: int | None) -> None:
        if not self._live:
            return
        progress, task = self._started()
        progress.update(task, description=printable(text), completed=done, total=total)

    def _started(self) -> tuple[Progress, TaskID]:
        if self._progress is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
                TimeElapsedColumn(), console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._task = self._progress.add_task("starting", total=None)
            self._progress.start()
        return self._progress, self._task
