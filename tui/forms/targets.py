"""Choosing where trials run: the described targets, and each one's health stage by stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from textual import events
from textual.app import ComposeResult

from core.words import JsonObject
from tui.glyphs import UNICODE, Glyphs
from tui.line import Line, Lines, line_of
from tui.paint import Paint
from tui.panes.lines_view import LinesView, ScrolledLines
from tui.plain import padded, plain
from tui.screens.layer import Layer
from tui.showing import Probe, Stage

LOCAL = "local"
Check = Callable[[str], Awaitable[Probe]]
_STATE_ROLES = {"ok": "ok", "failed": "bad", "skipped": "dim"}
_STEPS = {"j": 1, "down": 1, "tab": 1, "k": -1, "up": -1, "shift+tab": -1}


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target that can be chosen; `used`: trials run there when nothing else is said."""

    name: str
    host: str = ""
    gpu: str = ""
    description: str = ""
    used: bool = False


def target_rows(listing: JsonObject) -> tuple[TargetRow, ...]:
    """The rows of an answer of list_targets, after this machine."""
    default = listing["default"]
    rows = [
        TargetRow(row["name"], row["host"], row["gpu"], row["description"], row["name"] == default)
        for row in listing["targets"]
    ]
    others = default != LOCAL and all(row.name != default for row in rows)
    also = [TargetRow(default, description=listing["default_from"], used=True)] if others else []
    return TargetRow(LOCAL, description="this machine", used=default == LOCAL), *rows, *also


class TargetChooser(Layer[str | None]):
    """Ends with the name of the target to use, or None. `check` is asked only for `r`."""

    DEFAULT_CSS = """
    TargetChooser { background: ansi_default; layout: vertical; }
    TargetChooser .edge { height: 1; width: 1fr; }
    TargetChooser ScrolledLines { height: 1fr; width: 1fr; scrollbar-size: 0 0; background: ansi_default; }
    """

    def __init__(
        self,
        listing: JsonObject,
        check: Check,
        paint: Paint,
        glyphs: Glyphs = UNICODE,
        readonly: bool = False,
    ) -> None:
        super().__init__()
        self.rows = target_rows(listing)
        self.here = next((number for number, row in enumerate(self.rows) if row.used), 0)
        self.probes: dict[str, Probe] = {}
        self._check = check
        self._readonly = readonly
        self._glyphs = glyphs
        self._title_line = LinesView(paint, glyphs.ascii, base="bar")
        self.body = ScrolledLines(paint, glyphs.ascii)
        self._foot = LinesView(paint, glyphs.ascii)
        self._title_line.add_class("edge")
        self._foot.add_class("edge")

    def compose(self) -> ComposeResult:
        yield self._title_line
        yield self.body
        yield self._foot

    def on_mount(self) -> None:
        self._title_line.show((line_of(" Where trials run"),))
        use = "Enter: not now, this app only reads" if self._readonly else "Enter use"
        self._foot.show((line_of((f" j k  {use}  r check stage by stage  Esc close", "dim")),))
        self.body.focus()
        self._show()

    @property
    def row(self) -> TargetRow:
        return self.rows[self.here]

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "q"):
            self.dismiss(None)
        elif event.key == "enter" and not self._readonly:
            self.dismiss(self.row.name)
        elif event.key == "r":
            self.run_worker(self._checked(self.row.name), group="check", exit_on_error=False)
        elif event.key in _STEPS:
            self.here = (self.here + _STEPS[event.key]) % len(self.rows)
            self._show()

    async def _checked(self, name: str) -> None:
        if self.probes.get(name, Probe()).running:
            return
        self.probes[name] = Probe(running=True)
        self._show()
        self.probes[name] = await self._check(name)
        self._show()

    def _show(self) -> None:
        self.body.show(self._lines)

    def _lines(self, width: int) -> Lines:
        return tuple(self._made(width))

    def _made(self, width: int) -> Iterator[Line]:
        for number, row in enumerate(self.rows):
            yield self._row_line(row, number == self.here)
        yield ()
        if len(self.rows) == 1:
            yield line_of((" describe a GPU host with: kerneldeck target add NAME HOST --use", "dim"))
        yield from probe_lines(self.row.name, self.probes.get(self.row.name))

    def _row_line(self, row: TargetRow, here: bool) -> Line:
        lead = f" {self._glyphs.cursor if here else ' '}{'*' if row.used else ' '} "
        gpu = f"GPU {row.gpu}  " if row.gpu else ""
        told = plain(f"{row.host}  {gpu}{row.description}".strip())
        name = padded(plain(row.name), 16, ascii_glyphs=self._glyphs.ascii)
        return line_of((lead, "key"), (name, "cursor" if here else "strong"), f"  {told}",
                       ("  in use" if row.used else "", "ok"))  # fmt: skip


def probe_lines(name: str, probe: Probe | None) -> Iterator[Line]:
    """What a check found, a line a stage, and what to do where one failed."""
    shown = plain(name)
    if probe is None:
        yield line_of((f" {shown} was not checked yet: r checks it", "dim"))
    elif probe.running:
        yield line_of((f" checking {shown}: this takes up to a minute", "warn"))
    elif probe.sentence:
        yield line_of(" ", (plain(probe.sentence), "bad"))
        yield line_of(" ", (plain(probe.hint), "dim"))
    else:
        for stage in probe.stages:
            yield from _stage_lines(stage)
        for gpu in probe.gpus:
            yield line_of((f" GPU {gpu.index} {plain(gpu.name)}", "strong"))


def _stage_lines(stage: Stage) -> Iterator[Line]:
    took = f"{stage.ms:>6.0f} ms " if stage.ms is not None else " " * 10
    state = (f" {stage.state:<8}", _STATE_ROLES.get(stage.state, ""))
    yield line_of(state, f"{plain(stage.name):<9}", (took, "dim"), plain(stage.sentence))
    if stage.remedy:
        yield line_of(("          what to do: ", "dim"), (plain(stage.remedy), "strong"))
