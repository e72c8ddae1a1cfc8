"""The history's table in a running app, over real stores."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.strip import Strip

from core.errors import StorageFault
from core.words import Status
from sessions.history import HistoryReader, Order, View
from tests.tui.seeding import SCOPE, History, seed_many
from tui.glyphs import ASCII, UNICODE, Glyphs
from tui.history.table import HistoryTable
from tui.paint import paint_of

SIZES = [(39, 11), (80, 24), (110, 30), (150, 40)]


class Harness(App[None]):
    """Only the table; what it posts is kept."""

    def __init__(self, reader: HistoryReader, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.table = HistoryTable(reader, paint_of("auto", "256"), glyphs)
        self.told: list[Message] = []
        self.painted = 0

    def compose(self) -> ComposeResult:
        yield self.table

    def on_mount(self) -> None:
        self.table.focus()
        inner = self.table.render_line

        def counted(y: int) -> Strip:
            self.painted += 1
            return inner(y)

        self.table.render_line = counted  # type: ignore[method-assign]

    def on_history_table_refused(self, message: HistoryTable.Refused) -> None:
        self.told.append(message)

    def on_history_table_marked(self, message: HistoryTable.Marked) -> None:
        self.told.append(message)

    def lines(self) -> list[str]:
        table = self.table
        return [table.render_line(y).text.rstrip() for y in range(table.size.height)]


Body = Callable[[Harness, "Pilot[None]"], Awaitable[None]]


def shown(
    reader: HistoryReader, body: Body, size: tuple[int, int] = (80, 24), glyphs: Glyphs = UNICODE
) -> None:
    async def run() -> None:
        app = Harness(reader, glyphs)
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            await body(app, pilot)

    asyncio.run(run())


async def settled(app: Harness, pilot: Pilot[None]) -> None:
    await app.workers.wait_for_complete()
    await pilot.pause()


@pytest.fixture
def few(history: History) -> History:
    """Three trials: the best, a bad one, and one with a verdict against the best."""
    base = history.trial({"BLOCK_M": 64, "num_warps": 4}, 800.0)
    history.trial({"BLOCK_M": 12, "num_warps": 4}, None, Status.OOM, "shared memory 232448 > 227328 bytes")
    final = history.trial({"BLOCK_M": 128, "num_warps": 4}, 780.0, mode="final", purpose="verify")
    history.decide(history.best(base, 805.0), final)
    return history


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_rows_say_what_matters_at_every_size(few: History, size: tuple[int, int], glyphs: Glyphs) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        title, final, bad, best = app.lines()[:4]
        assert title.split()[:3] == ["trial", "v", "state"] or "when" in title
        assert "#3" in final and "OK" in final and "780" in final
        assert "#2" in bad and "OOM" in bad
        assert "#1" in best and "800" in best
        if size[0] >= 80:
            assert "-3.1% better" in final and "faster" in final and "BLOCK_M=128" in final
            assert "num_warps" not in final  # the same as the best's
            assert "shared memory" in bad
            assert "+0.0% best" in best
        if size[0] >= 110:
            assert "+3.0% (+" in final
        if size[0] >= 150:
            assert "1.5s" in final and final.split().count("780") == 2  # the score, and its final median
        assert all(len(line) <= size[0] for line in app.lines())
        if glyphs.ascii:
            assert all(line.isascii() for line in app.lines())

    shown(few.reader, body, size, glyphs)


def test_an_empty_history_names_the_key_that_fills_it(history: History) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert "no runs recorded yet: a adds" in app.lines()[1]

    shown(history.reader, body)


def test_a_filter_without_matches_says_how_to_clear_it(few: History) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.table.filter("timeout")
        await settled(app, pilot)
        assert "no runs match: Esc clears" in app.lines()[1]
        app.table.filter("")
        await settled(app, pilot)
        assert len(app.table.window) == 3

    shown(few.reader, body)


def test_a_filter_that_means_nothing_leaves_the_view_and_says_why(few: History) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.table.filter("BLOK=1")
        await settled(app, pilot)
        assert app.table.view == View()
        (refused,) = app.told
        assert isinstance(refused, HistoryTable.Refused)
        assert refused.sentence.startswith("BLOK is no knob")

    shown(few.reader, body)


def test_the_cursor_stays_on_its_trial_when_rows_come(history: History) -> None:
    seed_many(history, 200)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        table = app.table
        table.move_to(3)
        await pilot.pause()
        held, before = table.current_id, app.lines()
        app.painted = 0
        for _ in range(5):
            history.trial({"BLOCK_M": 32}, 700.0)
        table.look()
        await pilot.pause()
        assert app.painted == 0  # nothing that is read has moved or changed
        assert table.current_id == held
        assert app.lines() == before
        assert len(table.window) == 205
        table.move_to(0)
        await pilot.pause()
        assert "#205" in app.lines()[1]

    shown(history.reader, body)


def test_following_keeps_the_newest_under_the_cursor(history: History) -> None:
    seed_many(history, 100)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.table.move_to(50)
        app.table.move_to(0)
        app.table.follow = True
        newest = history.trial({"BLOCK_M": 32}, 700.0)
        app.table.look()
        assert app.table.current_id == newest.id

    shown(history.reader, body)


def test_nothing_is_painted_when_nothing_was_written(history: History) -> None:
    seed_many(history, 100)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.painted = 0
        for _ in range(10):
            app.table.look()
        await pilot.pause()
        assert app.painted == 0

    shown(history.reader, body)


def test_a_step_of_the_cursor_paints_two_lines(history: History) -> None:
    seed_many(history, 100)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.painted = 0
        app.table.move(1)
        await pilot.pause()
        assert app.painted == 2

    shown(history.reader, body)


def test_a_verdict_that_comes_later_shows_in_its_row(few: History) -> None:
    late = few.trial({"BLOCK_M": 32}, 790.0, mode="final", purpose="verify")

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert "faster" not in app.lines()[1]
        best = few.store.best(SCOPE.contract_id)
        assert best is not None
        few.decide(best, late, 0.02)
        app.table.look()
        assert "faster" in app.lines()[1]

    shown(few.reader, body)


def test_what_ends_late_is_put_in_its_place(few: History) -> None:
    slow = few.begin(few.candidate({"BLOCK_M": 7}))
    few.trial({"BLOCK_M": 8}, 700.0)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert list(app.table.window.ids) == [5, 3, 2, 1]
        few.end(slow, 650.0)
        app.table.look()
        app.table._show_again()  # what its timer would do
        await settled(app, pilot)
        assert list(app.table.window.ids) == [5, 4, 3, 2, 1]

    shown(few.reader, body)


def test_sorting_goes_round_the_orders_and_keeps_the_cursor_s_trial(history: History) -> None:
    seed_many(history, 300)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        table = app.table
        table.move_to(120)
        held = table.current_id
        for order in (Order.SCORE, Order.CHANGE, Order.DURATION, Order.TIME):
            table.sort_next()
            await settled(app, pilot)
            assert table.view.order is order
            assert table.current_id == held
            assert any(f"#{held} " in line and line.startswith(">") for line in app.lines())
        table.sort_reverse()
        await settled(app, pilot)
        assert list(table.window.ids[:2]) == [1, 2]

    shown(history.reader, body)


def test_hiding_bad_ones_and_showing_them_again(few: History) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.table.toggle_bad()
        await settled(app, pilot)
        assert list(app.table.window.ids) == [3, 1]
        app.table.toggle_bad()
        await settled(app, pilot)
        assert len(app.table.window) == 3

    shown(few.reader, body)


def test_marks_outlive_the_view_and_choose_what_is_compared(few: History) -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        table = app.table
        assert table.compared() == ()
        table.mark()
        assert table.current_id == 2
        table.filter("oom")
        await settled(app, pilot)
        assert table.marked == (3,)
        assert table.compared() == (3, 2)  # the marked one, and the cursor's
        table.filter("")
        await settled(app, pilot)
        assert app.lines()[1][1] == "*"
        assert table.clear_marks() and not table.clear_marks()
        await pilot.pause()
        assert app.lines()[1][1] == " "
        assert isinstance(app.told[0], HistoryTable.Refused)
        assert app.told[0].hint == "mark 2 to 4 runs with Space"

    shown(few.reader, body)


def test_going_to_the_end_and_a_page_back(history: History) -> None:
    seed_many(history, 500)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        table = app.table
        table.bottom()
        assert table.current_id == 1
        table.page(-1)
        assert table.current_id == 23

    shown(history.reader, body)


def test_a_store_that_cannot_be_read_says_so_and_comes_back(
    few: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = StorageFault("cannot read the state of record: disk I/O error", "look at the disk")

    def fail(*_: object) -> bool:
        raise fault

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        before = app.lines()
        with monkeypatch.context() as broken:
            broken.setattr(HistoryReader, "changed", fail)
            app.table.look()
            app.table.look()
        await pilot.pause()
        (refused,) = app.told  # once, however often it fails
        assert isinstance(refused, HistoryTable.Refused) and refused.stale
        assert (refused.sentence, refused.hint) == (fault.sentence, fault.hint)
        assert app.lines() == before
        app.table.look()
        assert app.table.fault == ""
        with monkeypatch.context() as broken:
            broken.setattr(HistoryReader, "rows", fail)
            app.table.window._rows.clear()
            assert "not read" in app.lines()[1]

    shown(few.reader, body)


FOREIGN = [
    "[red]x[/red] [/] [0]",
    "a\x1b[31mred\x1b]52;c;QQ==\x07",
    "nul\x00tab\tnew\nline",
    "日本語 wide \u202ertl",
    "{} %s \\",
]


@pytest.mark.parametrize("text", FOREIGN)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_foreign_text_is_content(history: History, text: str, glyphs: Glyphs) -> None:
    history.trial({"schedule": text}, None, Status.CRASH, text)
    history.trial({"schedule": text}, 5.0)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        for y in range(3):
            strip = app.table.render_line(y)
            assert strip.cell_length == 80
            assert strip.text.isprintable()
        if text.startswith("[red]"):
            assert "[red]x[/red] [/] [0]" in app.lines()[2]

    shown(history.reader, body, glyphs=glyphs)


def test_a_resize_keeps_the_cursor_in_sight(history: History) -> None:
    seed_many(history, 100)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        app.table.move_to(20)
        for size in ((150, 40), (39, 11), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert any(line.startswith(">") for line in app.lines())

    shown(history.reader, body)
