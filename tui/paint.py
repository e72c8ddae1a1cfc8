"""The styles of the roles, by theme and number of colours; backgrounds stay the terminal's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.style import Style

from tui.environment import INDEXED, NO_COLOR, SIXTEEN, TRUECOLOR

# Roles: dim, strong, key, title, title-on, bar, ok, run, wait, bad, warn, best, off; "" is plain text.
# A role repeats what a word says already: none is the only carrier of anything.
_SHAPES = {
    "dim": "dim", "strong": "bold", "key": "bold", "title": "bold", "title-on": "bold reverse",
    "bar": "reverse", "ok": "", "run": "bold", "wait": "", "bad": "bold", "warn": "bold", "best": "bold",
    "off": "dim", "cursor": "reverse", "mark": "bold", "rule": "dim",
}  # fmt: skip

# The 256 ones are of the 6x6x6 cube and the grey ramp, far enough apart to stay distinct.
_DARK = {
    TRUECOLOR: {
        "dim": "#8a8f98", "key": "bold #7fb4ff", "title": "bold #c8ccd4",
        "title-on": "bold #101418 on #7fb4ff",
        "bar": "#d7dae0 on #2a2f38", "ok": "#7ec77e", "run": "bold #7fb4ff", "wait": "#8a8f98",
        "bad": "#ff7b72", "warn": "#e3b341", "best": "bold #7ec77e", "off": "#5c616b", "mark": "bold #e3b341",
        "rule": "#4a4f59",
    },
    INDEXED: {
        "dim": "color(245)", "key": "bold color(111)", "title": "bold color(252)",
        "title-on": "bold color(16) on color(111)", "bar": "color(254) on color(237)", "ok": "color(114)",
        "run": "bold color(111)", "wait": "color(245)", "bad": "color(210)", "warn": "color(179)",
        "best": "bold color(114)", "off": "color(240)", "mark": "bold color(179)", "rule": "color(239)",
    },
}  # fmt: skip
_LIGHT = {
    TRUECOLOR: {
        "dim": "#6b7078", "key": "bold #1f5fbf", "title": "bold #30343b",
        "title-on": "bold #ffffff on #1f5fbf",
        "bar": "#20242a on #dfe3e9", "ok": "#1e7d32", "run": "bold #1f5fbf", "wait": "#6b7078",
        "bad": "#b42318", "warn": "#8a5a00", "best": "bold #1e7d32", "off": "#9aa0a8", "mark": "bold #8a5a00",
        "rule": "#b8bdc6",
    },
    INDEXED: {
        "dim": "color(243)", "key": "bold color(25)", "title": "bold color(237)",
        "title-on": "bold color(231) on color(25)", "bar": "color(235) on color(253)", "ok": "color(28)",
        "run": "bold color(25)", "wait": "color(243)", "bad": "color(124)", "warn": "color(94)",
        "best": "bold color(28)", "off": "color(248)", "mark": "bold color(94)", "rule": "color(250)",
    },
}  # fmt: skip
_SIXTEEN = {
    "key": "bold cyan", "title-on": "bold reverse", "bar": "reverse", "ok": "green", "run": "bold cyan",
    "wait": "", "bad": "red", "warn": "yellow", "best": "bold green", "mark": "bold yellow",
    "dim": "bright_black", "off": "bright_black", "rule": "bright_black",
}  # fmt: skip
THEMES = ("auto", "dark", "light", "ansi", "mono")


@dataclass(frozen=True, slots=True)
class Paint:
    """A style for each role."""

    styles: Mapping[str, Style]

    def style(self, role: str) -> Style:
        return self.styles.get(role, _NONE)


_NONE = Style()


def paint_of(theme: str, depth: str) -> Paint:
    """The styles of a theme (one of THEMES; auto is dark) where the terminal has so many colours."""
    named: Mapping[str, str] = {}
    if theme == "mono" or depth == NO_COLOR:
        named = {}
    elif theme == "ansi" or depth == SIXTEEN:
        named = _SIXTEEN
    else:
        named = (_LIGHT if theme == "light" else _DARK)[depth]
    return Paint({role: Style.parse(named.get(role, shape) or "none") for role, shape in _SHAPES.items()})
