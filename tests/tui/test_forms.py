"""Forms in a running app: sweeps, options, targets, copying, the filter's line."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from core.operations.arguments import bind
from core.operations.catalogue import NOTE, RUN, SWEEP_CONFIG, VERIFY
from core.records import TrialNote
from core.words import JsonObject
from core.workspace.config import WorkspaceConfig
from core.workspace.toml_reader import read_workspace
from sessions.history import Order, View
from tests.tui.seeding import SCOPE, History, opened, seed_many
from tui.forms.copy_menu import CopyMenu
from tui.forms.copying import MOST_OSC52_BYTES, copy
from tui.forms.form import Asked, FormScreen
from tui.forms.note import NoteForm
from tui.forms.options import run_form, verify_form
from tui.forms.row_texts import export_view
from tui.forms.sweep import SweepForm, Typical
from tui.forms.targets import TargetChooser, target_rows
from tui.glyphs import ASCII, UNICODE, Glyphs
from tui.history.filter_bar import FilterBar
from tui.paint import paint_of
from tui.showing import Probe, Stage

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PAINT = paint_of("auto", "256")
SIZES = [(80, 24), (150, 40)]


class Harness(App[None]):
    """Shows one screen and keeps what it ended with."""

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        self.shown = screen
        self.ended: list[object] = []

    def on_mount(self) -> None:
        self.push_screen(self.shown, self.ended.append)


Body = Callable[[Harness, "Pilot[None]"], Awaitable[None]]


def shown(screen: object, body: Body, size: tuple[int, int] = (80, 24)) -> Harness:
    app = Harness(screen)  # type: ignore[arg-type]

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await body(app, pilot)
            await pilot.pause()

    asyncio.run(run())
    return app


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    made = opened(tmp_path / "w")
    yield made
    made.store.close()
    made.reader.store.close()


def config_of(name: str) -> WorkspaceConfig:
    return read_workspace(KERNELS / name).config


def sweep_form(name: str = "cpu_rmsnorm", glyphs: Glyphs = UNICODE, **typical: object) -> SweepForm:
    current = {"tile": 256, "unroll": 4, "threads": 1, "exp_form": "expf", "flags": "O2", "rows_per_chunk": 1}
    return SweepForm(config_of(name), current, Typical(**({"run_s": {}} | typical)), PAINT, glyphs)  # type: ignore[arg-type]


async def go_to(form: FormScreen, pilot: Pilot[None], name: str) -> None:
    while form.field.name != name:
        await pilot.press("down")


def test_enter_on_a_fresh_sweep_asks_for_all_knobs() -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("enter")

    app = shown(sweep_form(), body)
    assert app.ended == [Asked("sweep_kernel_config", {}, "kerneldeck sweep config")]


def test_values_are_taken_and_left_and_counted_at_once() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        # Tiles of 64, 256, 1024 hold 3, 4, 4 of the unrolls; one thread has one chunk, two have two.
        assert "528 valid of 768 combinations" in form.told.text
        await pilot.press("space", "right", "o")  # only 256 is left
        assert "192 valid of 256 combinations; a seeded sample of 120 is run" in form.told.text
        await go_to(form, pilot, "exp_form")
        await pilot.press("a", "a", "right", "right", "right", "space")
        await pilot.press("enter")

    app = shown(form, body)
    (asked,) = app.ended
    assert isinstance(asked, Asked)
    assert asked.arguments["knobs"]["tile"] == [256]
    assert asked.arguments["knobs"]["exp_form"] == ["expf", "exp2f", "poly"]
    assert "--set tile=256" in asked.command and "--set exp_form=expf,exp2f,poly" in asked.command
    bind(SWEEP_CONFIG, asked.arguments)


def test_a_knob_without_values_stays_as_the_file_has_it() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("a")
        assert "as it is: 256" in form.body.text
        await pilot.press("enter")

    app = shown(form, body)
    (asked,) = app.ended
    assert isinstance(asked, Asked)
    assert "tile" not in asked.arguments["knobs"] and len(asked.arguments["knobs"]) == 5


def test_a_sweep_of_nothing_is_not_started() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        for _ in range(6):
            await pilot.press("a", "down")
        assert "no value is taken: space takes one" in form.told.text
        await pilot.press("enter")
        assert app.screen is form
        await pilot.press("escape")

    assert shown(form, body).ended == [None]


def test_values_that_break_every_constraint_are_told() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("o")  # tile 64
        await go_to(form, pilot, "unroll")
        await pilot.press("right", "right", "right", "o")  # unroll 8: 64 < 16 * 8
        assert "none of the 64 combinations satisfies the constraints" in form.told.text
        await pilot.press("enter")
        assert app.screen is form

    shown(form, body)


def test_bad_input_has_its_sentence_beside_the_field() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await go_to(form, pilot, "finalists")
        await pilot.press("backspace", "9", "9")
        line = next(line for line in form.body.text.splitlines() if "finalists" in line)
        assert "99" in line and "at most 32" in line
        await go_to(form, pilot, "max_configs")
        await pilot.press("x")
        line = next(line for line in form.body.text.splitlines() if "max_configs" in line)
        assert "'120x' is not a whole number" in line
        await go_to(form, pilot, "seed")
        await pilot.press("enter")
        assert app.screen is form and form.field.name == "max_configs"  # the first faulty one
        await pilot.press("backspace")
        await go_to(form, pilot, "finalists")
        await pilot.press("delete", "2", "enter")

    app = shown(form, body)
    (asked,) = app.ended
    assert isinstance(asked, Asked) and asked.arguments == {"finalists": 2}
    assert asked.command == "kerneldeck sweep config --finalists 2"


def test_letters_move_only_where_nothing_is_typed() -> None:
    form = sweep_form()

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("j", "k", "k")
        assert form.field.name == "seed"
        await pilot.press("j")
        assert form.field.name == "seed" and form.field.fault

    shown(form, body)


def test_time_comes_from_medians_and_nothing_is_promised_without_one() -> None:
    without = sweep_form()

    async def none(app: Harness, pilot: Pilot[None]) -> None:
        assert "nothing has run in dev yet" in without.told.text

    shown(without, none)
    form = sweep_form(run_s={"dev": 3.0}, gate_s=10.0)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert "about 6m03s of screening (3s a run, the median so far)" in form.told.text
        assert "about 2m00s for up to 3 decisions" in form.told.text
        await go_to(form, pilot, "max_seconds")
        await pilot.press("6", "0")
        assert "about 1m00s of screening" in form.told.text

    shown(form, body, (110, 30))


def test_typical_seconds_are_medians_of_the_newest(history: History) -> None:
    for _ in range(3):
        history.trial({"BLOCK_M": 1}, 1.0)
    history.trial({"BLOCK_M": 1}, 1.0, mode="final", purpose="gate")
    assert Typical.of(history.reader) == Typical({"dev": 1.5, "final": 1.5}, 1.5)
    assert Typical.of(None) == Typical({})


@pytest.mark.parametrize("size", [(60, 16), *SIZES])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_nineteen_knobs_fit_and_the_field_stays_in_sight(size: tuple[int, int], glyphs: Glyphs) -> None:
    form = sweep_form("tensor_plan", glyphs)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert "valid of 143,327,232,000 combinations" in form.told.text.replace("\n", " ")
        screen = [strip.text for strip in app.screen._compositor.render_strips()]
        assert screen[0].startswith(" New sweep of tensor_plan") and "block_m" in screen[1]
        assert "Esc give up" in screen[-1]
        assert form.body.size.height >= size[1] - 8
        for _ in range(len(form.fields)):
            await pilot.press("down")
            top = form.body.scroll_offset.y
            assert top <= form.here < top + form.body.size.height
        assert all(len(line) <= size[0] for line in form.body.text.splitlines())
        assert not glyphs.ascii or form.body.text.isascii()

    shown(form, body, size)


def test_run_s_options_come_from_its_declaration() -> None:
    form = run_form(("dev", "final"), PAINT)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("right")
        await go_to(form, pilot, "verifier")
        await pilot.press("space")
        await go_to(form, pilot, "timeout_seconds")
        await pilot.press("minus", "1")
        line = next(line for line in form.body.text.splitlines() if "timeout_seconds" in line)
        assert "at least 0.001" in line
        await pilot.press("delete", "9", "0")
        await go_to(form, pilot, "workspace_tag")
        await pilot.press("q", "space", "j")  # letters are text here
        await pilot.press("enter")

    app = shown(form, body)
    (asked,) = app.ended
    assert isinstance(asked, Asked)
    assert asked.arguments == {
        "mode": "final", "verifier": True, "timeout_seconds": 90.0, "workspace_tag": "q j",
    }  # fmt: skip
    assert asked.command == "kerneldeck run --mode final --verifier --timeout 90 --tag 'q j'"
    bind(RUN, asked.arguments)


def test_verify_s_flags_may_be_turned_off() -> None:
    form = verify_form(("dev", "final"), PAINT)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await go_to(form, pilot, "restore_on_regression")
        await pilot.press("space", "enter")

    app = shown(form, body)
    (asked,) = app.ended
    assert isinstance(asked, Asked)
    assert asked.arguments == {"restore_on_regression": False}
    assert asked.command == "kerneldeck verify --no-restore-on-regression"
    bind(VERIFY, asked.arguments)


LISTING: JsonObject = {
    "default": "h200",
    "default_from": "kerneldeck target use",
    "targets": [
        {"name": "h200", "host": "me@h200-3:22", "gpu": "0", "description": "the big [one]", "in_use": True},
        {"name": "a100", "host": "a100", "gpu": "", "description": "", "in_use": False},
    ],
}


async def failing(name: str) -> Probe:
    reached = Stage("connect", "ok", "", "", 42.0)
    return Probe(
        False, 1.0, name, (reached, Stage("auth", "failed", "it refused the key", "ssh-add your key"))
    )


def test_a_target_is_checked_stage_by_stage_and_chosen() -> None:
    chooser = TargetChooser(LISTING, failing, PAINT)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert chooser.row.name == "h200"
        assert "the big [one]" in chooser.body.text and "h200 was not checked yet" in chooser.body.text
        await pilot.press("r")
        await app.workers.wait_for_complete()
        assert "ok      connect      42 ms" in chooser.body.text
        assert "failed  auth" in chooser.body.text and "what to do: ssh-add your key" in chooser.body.text
        await pilot.press("j")
        assert "a100 was not checked yet" in chooser.body.text
        await pilot.press("enter")

    assert shown(chooser, body).ended == ["a100"]


def test_an_app_that_only_reads_cannot_choose_a_target() -> None:
    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("enter")
        assert isinstance(app.screen, TargetChooser)
        await pilot.press("escape")

    assert shown(TargetChooser(LISTING, failing, PAINT, readonly=True), body).ended == [None]


def test_without_targets_it_says_how_to_describe_one() -> None:
    listing = {"default": "local", "default_from": "", "targets": []}
    chooser = TargetChooser(listing, failing, PAINT)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        assert "kerneldeck target add NAME HOST --use" in chooser.body.text

    shown(chooser, body)


def test_a_target_of_the_environment_is_listed_too() -> None:
    rows = target_rows({"default": "ssh:big", "default_from": "KERNELDECK_GPU_HOST", "targets": []})
    assert [(row.name, row.used) for row in rows] == [("local", False), ("ssh:big", True)]


# Copying


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


def test_the_note_s_form_asks_for_what_changed_only() -> None:
    form = NoteForm(7, TrialNote("as it came", ("start", "old")), PAINT)

    async def body(app: Harness, pilot: Pilot[None]) -> None:
        await pilot.press("delete", *"start ,", "enter")
        assert app.ended == [] and "tags: ',' is no tag" in form.told.text
        await pilot.press("backspace", *"new", "down", "delete", *"-x", "enter")

    (asked,) = shown(form, body).ended
    assert isinstance(asked, Asked)
    assert asked.arguments == {"trial": 7, "text": "-x", "tags": ["new"], "untags": ["old"]}
    assert asked.command == "kerneldeck note 7 --tag new --untag old -- -x"
    bind(NOTE, asked.arguments)


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


class Bar(App[None]):
    def __init__(self, history: History) -> None:
        super().__init__()
        self.bar = FilterBar(history.reader, PAINT)
        self.words: list[str] = []
        self.closed = 0

    def compose(self) -> ComposeResult:
        yield self.bar

    def on_filter_bar_filtered(self, message: FilterBar.Filtered) -> None:
        self.words.append(message.words)

    def on_filter_bar_closed(self) -> None:
        self.closed += 1


def test_the_filter_says_what_is_wrong_while_it_is_typed(history: History) -> None:
    async def run() -> None:
        app = Bar(history)
        async with app.run_test(size=(80, 24)) as pilot:
            assert not app.bar.display
            app.bar.open("ok ")
            await pilot.press(*"x=1")
            assert "x is no knob and no field of the history" in app.bar.told.text
            await pilot.press("enter")
            assert app.words == [] and app.bar.display
            await pilot.press("backspace", "backspace", "backspace")
            assert "knobs: BLOCK_M num_warps schedule" in app.bar.told.text
            await pilot.press("enter")
            assert app.words == ["ok"] and app.closed == 1 and not app.bar.display
            app.bar.open("oom")
            await pilot.press("x", "escape")
            assert app.words == ["ok"] and app.closed == 2

    asyncio.run(run())
