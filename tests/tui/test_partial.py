"""What is sent when a part of a line changes: those cells, whole characters, and nothing else."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.strip import Strip

from tui.line import Line, Span, changed_ranges, width_of
from tui.partial import only_changed

SPANS = st.builds(Span, st.text("ab 漢字é", max_size=12), st.sampled_from(["", "bad"]))
LINES = st.lists(SPANS, max_size=5).map(tuple)
BOLD = Style(bold=True)
CONSOLE = Console(color_system="256", force_terminal=True)


def strip_of(line: Line, width: int) -> Strip:
    segments = [Segment(span.text, BOLD if span.role else Style()) for span in line if span.text]
    return Strip(segments).adjust_cell_length(width, Style())


def cells(strip: Strip) -> list[tuple[str, bool]]:
    """What each cell shows; the second one of a wide character shows nothing of its own."""
    shown = []
    for segment in strip:
        for character in segment.text:
            bold = bool(segment.style and segment.style.bold)
            shown += [(character, bold), ("", bold)][: 2 if character in "漢字" else 1]
    return shown


@example((Span("漢"),), (Span("字"),))
@given(LINES, LINES)
def test_the_changed_ranges_make_one_line_of_the_other(before: Line, after: Line) -> None:
    width = max(width_of(before), width_of(after))
    old, new = cells(strip_of(before, width)), cells(strip_of(after, width))
    for start, end in changed_ranges(before, after):
        old[start:end] = cells(strip_of(after, width).crop(start, end))
    assert old == new


def test_lines_that_look_the_same_have_no_changed_range() -> None:
    assert changed_ranges((Span("ab"), Span("c")), (Span("a"), Span("bc"))) == []


def test_what_differs_far_apart_is_sent_apart_and_nearby_together() -> None:
    before = (Span("1" + " " * 40 + "12 4"),)
    after = (Span("2" + " " * 40 + "32 5"),)
    assert changed_ranges(before, after) == [(0, 1), (41, 45)]


def test_an_update_sends_the_changed_cells_and_goes_to_each_range_first() -> None:
    line = Strip([Segment("abc"), Segment("defgh", BOLD), Segment("ij")], 10)
    update = ChopsUpdate([{0: line, 10: Strip([Segment("right")], 5)}], [(0, 2, 4), (0, 9, 12)], [[10, 15]])
    sent = only_changed(update)
    assert isinstance(sent, ChopsUpdate)
    text = sent.render_segments(CONSOLE)
    assert re.findall(r"\x1b\[(\d+;\d+)H", text) == ["1;3", "1;10", "1;11"]
    assert re.sub(r"\x1b\[[\d;]*[mH]", "", text) == "cd" + "j" + "ri"
