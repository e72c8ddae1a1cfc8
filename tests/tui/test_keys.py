"""The registry of actions: every key exists, arrives everywhere and means one thing, also a person's own."""

from __future__ import annotations

import pytest

from tests.cli.deck import REPO
from tui.actions import ACTIONS, BY_ID, PANES, footer_actions
from tui.doing import HANDLERS
from tui.keymap import DEFAULT, FORBIDDEN, clashes, is_known, keymap_of, named_key, why_not
from tui.keys_page import keys_page
from tui.line import text_of, width_of
from tui.lines.frame import footer_line
from tui.showing import CONNECTED, Link, Showing


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_key_of_an_action_can_be_pressed_anywhere(action) -> None:  # type: ignore[no-untyped-def]
    for number, key in enumerate(action.keys):
        assert why_not(key, first=number == 0) == ""
    assert action.doc and action.label and set(action.panes) <= set(PANES)


def test_no_key_means_two_things_in_one_pane() -> None:
    assert list(clashes(DEFAULT.keys)) == []


def test_every_action_is_carried_out_by_something() -> None:
    own = {one.id for one in ACTIONS if one.id.startswith(("pane.", "nav."))} - set(HANDLERS)
    assert {one.id for one in ACTIONS} - set(HANDLERS) == own
    assert set(HANDLERS) <= set(BY_ID)


@pytest.mark.parametrize("key", ["escpe", "Escape ", "ctrl+", "q,esc", "ctrl+shift+alt"])
def test_a_misspelt_key_is_not_known(key: str) -> None:
    assert not is_known(key)


@pytest.mark.parametrize(
    "key",
    ["ctrl+b", "ctrl+a", "ctrl+s", "ctrl+z", "ctrl+c", "ctrl+backslash", "ctrl+m", "ctrl+i",
     "ctrl+j", "ctrl+h", "ctrl+left_square_bracket", "ctrl+w", "ctrl+t", "ctrl+n", "alt+x"],
)  # fmt: skip
def test_what_terminals_and_tmux_take_is_refused(key: str) -> None:
    assert "taken by" in why_not(key, first=False)
    assert key in FORBIDDEN or key.startswith("alt+")


def test_people_change_keys_by_id_with_the_signs_they_type() -> None:
    changed = keymap_of({"queue.pause": "P", "view.filter": ["F", "/"]})
    assert changed.faults == ()
    assert changed.action_of("P", "queue") is BY_ID["queue.pause"]
    assert changed.action_of("p", "queue") is None
    assert changed.keys["view.filter"] == ("F", "slash") and named_key("/") == "slash"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"queue.pouse": "P"}, "there is no action 'queue.pouse'"),
        ({"queue.pause": "ctrl+b"}, "taken by"),
        ({"queue.pause": "f5"}, "only be an alias"),
        ({"queue.pause": 7}, "wants a key"),
        ({"queue.pause": "pausekey"}, "is no key"),
        ({"queue.pause": "z"}, "view.zoom and queue.pause at once"),
    ],
)
def test_an_entry_that_cannot_be_is_told_and_its_default_stays(asked: dict[str, object], told: str) -> None:
    keymap = keymap_of(asked)
    assert len(keymap.faults) == 1 and told in keymap.faults[0]
    assert keymap.action_of("p", "queue") is BY_ID["queue.pause"]
    assert keymap.action_of("z", "queue") is BY_ID["view.zoom"]


@pytest.mark.parametrize(
    "asked", [{"app.detach": "Q"}, {"queue.pause": "q"}, {"app.detach": "Q", "queue.pause": "q"}]
)
def test_q_always_leaves(asked: dict[str, object]) -> None:
    keymap = keymap_of(asked)
    for pane in PANES:
        assert keymap.action_of("q", pane) is BY_ID["app.detach"]


@pytest.mark.parametrize("pane", PANES)
def test_the_footer_fits_80_cells_and_names_the_way_out(pane: str) -> None:
    line = footer_line(pane, Showing(link=Link(CONNECTED)), DEFAULT, 80)
    assert width_of(line) <= 80
    text = text_of(line)
    assert "? keys" in text and "q detach" in text and "1-4 pane" in text
    for action in footer_actions(pane):
        assert f"{DEFAULT.shown(action.id)} {action.label}" in text


def test_the_page_of_keys_is_the_registry_as_it_is() -> None:
    assert (REPO / "docs/keys.md").read_text() == keys_page()
