"""Forms in a running app: sweeps, options, targets, notes."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from core.operations.arguments import bind
from core.operations.catalogue import NOTE, RUN, SWEEP_CONFIG, VERIFY
from core.records import TrialNote
from core.words import JsonObject
from core.workspace.config import WorkspaceConfig
from core.workspace.toml_reader import read_workspace
from tests.tui.formed import Harness, shown
from tests.tui.seeding import History
from tui.forms.form import Asked, FormScreen
from tui.forms.note import NoteForm
from tui.forms.options import run_form, verify_form
from tui.forms.sweep import SweepForm, Typical
from tui.forms.targets import TargetChooser, target_rows
from tui.glyphs import ASCII, UNICODE, Glyphs
from tui.paint import paint_of
from tui.showing import Probe, Stage

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
PAINT = paint_of("auto", "256")
SIZES = [(80, 24), (150, 40)]


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
