"""A new sweep: which values of which knobs, how many of them, and what that will cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import KerneldeckError
from core.operations.catalogue import SWEEP_CONFIG
from core.space import Space
from core.space_count import Count, count_valid
from core.words import Scalar
from core.workspace.config import WorkspaceConfig
from sessions.history import HistoryReader
from tui.forms.fields import Field, ValuesField
from tui.forms.form import Asked, FormScreen, command_line, command_text
from tui.forms.options import command_words, fields_of, given
from tui.glyphs import UNICODE, Glyphs
from tui.history import words
from tui.line import Line, Lines, line_of
from tui.numbers import count_text, span_text
from tui.paint import Paint
from tui.plain import plain

OPTIONS = ("mode", "max_configs", "finalists", "keep_best", "max_seconds", "verifier", "seed")
GATE_RUNS = 4  # processes that a decision usually takes, of the 2 to 8 it may


@dataclass(frozen=True, slots=True)
class Typical:
    """Median seconds of a run by mode, and of a process of the gate; empty where nothing has run yet."""

    run_s: Mapping[str, float]
    gate_s: float | None = None

    @classmethod
    def of(cls, reader: HistoryReader | None) -> Typical:
        if reader is None:
            return cls({})
        runs = {mode: reader.typical_s(mode=mode) for mode in reader.scope.modes}
        return cls({mode: took for mode, took in runs.items() if took is not None}, reader.typical_s("gate"))


class SweepForm(FormScreen):
    """Ends with the arguments of sweep_kernel_config."""

    KEYS = "Enter start  Esc give up  arrows  space take/leave  a all/none  o only this"

    def __init__(
        self,
        config: WorkspaceConfig,
        current: Mapping[str, Scalar],
        typical: Typical,
        paint: Paint,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        self.space = Space.of(config)
        self.current = current
        self.typical = typical
        self.knobs = [ValuesField(knob.name, knob.values, current.get(knob.name)) for knob in config.knobs]
        modes = list(config.modes)
        self.options = fields_of(SWEEP_CONFIG, OPTIONS, modes)
        fields: list[Field] = [*self.knobs, *self.options]
        super().__init__(f"New sweep of {config.name}", fields, paint, glyphs)

    @property
    def chosen(self) -> dict[str, list[Scalar]]:
        """The knobs that vary or are set, with the values taken."""
        return {field.name: field.value for field in self.knobs if field.value}

    def count(self) -> Count | str:
        """How many candidates the values make; a sentence when that cannot be told."""
        if not self.knobs:
            return "no knobs are declared in kerneldeck.toml: add [knobs]"
        if not self.chosen:
            return "no value is taken: space takes one, a takes all of a knob"
        try:
            found = count_valid(self.space, self.current, self.chosen)
        except KerneldeckError as fault:
            return fault.sentence
        if not found.valid and found.exact:
            return f"none of the {count_text(found.raw)} combinations satisfies the constraints"
        return found

    def asked(self) -> Asked | None:
        if any(field.fault for field in self.fields) or isinstance(self.count(), str):
            return None
        arguments = given(SWEEP_CONFIG, self.options)
        command = command_words(SWEEP_CONFIG, arguments)
        if not all(field.whole for field in self.knobs):
            arguments["knobs"] = self.chosen
            for name, values in self.chosen.items():
                command += ["--set", f"{name}={','.join(words.setting(value) for value in values)}"]
        return Asked(SWEEP_CONFIG.id, arguments, command_text(command))

    def told_lines(self) -> Lines:
        count = self.count()
        if isinstance(count, str):
            return (line_of((f" {plain(count)}", "bad")),)
        lines: list[Line] = [self._count_line(count), self._time_line(count)]
        asked = self.asked()
        return (*lines, command_line(asked.command)) if asked else tuple(lines)

    def _option(self, name: str) -> object:
        return next(field.value for field in self.options if field.name == name)

    def _runs(self, count: Count) -> int:
        most = self._option("max_configs")
        return min(count.valid, most) if isinstance(most, int) else count.valid

    def _count_line(self, count: Count) -> Line:
        about = "" if count.exact else "about "
        runs = self._runs(count)
        told = f" {about}{count_text(count.valid)} valid of {count_text(count.raw)} combinations"
        rest = f"; a seeded sample of {count_text(runs)} is run" if runs < count.valid else ", all are run"
        return line_of((told, "strong"), (rest, ""))

    def _time_line(self, count: Count) -> Line:
        """From the medians of what has run: nothing is promised."""
        mode = str(self._option("mode"))
        took = self.typical.run_s.get(mode)
        if took is None:
            return line_of((f" nothing has run in {plain(mode)} yet, so its time is not known", "dim"))
        screen_s = took * (self._runs(count) + 1)
        most_s = self._option("max_seconds")
        screen_s = min(screen_s, float(most_s)) if isinstance(most_s, int | float) else screen_s
        told = f" about {span_text(screen_s)} of screening ({span_text(took)} a run, the median so far)"
        finalists = self._option("finalists")
        if self.typical.gate_s is not None and isinstance(finalists, int):
            gate_s = self.typical.gate_s * finalists * GATE_RUNS
            told += f", then about {span_text(gate_s)} for up to {finalists} decisions"
        return line_of(told)
