"""Views of a history: what the filter's words mean, the orders, and what ends meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.errors import ArgumentFault
from core.records import TrialNote
from core.words import Status
from sessions.history import Order, Scope, View
from tests.tui.seeding import CONTRACT, History, seed_many


@pytest.fixture
def some(history: History) -> History:
    """Trials 1 to 6: two good ones, a better one, a bad one, a final one with a verdict, one elsewhere."""
    base = history.trial({"BLOCK_M": 64, "num_warps": 4}, 800.0)
    history.trial({"BLOCK_M": 128, "num_warps": 4}, 810.0)
    history.trial({"BLOCK_M": 128, "num_warps": 8}, 760.0)
    history.trial({"BLOCK_M": 12, "num_warps": 8}, None, Status.OOM, "shared memory 232448 > 227328 bytes")
    final = history.trial({"BLOCK_M": 128, "num_warps": 8}, 780.0, mode="final", purpose="verify")
    history.decide(history.best(base, 805.0), final)
    history.trial({"schedule": "persistent", "flag": True}, 900.0)
    history.reader.refresh()
    return history


def ids(history: History, words: str = "", **view: object) -> list[int]:
    return list(history.reader.ids(View(words, **view)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [6, 5, 4, 3, 2, 1]),
        ("oom", [4]),
        ("bad", [4]),
        ("!bad", [6, 5, 3, 2, 1]),
        ("ok BLOCK_M=128", [5, 3, 2]),
        ("BLOCK_M=12", [4]),  # and not 128
        ("BLOCK_M=12,64", [4, 1]),
        ("BLOCK_M=128 num_warps=8", [5, 3]),
        ("!num_warps=8", [6, 2, 1]),
        ("faster", [5]),
        ("!faster", [6, 4, 3, 2, 1]),
        ("verdict=faster,slower", [5]),
        ("final", [5]),
        ("verify", [5]),
        ("purpose=screen mode=dev oom", [4]),
        ("target=h200-3 #2", [2]),
        ("shared", [4]),
        ("SHARED", [4]),
        ("100%", []),
        ("h200", [6, 5, 4, 3, 2, 1]),
        ("schedule=persistent", [6]),
        ("contract=c0ff", [6, 5, 4, 3, 2, 1]),
        ("contract=beef", []),
    ],
)
def test_words_choose_trials(some: History, words: str, expected: list[int]) -> None:
    assert ids(some, words) == expected


def test_a_truth_value_is_sought_as_the_command_line_writes_it(some: History) -> None:
    reader = some.reader
    reader.scope = Scope(CONTRACT, knobs=("flag",))
    assert ids(some, "flag=true") == [6]
    assert ids(some, "flag=1") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("BLOK_M=3", "BLOK_M is no knob and no field of the history"),
        ("BLOCK_M=", "BLOCK_M= names no value"),
        ("#x", "#x is no number"),
        ("ok !", "! stands before a word that must not hold"),
        ("sweep=one", "one is no number"),
        ("tag:", "tag= names no value"),
    ],
)
def test_a_word_that_means_nothing_is_refused_with_a_sentence(some: History, words: str, said: str) -> None:
    with pytest.raises(ArgumentFault) as refused:
        ids(some, words)
    assert refused.value.sentence == said
    assert refused.value.hint


def test_text_of_a_word_is_never_sql(some: History) -> None:
    assert ids(some, "') OR 1=1 --".replace(" ", "")[:5]) == []
    with pytest.raises(ArgumentFault):
        ids(some, "x');DELETE/**/FROM/**/trials=1")
    assert len(ids(some)) == 6


def test_the_best_score_comes_first_and_what_has_none_last(some: History) -> None:
    # The deciding mode's scores, then the other mode's: they do not compare with each other.
    assert ids(some, order=Order.SCORE) == [5, 3, 1, 2, 6, 4]
    assert ids(some, order=Order.SCORE, reverse=True) == [5, 6, 2, 1, 3, 4]


def test_change_is_against_the_best_in_the_same_mode(some: History) -> None:
    """780 of 805 in final is a gain of 3.1 %, 760 of 800 in dev one of 5 %."""
    assert ids(some, order=Order.CHANGE)[:3] == [3, 5, 1]
    rows = {row.id: row for row in some.reader.rows([1, 3, 4, 5])}
    assert rows[3].change == pytest.approx(-0.05)
    assert rows[5].change == pytest.approx(780 / 805 - 1)
    assert rows[1].change == 0.0 and rows[1].standing
    assert rows[4].change is None


def test_where_higher_is_better_the_highest_comes_first(some: History) -> None:
    some.reader.scope = Scope(CONTRACT, lower_is_better=False)
    assert ids(some, order=Order.SCORE)[:3] == [5, 6, 2]
    assert ids(some, order=Order.CHANGE)[:2] == [6, 2]


def test_scores_of_another_contract_do_not_compare(some: History) -> None:
    some.reader.scope = Scope("another")
    some.reader.refresh()
    (row,) = some.reader.rows([3])
    assert not row.comparable and row.change is None and not row.standing


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("tag:fp8", [4, 2]),
        ("tag=fp8,base", [4, 2, 1]),
        ("tag:fp", []),
        ("!tag:fp8", [6, 5, 3, 1]),
        ("noted", [4, 3, 2, 1]),
        ("UNTUNED", [1]),
        ("fp8", [4, 2]),
    ],
)
def test_tags_and_notes_choose_trials(some: History, words: str, expected: list[int]) -> None:
    some.store.put_note(1, TrialNote("the untuned one", ("base",)))
    some.store.put_note(2, TrialNote("", ("wide", "fp8")))
    some.store.put_note(3, TrialNote("100 % busy"))
    some.store.put_note(4, TrialNote("", ("fp8",)))
    assert ids(some, words) == expected


def test_a_row_has_its_note_and_differs_from_the_baseline_in_the_same_mode(some: History) -> None:
    some.store.put_note(3, TrialNote("looks good", ("fp8", "again")))
    some.store.set_baseline(CONTRACT, 2)  # 810 in dev, nothing in final
    some.reader.refresh()
    rows = {row.id: row for row in some.reader.rows([2, 3, 4, 5])}
    assert (rows[3].note, rows[3].tags) == ("looks good", ("fp8", "again"))
    assert rows[3].against_baseline == pytest.approx(760 / 810 - 1)
    assert rows[2].is_baseline and rows[2].against_baseline == 0.0 and not rows[3].is_baseline
    assert rows[4].against_baseline is None  # without a score
    assert rows[5].against_baseline is None  # of another mode
    some.reader.scope = Scope("another")
    some.reader.refresh()
    (row,) = some.reader.rows([3])
    assert row.against_baseline is None and row.note == "looks good"


def test_a_row_has_its_verdict_and_both_modes(some: History) -> None:
    (row,) = some.reader.rows([5])
    assert row.verdict == "faster"
    assert row.gain == pytest.approx(0.03, abs=2e-3)
    assert row.low is not None and row.high is not None and row.low < row.gain < row.high
    assert (row.screened, row.decided) == (760.0, 780.0)


def test_bad_ones_can_be_hidden(some: History) -> None:
    assert ids(some, hide_bad=True) == [6, 5, 3, 2, 1]


def test_what_runs_is_no_history_until_it_ends(some: History) -> None:
    started = some.begin(some.candidate({"BLOCK_M": 7}))
    later = some.trial({"BLOCK_M": 8}, 700.0)
    reader = some.reader
    assert ids(some)[:2] == [later.id, 6]
    assert reader.running() == [started.id]
    some.end(started, 650.0)
    assert list(reader.newer(View(), later.id, [started.id])) == [started.id]
    assert list(reader.newer(View("bad"), later.id, [started.id])) == []


def test_rows_that_are_gone_are_left_out(some: History) -> None:
    assert [row.id for row in some.reader.rows([3, 999, 1])] == [3, 1]


def test_changed_tells_of_another_connection_s_writes(some: History) -> None:
    some.reader.changed()
    assert not some.reader.changed()
    some.trial({"BLOCK_M": 9}, 1.0)
    assert some.reader.changed()
    assert not some.reader.changed()


def test_more_rows_than_a_query_takes_values_are_read(history: History) -> None:
    seed_many(history, 1200)
    everything = history.reader.ids(View())
    assert [row.id for row in history.reader.rows(everything)] == list(everything)
    assert history.reader.total() == 1200


@pytest.mark.parametrize("order", list(Order))
def test_an_order_and_its_reverse_show_the_same_trials(history: History, order: Order) -> None:
    seed_many(history, 400)
    first = history.store.trial(1)
    assert first is not None
    history.best(first)
    history.reader.refresh()
    one, other = (history.reader.ids(View(order=order, reverse=turn)) for turn in (False, True))
    assert sorted(one) == sorted(other) == list(range(1, 401))
    assert list(one) != list(other)


def test_every_literal_of_a_number_is_found(history: History) -> None:
    for value in (4, 4.0, "4"):
        history.trial({"num_warps": value}, 1.0)
    count: Callable[[str], int] = lambda words: len(ids(history, words))  # noqa: E731
    assert count("num_warps=4") == 3
    assert count("num_warps=4.0") == 2
