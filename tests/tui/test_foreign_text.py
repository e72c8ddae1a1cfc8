"""Text that others wrote is content: brackets, escapes, NUL and wide signs go through every pane as such."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from core.words import Status
from core.workspace.config import Files, Knob, Mode, Objective, WorkspaceConfig
from sessions.host.events import Best, Gpu, TargetView, WorkspaceSeen
from sessions.host.snapshot import Snapshot
from tests.cli.deck import configured
from tests.tui.scripted import CONTRACT, candidates, shown, snapshot, trial
from tui.actions import PANES
from tui.keymap import DEFAULT
from tui.line import Span, cut, line_of, text_of, width_of, wrapped
from tui.lines.context import context_body, context_head
from tui.lines.frame import footer_line, last_line, pane_head
from tui.lines.health import health_body, health_head
from tui.lines.history import history_head
from tui.lines.queue import columns_of, queue_head, queue_line
from tui.lines.status import status_line
from tui.paint import paint_of
from tui.panes.lines_view import strip_of
from tui.plain import ascii_only, fit, padded, plain
from tui.queue_rows import queue_rows
from tui.showing import LOST, HistoryFacts, Link, Probe, Showing, Stage, WorkspaceFacts

NASTY = [
    "[bold]x[/bold]", "[/", "[0]", "[red", "\x1b[31mred\x1b[0m", "\x1b]52;c;aGk=\x07", "a\x00b",
    "tab\tnew\nline", "漢字漢字", "e\u0301", "\u202eright to left\u202c",
    "\N{ROCKET}\N{VARIATION SELECTOR-16}", "\ud800", "\x9b31m",
    "x" * 10_000, "\u200d\u200b", "{json: [1, 2, {}]}", "%s %(x)s {0}",
]  # fmt: skip
texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=60))


def dirty(text: str) -> Snapshot:
    """A state in which everything that somebody else wrote is `text`."""
    made = snapshot(waiting=3, ended=2, running=True)
    assert made.sweep is not None and made.work is not None
    gpu = Gpu(0, text, text, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, (text,), 1)
    bad = trial(9, candidates(1)[0], Status.CRASH, reason=text, target=text, overlay={text: text}, score=None)
    return replace(
        made,
        workspace=WorkspaceSeen(text, text, CONTRACT, text, text, True, (text,), Best(text, 1.0, 1.0), text),
        target=TargetView(text, text, "lost", 1.0, (gpu,), 1.0, text, text, text),
        work=replace(made.work, command=text, actor=text),
        queue=(replace(made.work, command=text, receipt=8),),
        sweep=replace(made.sweep, reason=text, paused_by=text, state="PAUSED"),
        ended=(bad, *made.ended), last=text, leaving=text,
    )  # fmt: skip


def showing_of(text: str) -> Showing:
    probe = Probe(False, 1.0, text, (Stage(text, "failed", text, text, 1.0),), (), (text,), text, text)
    config = WorkspaceConfig(
        text, Objective(text, unit=text), Files((text,), (text,)), {text: Mode(text, (text,))}, text,
        (Knob(text, (text, 1)),), (text,),
    )  # fmt: skip
    return Showing(
        dirty(text), Link(LOST, plain(text), plain(text)), 100.0, probe=probe, last=plain(text),
        facts=WorkspaceFacts(config, {text: text}),
        banner=plain(text),
        history=HistoryFacts(3, text, ""),
    )  # fmt: skip


@given(texts)
def test_plain_text_is_one_harmless_line(text: str) -> None:
    safe = plain(text)
    assert all(character.isprintable() for character in safe)
    assert plain(safe) == safe
    assert ascii_only(safe).isascii() and len(ascii_only(safe)) >= 0


@given(texts, st.integers(0, 40))
def test_texts_fit_where_they_are_put(text: str, width: int) -> None:
    safe = plain(text)
    assert cell_len(fit(safe, width)) <= width
    assert cell_len(padded(safe, width)) == width
    assert width_of(cut(line_of(safe, (safe, "bad")), width)) <= width


@given(st.lists(texts, max_size=4), st.integers(8, 60))
def test_wrapped_lines_fit_and_lose_no_letter(words: list[str], width: int) -> None:
    line = line_of(*(plain(word)[:200] + " " for word in words))
    pieces = wrapped((line,), width)
    assert all(width_of(piece) <= width for piece in pieces)


@given(st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=30), st.integers(12, 40))
def test_wrapping_keeps_every_word_that_fits(words: list[str], width: int) -> None:
    pieces = wrapped((line_of(" ".join(words)),), width)
    assert " ".join(text_of(piece) for piece in pieces).split() == words


@given(texts, st.integers(20, 150))
def test_every_line_of_every_pane_is_harmless_and_fits(text: str, width: int) -> None:
    showing = showing_of(text)
    rows = queue_rows(showing.snapshot)
    columns = columns_of((), ({text: text},), width)
    lines = [
        status_line(showing, width), last_line(showing, width), footer_line("queue", showing, DEFAULT, width),
        *(pane_head(name, showing, width, on) for name in PANES for on in (True, False)),
        context_head(showing, width), health_head(showing, width), queue_head(showing, width),
        history_head(showing, width), *context_body(showing, width), *health_body(showing, width),
        *(queue_line(rows.row(n), {text: text}, columns, showing, max(width, 60)) for n in range(len(rows))),
    ]  # fmt: skip
    for line in lines:
        assert all(character.isprintable() for span in line for character in span.text), line
    assert all(width_of(line) <= width for line in lines[:15])


@given(texts)
def test_what_a_line_was_made_of_without_care_is_harmless_when_painted(text: str) -> None:
    strip = strip_of((Span(text),), paint_of("auto", "256"), False, 80)
    assert strip.text.isprintable() and cell_len(strip.text) == 80


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_the_screen_shows_it_and_lives(tmp_path: Path, text: str) -> None:
    root = configured(tmp_path / "sums").root

    async def look() -> None:
        async with shown(root, snapshot(waiting=3, ended=2, running=True)) as screen:
            await screen.tell(dirty(text))
            for key in ("1", "2", "3", "4", "z"):
                await screen.press(key)
                lines = screen.text().splitlines()
                assert len(lines) == 24 and [line for line in lines if cell_len(line) != 80] == []
            assert screen.app.is_running and screen.app._exception is None

    asyncio.run(look())
