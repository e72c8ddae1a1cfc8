"""The verb `tui`, which a bare `kerneldeck` on a terminal is too."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

NAME = "tui"
THEMES = ("auto", "dark", "light", "ansi", "mono")


def with_app(arguments: Sequence[str]) -> list[str]:
    """The arguments to carry out: without any, the app where a person sits, else the help."""
    if arguments:
        return list(arguments)
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()
    return [NAME] if on_terminal else ["--help"]


def app_command(workspace: click.Option, settings: dict[str, object]) -> click.Command:
    """`kerneldeck tui`: the app on this terminal."""

    def show(
        workspace: str, readonly: bool, mouse: bool | None, ascii_glyphs: bool | None, theme: str
    ) -> int:
        from tui.launch import run_app

        return run_app(
            Path(workspace), readonly=readonly, mouse=mouse, ascii_glyphs=ascii_glyphs, theme=theme
        )

    return click.Command(
        NAME, callback=show, context_settings=settings,
        help="Watch and steer the workspace's work on this terminal; leaving stops nothing.",
        short_help="Watch and steer the work on this terminal.",
        params=[
            workspace,
            click.Option(["--readonly"], is_flag=True, help="only look: keys that change anything are off"),
            click.Option(["--mouse/--no-mouse"], default=None, help="take the mouse too [default: no]"),
            click.Option(["--ascii/--no-ascii", "ascii_glyphs"], default=None,
                         help="ASCII signs only [default: as the locale says]"),
            click.Option(["--theme"], default="", help="auto, dark, light, ansi or mono", metavar="NAME",
                         type=click.Choice(["", *THEMES]), show_choices=False),
        ],
    )  # fmt: skip
