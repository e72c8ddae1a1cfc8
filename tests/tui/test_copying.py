"""Copying a row, and exporting the rows that are shown."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from textual.pilot import Pilot

from core.records import TrialNote
from sessions.history import Order, View
from tests.tui.formed import Harness, shown
from tests.tui.seeding import SCOPE, History, seed_many
from tui.forms.copy_menu import CopyMenu
from tui.forms.copying import MOST_OSC52_BYTES, copy
from tui.forms.row_texts import export_view
from tui.paint import paint_of

PAINT = paint_of("auto", "256")


def test_a_row_s_text_goes_to_the_terminal_and_a_file(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    history.trial({"BLOCK_M": 64, "schedule": "it's"}, 800.0)
    (row,) = history.reader.rows([1])
    sent: list[str] = []
    menu = CopyMenu(history.reader, View(), row, PAINT, to_terminal=sent.append)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("p")

    app = shown(menu, body)
    (sentence,) = app.ended
    copied = history.place.folder / "exports" / "copied.txt"
    assert sentence == (
        "command that runs it again: sent to the terminal's clipboard, where it takes that; "
        f"surely in {copied}"
    )
    config = json.dumps(row.overlay).replace("'", "'\"'\"'")
    assert sent == [copied.read_text()] == [f"kerneldeck sweep config --mode dev --config '{config}'"]


def test_the_menu_closes_without_copying(history: History) -> None:
    history.trial({}, 800.0)
    (row,) = history.reader.rows([1])

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("escape")

    assert shown(CopyMenu(history.reader, View(), row, PAINT), body).ended == [None]


def test_a_folder_that_cannot_be_written_is_told(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.trial({}, 800.0)
    (row,) = history.reader.rows([1])
    (history.place.folder / "exports").write_text("in the way")

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("y")

    (sentence,) = shown(CopyMenu(history.reader, View(), row, PAINT), body).ended
    assert isinstance(sentence, str) and sentence.startswith("row not copied: ")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_notes_and_tags_are_written_with_their_rows(history: History, tmp_path: Path, kind: str) -> None:
    history.trial({"BLOCK_M": 64}, 800.0)
    history.store.put_note(1, TrialNote('says "so", twice', ("start", "fp8")))
    history.store.set_baseline(SCOPE.contract_id, 1)
    history.reader.refresh()
    path, count = export_view(history.reader, View("noted"), tmp_path / "out", kind)
    text = path.read_text()
    (row,) = csv.DictReader(text.splitlines()) if kind == "csv" else [json.loads(text)]
    assert count == 1 and row["note"] == 'says "so", twice'
    assert row["tags"] == ("start fp8" if kind == "csv" else ["start", "fp8"])
    assert float(row["against_baseline"]) == 0.0


def test_what_is_too_long_for_a_clipboard_is_in_the_file(tmp_path: Path) -> None:
    sent: list[str] = []
    copied = asyncio.run(copy("x" * (MOST_OSC52_BYTES + 1), tmp_path, {}, sent.append))
    assert sent == [] and copied.sentence.startswith("too long for the terminal's clipboard")
    assert copied.path.stat().st_size == MOST_OSC52_BYTES + 1


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_inside_tmux_it_goes_to_its_buffer(tmp_path: Path) -> None:
    """A server of its own; what is copied is what it pastes."""
    socket = tmp_path / "tmux"
    tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "cat"], check=True)
    sent: list[str] = []
    try:
        copied = asyncio.run(copy("a [b] \u00b5", tmp_path / "x", {"TMUX": f"{socket},1,0"}, sent.append))
        pasted = subprocess.run([*tmux, "show-buffer"], check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    assert pasted == "a [b] \u00b5" and sent == []
    assert copied.sentence.startswith("in tmux's buffer")


def test_a_tmux_that_is_gone_falls_back_to_the_terminal(tmp_path: Path) -> None:
    sent: list[str] = []
    environ = {"TMUX": str(tmp_path / "none")}
    copied = asyncio.run(copy("text", tmp_path, environ, sent.append))
    assert sent == ["text"]
    assert copied.path.read_text() == "text"


def test_the_shown_rows_are_exported_in_their_order(history: History, tmp_path: Path) -> None:
    seed_many(history, 30)
    view = View("ok", Order.SCORE)
    path, count = export_view(history.reader, view, tmp_path / "out", "csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(history.reader.ids(view)) and count == len(rows)
    assert json.loads(rows[0]["overlay"])["schedule"] == "persistent"
    path, _ = export_view(history.reader, view, tmp_path / "out", "jsonl")
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == list(
        history.reader.ids(view)
    )
