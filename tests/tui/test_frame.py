"""The main screen: layouts, panes, what is painted, what is told about the host."""

from __future__ import annotations

import time
from asyncio import run
from dataclasses import replace
from pathlib import Path

import pytest

from core.words import Status
from sessions.host.events import Gpu, TargetView
from sessions.host.snapshot import SweepView
from sessions.host.wire import HostFault
from tests.cli.deck import Deck
from tests.host.hosting import rows
from tests.tui.scripted import candidates, shown, snapshot, trial
from tests.tui.seeding import opened
from tui.app import KerneldeckApp
from tui.glyphs import ASCII
from tui.line import text_of
from tui.lines.frame import pane_head
from tui.lines.health import health_body
from tui.lines.status import status_line
from tui.main_screen import layout_of
from tui.numbers import round_trip_text
from tui.showing import CONNECTED, Link, Showing


@pytest.mark.parametrize(
    ("size", "name"),
    [((80, 24), "accordion"), ((109, 30), "accordion"), ((110, 30), "columns"), ((150, 40), "areas"),
     ((60, 16), "accordion"), ((59, 24), "compact"), ((80, 15), "compact"), ((40, 12), "compact"),
     ((39, 30), "tiny"), ((80, 11), "tiny")],
)  # fmt: skip
def test_the_layout_follows_from_the_size(size: tuple[int, int], name: str) -> None:
    assert layout_of(*size) == name


@pytest.mark.parametrize(
    "size", [(80, 24), (60, 16), (110, 30), (150, 40)], ids=lambda size: f"{size[0]}x{size[1]}"
)
def test_every_size_shows_the_pinned_row_the_open_pane_and_the_keys(
    root: Path, size: tuple[int, int]
) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=6, ended=3, running=True), size) as screen:
            lines = (await screen.wait_for("RUN       #4")).splitlines()
            assert len(lines) == size[1] and "sums#07 RUN 3/10" in lines[0] and "h200-3" in lines[0]
            assert "q detach" in lines[-1]
            for number, name in enumerate(("context", "health", "queue", "history"), start=1):
                await screen.press(str(number))
                await screen.wait_for(f"[{number}]{name.capitalize()}")
                assert screen.app.main.panes[name].body.has_focus_within
                assert "sums#07 RUN 3/10" in screen.text().splitlines()[0]

    run(look())


def test_zoom_gives_the_pane_all_rows_and_keeps_the_pinned_one(root: Path) -> None:
    async def look() -> None:
        async with shown(root, snapshot(waiting=40, ended=3, running=True)) as screen:
            await screen.wait_for(" 4 History")
            await screen.press("z")
            text = await screen.wait_for(lambda text: " 4 History" not in text)
            assert "sums#07 RUN" in text.splitlines()[0] and "[3]Queue" in text.splitlines()[1]
            await screen.press("escape")
            await screen.wait_for(" 4 History")

    run(look())


def test_the_cursor_follows_its_candidate_through_waiting_running_and_ended(root: Path) -> None:
    async def look() -> None:
        names = candidates(7)
        async with shown(root, snapshot(waiting=4, ended=2, running=True)) as screen:
            await screen.wait_for("WAIT      00000003")
            await screen.press("j")
            await screen.wait_for("> WAIT      00000003")
            moved = snapshot(waiting=4, ended=2, running=True)
            assert moved.sweep is not None
            later = (names[4], names[5], names[3], names[6])
            await screen.tell(replace(moved, sweep=replace(moved.sweep, waiting=later)))
            text = await screen.wait_for(lambda text: text.index("00000005") < text.index("00000003"))
            assert "> WAIT      00000003" in text
            await screen.tell(snapshot(waiting=3, ended=3, running=True))
            await screen.wait_for("> RUN       #4")
            await screen.tell(snapshot(waiting=2, ended=4, running=True))
            await screen.wait_for("> OK        #4")
            selected = screen.app.main.queue.selected
            assert selected is not None and selected.candidate_id == names[3]

    run(look())


def test_a_row_shows_the_knobs_it_ran_with_whatever_the_file_says_now(root: Path) -> None:
    deck = Deck(root)
    candidate = deck.json("run")["candidate"]
    deck.config(block=4, warps=2)

    async def look() -> None:
        async with shown(root, replace(snapshot(), ended=(trial(1, candidate, overlay={}),))) as screen:
            lines = [line.split() for line in (await screen.wait_for(" #1 ")).splitlines()]
            assert any(words[:4] == ["state", "id", "block", "warps"] for words in lines)
            (row,) = (words for words in lines if "#1" in words and "OK" in words)
            assert row[row.index("#1") + 1 :][:2] == ["1", "1"]

    run(look())


def test_a_queue_of_10_000_makes_only_the_rows_in_view(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui.panes import queue_list

    made = 0
    real = queue_list.queue_line

    def counted(*arguments):  # type: ignore[no-untyped-def]
        nonlocal made
        made += 1
        return real(*arguments)

    monkeypatch.setattr(queue_list, "queue_line", counted)

    async def look() -> None:
        async with shown(root, snapshot(waiting=10_000, ended=3, running=True)) as screen:
            await screen.wait_for("10,000 wait")
            await screen.press("G")
            await screen.wait_for(f"WAIT      {candidates(10_004)[-1][:8]}")
            assert made < 1000

    run(look())


def test_a_lost_host_is_told_with_the_last_state_kept(root: Path) -> None:
    async def look() -> None:
        leaving = replace(snapshot(waiting=4, ended=2, running=True), leaving="it was stopped")
        async with shown(root, leaving) as screen:
            await screen.wait_for("RUN       #3")
            screen.host.lose(HostFault("the host has ended meanwhile"))
            text = await screen.wait_for("host ended")
            assert "it was stopped" in text and "r starts it again" in text and "RUN       #3" in text
            await screen.press("p")
            await screen.wait_for("there is no host")
            await screen.press("r")
            await screen.wait_for("connected again")

    run(look())


def test_health_tells_figures_faults_and_what_to_press(root: Path) -> None:
    gpu = Gpu(0, "H200", "GPU-1", 61.4, 487.2, 700.0, 1755.0, 12_000.0, 144_000.0, ("power cap",), 1)

    async def look() -> None:
        first = replace(
            snapshot(), target=TargetView("h200-3", "H200", "connected", 42.0, (gpu,), time.time() - 120.0)
        )
        async with shown(root, first) as screen:
            text = await screen.wait_for("60C 490/700W 1755MHz")
            assert "throttled: power cap" in text and "STALE" in text
            lost = TargetView(
                "h200-3", "H200", "lost", None, (gpu,), 1.0, "auth", "its key is refused", "ask its owner"
            )
            await screen.press("2")
            await screen.tell(replace(first, target=lost))
            text = await screen.wait_for("LOST its key is refused")
            assert "LOST at auth" in text.splitlines()[0] and "ask its owner" in text and "GPU 0 H200" in text

    run(look())


def test_ended_sweeps_and_failures_are_words(root: Path) -> None:
    async def look() -> None:
        names = candidates(3)
        ended = (
            trial(3, names[2], Status.OOM, reason="shared memory 232448 > 227328 bytes", score=None),
            trial(2, names[1], Status.INCORRECT, score=None),
            trial(1, names[0]),
        )
        sweep = SweepView(
            7, 3, "cli", state="FAILED", counts={"ok": 1, "oom": 1, "incorrect": 1}, reason="no best"
        )
        async with shown(root, replace(snapshot(), sweep=sweep, ended=ended)) as screen:
            text = await screen.wait_for("FAILED no best")
            assert "1 ok  2 bad" in text and "OOM       #3" in text and "INCORRECT #2" in text
            await screen.press("i")
            text = await screen.wait_for("bad hidden")
            assert "OOM" not in text and "OK        #1" in text

    run(look())


def test_the_wobble_of_a_round_trip_changes_nothing_that_is_shown() -> None:
    assert [round_trip_text(ms) for ms in (0.2, 7.4, 19.6, 20.4, 42.4, 38.1, 118.0)] == [
        "<1", "7", "20", "20", "40", "40", "120",
    ]  # fmt: skip
    first = snapshot(waiting=3, ended=1)
    lines = set()
    for rtt_ms in (38.0, 40.2, 42.4):
        showing = Showing(replace(first, target=replace(first.target, rtt_ms=rtt_ms)), Link(CONNECTED))
        lines.add(
            (status_line(showing, 80), pane_head("health", showing, 80, False), health_body(showing, 80))
        )
    assert len(lines) == 1 and "up 40ms" in text_of(next(iter(lines))[0])


@pytest.mark.parametrize(("pane", "keys"), [("3", "M"), ("4", "M"), ("1", "B"), ("4", "B")])
def test_the_plots_of_the_history_open_by_key_and_close(root: Path, pane: str, keys: str) -> None:
    titles = {"M": "Screening and deciding scores", "B": "The best over time"}
    Deck(root).run("run")
    first = snapshot(ended=1)
    assert first.workspace is not None
    [(contract,)] = rows(root, "SELECT id FROM contracts")
    own = replace(first.workspace, contract_id=contract)

    async def look() -> None:
        async with shown(root, replace(first, workspace=own)) as screen:
            await screen.wait_for("1 runs")
            await screen.press(pane, keys)
            await screen.wait_for(titles[keys])
            await screen.press("escape", "colon", *("best so" if keys == "B" else "modes"))
            await screen.press("enter")
            await screen.wait_for(titles[keys])

    run(look())


@pytest.mark.parametrize("size", [(80, 24), (110, 30), (150, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_first_picture_stands_before_a_host_is_asked_for(root: Path, size: tuple[int, int]) -> None:
    stood: list[tuple[str, int, str]] = []

    def connecting(app: KerneldeckApp) -> None:
        stood.append((app.main.status.text, app.main.queue.size.height, app.main.footer.text))

    async def look() -> None:
        async with shown(root, snapshot(waiting=3), size, connecting=connecting):
            pass

    run(look())
    [(status, rows_of_queue, footer)] = stood
    assert "host connecting" in status and "? keys" in footer
    assert rows_of_queue > size[1] // 3  # it has its place already


def test_ascii_is_ascii(root: Path) -> None:
    async def look() -> None:
        reason = "µ ± … 漢字 \N{ROCKET}"
        ended = (trial(1, candidates(9)[8], Status.CRASH, reason=reason, score=None),)
        for size in ((80, 24), (150, 40)):
            async with shown(root, replace(snapshot(waiting=3), ended=ended), size, glyphs=ASCII) as screen:
                await screen.wait_for("CRASH")
                for keys in (["question_mark"], ["escape", "R"], ["n", "colon"], ["escape", "1"], ["2"]):
                    await screen.press(*keys)
                    assert screen.text().isascii(), screen.text()

    run(look())


def test_nothing_is_painted_when_nothing_changed(root: Path) -> None:
    async def look() -> None:
        first = snapshot(ended=6)
        assert first.sweep is not None
        first = replace(first, sweep=replace(first.sweep, state="DONE", ended_s=5.0))
        async with shown(root, first, (150, 40)) as screen:
            await screen.wait_for("DONE")
            await screen.pilot.pause()
            painted: list[object] = []
            for widget in [screen.app.main, *screen.app.main.walk_children()]:
                real = widget.refresh
                widget.refresh = lambda *a, r=real, w=widget, **k: (painted.append((w, a)), r(*a, **k))[1]  # type: ignore[method-assign]
            await screen.tell(first)
            await screen.tell(replace(first, last="another line of the host, shown by no pane"))
            await screen.pilot.pause()
            assert painted == []

    run(look())


def test_the_history_compares_under_the_contract_that_is_there_now(root: Path) -> None:
    history = opened(root)
    history.best(history.trial({"block": 4}, 100.0))

    async def look() -> None:
        now = snapshot(ended=1)
        async with shown(root, now) as screen:
            await screen.press("4")
            await screen.wait_for("#1 OK ")
            reader = screen.app.main.history.reader
            assert reader is not None and reader.standing.candidate_id
            assert now.workspace is not None
            await screen.tell(replace(now, workspace=replace(now.workspace, contract_id="d" * 64)))
            await screen.wait_for(lambda _: not reader.standing.candidate_id)
            assert [row.comparable for row in reader.rows([1])] == [False]

    run(look())
    history.store.close()
    history.reader.store.close()
