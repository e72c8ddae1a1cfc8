"""Details of trials, checkpoints, comparisons and plots, from real stores."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from core.records import Checkpoint, TrialNote, TrialRecord
from core.words import JsonObject, Status
from sessions.evidence import cases_of, tail, trial_evidence
from sessions.history import BothScores, HistoryReader
from tests.tui.seeding import History, opened, result_of
from tui.details.fronts import pareto_front
from tui.details.layout import Sheet
from tui.details.plots import Axes, Point, bar, scatter, steps, strip
from tui.details.subject import (
    CheckpointSubject,
    CompareSubject,
    DiffSubject,
    ParetoSubject,
    ProgressSubject,
    Subject,
    TrialSubject,
    lines_of,
    title_of,
)
from tui.details.view import DetailPage, DetailView
from tui.glyphs import ASCII, UNICODE, Glyphs
from tui.line import text_of, width_of
from tui.paint import paint_of
from tui.style import LAYOUT

SIZES = [(80, 24), (150, 40)]


@dataclass
class Told:
    """A history with a best, a better final with a verdict and output, and one that ran out of memory."""

    history: History
    base: TrialRecord
    final: TrialRecord
    bad: TrialRecord
    best: Checkpoint

    @property
    def subjects(self) -> list[Subject]:
        ids = self.base.id, self.final.id, self.bad.id
        return [
            *(TrialSubject(one) for one in ids), CheckpointSubject(), CompareSubject(ids),
            DiffSubject(ids[:2]), ParetoSubject(), ProgressSubject(),
        ]  # fmt: skip

    def text(self, subject: Subject, width: int = 80, height: int = 24, glyphs: Glyphs = UNICODE) -> str:
        lines = lines_of(subject, self.history.reader, Sheet(width, height, glyphs))
        return "\n".join(text_of(line).rstrip() for line in lines)


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    history = opened(tmp_path / "w")
    base = history.trial({"BLOCK_M": 64, "num_warps": 4}, 800.0, result=result_of("small", "large"))
    history.trial({"BLOCK_M": 64, "num_warps": 4}, 806.0, mode="final", purpose="verify")
    best = history.best(base, 805.0)
    result = result_of("small", "large", seed=4)
    overlay = {"BLOCK_M": 128, "num_warps": 4}
    history.trial(overlay, 770.0)
    final = history.trial(overlay, 780.0, mode="final", purpose="verify", result=result)
    history.decide(best, final)
    output = history.place.output_of(final.id)
    output.mkdir(parents=True)
    (output / "stderr").write_text("first line\nwarning: [red]registers[/red] spilled\n")
    bad = history.trial({"BLOCK_M": 12, "num_warps": 4}, None, Status.OOM, "shared memory 232448 > 227328")
    history.best(final, 779.0)
    history.reader.refresh()
    yield Told(history, base, final, bad, best)
    history.store.close()
    history.reader.store.close()


def test_a_trial_tells_how_it_ended_and_why(told: Told) -> None:
    text = told.text(TrialSubject(told.bad.id))
    assert f"#{told.bad.id} OOM" in text
    assert "why       shared memory 232448 > 227328" in text
    assert "BLOCK_M   12  the best has 128" in text
    assert "(collected)" in text


def test_a_trial_shows_its_note_and_how_it_compares_with_the_baseline(told: Told) -> None:
    text = told.text(TrialSubject(told.final.id))
    assert "against baseline" not in text and "note" not in text
    told.history.store.set_baseline(told.base.contract_id, told.final.id)
    told.history.store.put_note(told.base.id, TrialNote("[b]untuned[/b]", ("start", "fp8")))
    told.history.reader.refresh()
    assert "against baseline it is the baseline" in told.text(TrialSubject(told.final.id))
    text = told.text(TrialSubject(told.base.id))
    assert "tags             start fp8" in text and "note             [b]untuned[/b]" in text
    assert f"against baseline +3.90% in dev (worse; the baseline is #{told.final.id})" in text
    assert "against baseline" not in told.text(TrialSubject(told.bad.id))
    compared = " ".join(told.text(CompareSubject((told.base.id, told.final.id)), 120).split())
    assert "against baseline +3.90% worse baseline" in compared and "tags start fp8 -" in compared


def test_a_baseline_without_a_score_in_the_mode_says_that_it_does_not_compare(told: Told) -> None:
    only_dev = told.history.trial({"BLOCK_M": 32, "num_warps": 4}, 820.0)
    told.history.store.set_baseline(told.base.contract_id, only_dev.id)
    told.history.reader.refresh()
    text = " ".join(told.text(TrialSubject(told.final.id)).split())
    assert f"not compared: baseline #{only_dev.id} has no score in final, only in dev" in text


def test_a_trial_shows_its_verdict_with_figures_and_cases(told: Told) -> None:
    text = told.text(TrialSubject(told.final.id))
    assert "faster by 3.0 %" in text
    assert "processes: 3.0" in text
    assert "small    3.0 % better" in text
    assert "779 us" not in text.partition("Verdict")[0]
    assert "verify: final benchmark on h200-3, by cli" in text


def test_times_stand_beside_their_floor(told: Told) -> None:
    lines = told.text(TrialSubject(told.final.id)).splitlines()
    launch = next(line for line in lines if "launch  " in line)
    kernel = next(line for line in lines if "kernel  " in line)
    assert "406 us" in launch and "1.31 x floor" in launch
    assert "390 us" in kernel and "1.26 x floor" in kernel
    assert launch.count("█") > kernel.count("█")
    assert any("registers 168  spills 0" in line for line in lines)


def test_samples_are_a_strip_with_their_median(told: Told) -> None:
    lines = told.text(TrialSubject(told.final.id)).splitlines()
    strips = [line for line in lines if "launch_us" in line]
    assert len(strips) == 2
    assert all("300 launches" in line and "█" in line for line in strips)


def test_its_output_is_named_as_seen_from_the_workspace(told: Told) -> None:
    text = told.text(TrialSubject(told.final.id))
    assert f"  its output: .kerneldeck/outputs/{told.final.id}" in text


def test_the_end_of_its_output_is_shown_as_it_is(told: Told) -> None:
    text = told.text(TrialSubject(told.final.id))
    assert "End of its stderr\n  first line\n  warning: [red]registers[/red] spilled" in text


def test_samples_that_were_collected_are_said_to_be(told: Told) -> None:
    with told.history.store.database.transaction("collect") as connection:
        connection.execute("DELETE FROM results")
    assert "its samples were collected" in told.text(TrialSubject(told.final.id))


def test_a_trial_that_runs_says_run(told: Told) -> None:
    started = told.history.begin(told.history.candidate({"BLOCK_M": 5}))
    assert told.text(TrialSubject(started.id)).startswith(f" #{started.id} RUN")


def test_a_trial_that_is_not_there_is_told(told: Told) -> None:
    assert told.text(TrialSubject(999)) == " trial #999 is not in this history"


def test_a_checkpoint_shows_where_it_comes_from_and_what_it_holds(told: Told) -> None:
    text = told.text(CheckpointSubject(told.best.id))
    assert f"Checkpoint {told.best.id[:12]} kept" in text
    assert "805 us" in text
    assert "note              kept by a test" in text
    assert f"kerneldeck restore --checkpoint {told.best.id[:12]}" in text
    assert '    2  "BLOCK_M": 64,' in text
    assert "    1 def kernel(): pass" in text
    assert "the best" in told.text(CheckpointSubject()).splitlines()[0]


def test_a_content_that_is_gone_is_said_to_be(told: Told) -> None:
    sha256 = told.best.files["kernel.py"].sha256
    next(told.history.place.blobs.rglob(f"*{sha256[2:]}*")).unlink()
    assert "no text, or not kept any more" in told.text(CheckpointSubject(told.best.id))


def test_a_comparison_marks_what_differs(told: Told) -> None:
    text = told.text(CompareSubject((told.base.id, told.final.id, told.bad.id)), 110)
    lines = text.splitlines()
    assert [word for word in lines[0].split() if word.startswith("#")] == [
        f"#{one.id}" for one in (told.base, told.final, told.bad)
    ]
    assert any(line.startswith(" *BLOCK_M") and line.split()[1:] == ["64", "128", "12"] for line in lines)
    assert any(line.startswith("  num_warps") for line in lines)
    assert "their scores do not compare" in text
    scales = [line for line in lines if ".." in line and "█" in line]
    assert len(scales) == 2  # a row of strips for each case


def test_a_comparison_of_one_says_how_to_mark_more(told: Told) -> None:
    assert "mark two to four runs with Space" in told.text(CompareSubject((told.base.id,)))


def test_a_difference_shows_knobs_and_files(told: Told) -> None:
    text = told.text(DiffSubject((told.base.id, told.final.id)))
    assert "BLOCK_M 64 -> 128" in text
    assert '  - "BLOCK_M": 64,' in text and '  + "BLOCK_M": 128,' in text
    assert "the same in both: kernel.py" in text


def test_one_alone_is_told_from_the_best(told: Told) -> None:
    text = told.text(DiffSubject((told.bad.id,)))
    assert text.startswith(f" the best against #{told.bad.id}")
    assert "BLOCK_M 128 -> 12" in text


def test_the_front_is_plotted_and_listed(told: Told) -> None:
    text = told.text(ParetoSubject())
    assert "dev against final  2 candidates have both" in text
    assert text.count("@") >= 2  # in the legend and in the plot
    assert "770     " in text and "775" not in text


def test_with_one_mode_there_is_nothing_to_set_against_another(told: Told) -> None:
    one_mode = HistoryReader(told.history.reader.store, replace(told.history.reader.scope, modes=("final",)))
    text = "\n".join(map(text_of, lines_of(ParetoSubject(), one_mode, Sheet(80, 24, UNICODE))))
    assert "this workspace has one mode, final: it screens and decides" in text


def test_progress_lists_each_best_with_its_change(told: Told) -> None:
    text = told.text(ProgressSubject())
    assert "2 in this contract" in text
    assert f"{told.best.id[:12]}        805" in text
    assert "-3.2% better" in text


def test_an_empty_history_has_details_with_what_to_press(tmp_path: Path) -> None:
    history = opened(tmp_path / "empty")
    empty = Told(history, None, None, None, None)  # type: ignore[arg-type]
    assert "nothing was kept yet: v verifies" in empty.text(CheckpointSubject())
    assert "nothing was kept yet: v verifies" in empty.text(ProgressSubject())
    assert "no candidate has a score in both modes yet" in empty.text(ParetoSubject())
    history.store.close()
    history.reader.store.close()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_everything_fits_at_every_size(told: Told, size: tuple[int, int], glyphs: Glyphs) -> None:
    long_ones = ("kernel.py", "  its output", "  restore with")
    for subject in told.subjects:
        for line in lines_of(subject, told.history.reader, Sheet(*size, glyphs)):
            text = text_of(line)
            assert width_of(line) <= size[0] or text.startswith(long_ones), (title_of(subject), text)
            assert not glyphs.ascii or text.isascii(), text


FOREIGN = "[/] [red]\x1b[2J\x00\t日本\u202e" + "x" * 10_000


def test_foreign_text_is_content_everywhere(told: Told) -> None:
    history = told.history
    result: JsonObject = {
        "cases": [
            {"name": FOREIGN, "status": FOREIGN, FOREIGN: 3.0, "best_us": math.inf, "spills": True,
             "samples": {FOREIGN: {"unit": FOREIGN, "blocks": [[1.0, "x", None], "y", [2.0]]}}},
            "no case",
        ]
    }  # fmt: skip
    made = history.candidate({"schedule": FOREIGN}, FOREIGN)
    odd = history.end(history.begin(made), 5.0, Status.CRASH, FOREIGN, result)
    output = history.place.output_of(odd.id)
    output.mkdir(parents=True)
    (output / "stdout").write_bytes(FOREIGN.encode() + b"\xff\xfe")
    for subject in (TrialSubject(odd.id), CompareSubject((odd.id, told.base.id)), DiffSubject((odd.id,))):
        for line in lines_of(subject, history.reader, Sheet(80)):
            assert text_of(line).isprintable()
    assert "[/] [red]" in told.text(TrialSubject(odd.id))


@pytest.mark.parametrize(
    "result",
    [{}, {"cases": None}, {"cases": {"name": 1}}, {"cases": [1, None]}, {"cases": [{}], "timing": []},
     {"cases": [{"samples": {"launch_us": {"blocks": [[]]}}}]}],
)  # fmt: skip
def test_results_of_any_shape_are_read(result: JsonObject) -> None:
    assert all(case.samples == () for case in cases_of(result))


def test_discarded_rounds_count_nowhere() -> None:
    blocks = [[100.0], [1.0], [2.0]]
    result = {"cases": [{"name": "a", "samples": {"launch_us": {"blocks": blocks}}}],
              "timing": {"discarded_rounds": [0]}}  # fmt: skip
    (case,) = cases_of(result)
    assert case.samples[0].kept == [1.0, 2.0]


def test_a_decision_of_another_version_still_tells_its_verdict(told: Told) -> None:
    with told.history.store.database.transaction("age it") as connection:
        connection.execute("UPDATE decisions SET outcome = ?", (json.dumps({"old": 1}),))
    assert "faster, stored by another version" in told.text(TrialSubject(told.final.id))
    evidence = trial_evidence(told.history.reader.store, told.final.id)
    assert evidence is not None and evidence.verdict is None


def test_a_tail_begins_with_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    text = tail(path, 100)
    assert text is not None and text.startswith("line ") and text.endswith("line 999\n") and len(text) <= 100
    assert tail(tmp_path / "none") is None


def test_the_front_has_what_nothing_beats() -> None:
    pairs = {"a": (1.0, 9.0), "b": (2.0, 5.0), "c": (3.0, 6.0), "d": (9.0, 1.0), "e": (9.5, 1.0)}
    scores = [BothScores(name, *pair, {}) for name, pair in pairs.items()]
    assert [one.candidate_id for one in pareto_front(scores, True)] == ["d", "b", "a"]
    assert [one.candidate_id for one in pareto_front(scores, False)] == ["a", "c", "e"]


def test_plots_put_values_where_they_belong() -> None:
    cells = "".join(span.text for span in strip([0.0, 0.0, 10.0], 5, ASCII))
    assert cells[1:4].strip() == "" and cells[0] != " " and cells[4] != " "
    assert (
        bar(5.0, 10.0, 8, ASCII) == "####"
        and bar(1e-9, 10.0, 8, ASCII) == "#"
        and bar(0.0, 1.0, 8, ASCII) == ""
    )
    plot = [
        text_of(line) for line in scatter([Point(0, 0, "a"), Point(9, 9, "b")], 32, 8, Axes("x", "y"), ASCII)
    ]
    assert plot[1].endswith("b") and plot[5].split("|")[1].startswith("a")
    same = [text_of(line) for line in scatter([Point(1, 1, "a")], 32, 8, Axes("x", "y"), ASCII)]
    assert any("a" in line for line in same)
    stairs = [text_of(line) for line in steps([(0.0, 9.0), (10.0, 1.0)], 32, 8, Axes("x", "y"), ASCII)]
    assert "o---" in stairs[1] and stairs[5].endswith("o")


class Harness(App[None]):
    CSS = LAYOUT

    def __init__(self, told: Told) -> None:
        super().__init__()
        self.told = told
        self.view = DetailView(told.history.reader, paint_of("auto", "256"))

    def compose(self) -> ComposeResult:
        yield self.view


@pytest.mark.parametrize("size", [(39, 11), *SIZES])
def test_drawer_and_page_show_the_subject_and_scroll(told: Told, size: tuple[int, int]) -> None:
    async def run() -> None:
        app = Harness(told)
        async with app.run_test(size=size) as pilot:
            app.view.show_subject(TrialSubject(told.final.id))
            await pilot.pause()
            assert "faster by 3.0 %" in app.view.text
            app.view.move(5)
            await pilot.pause()
            assert app.view.scroll_offset.y == min(5, app.view.max_scroll_y)
            app.view.show_subject(TrialSubject(told.bad.id))
            await pilot.pause()
            assert app.view.scroll_offset.y == 0 and "OOM" in app.view.text
            page = DetailPage(ProgressSubject(), told.history.reader, paint_of("auto", "256"))
            await app.push_screen(page)
            await pilot.pause()
            assert "2 in this contract" in page.body.text
            await pilot.press("escape")
            assert app.screen is not page

    asyncio.run(run())
