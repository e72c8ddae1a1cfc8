"""Standard streams that are closed, full, gone, narrow, or of another encoding; terminals and pipes."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.deck import Deck, kerneldeck
from tests.cli.terminal import on_a_terminal

ESCAPE = "\x1b"


def shell(script: str) -> tuple[str, ...]:
    """The command as a shell runs it; `"$@"` is the command."""
    return ("bash", "-c", f"set -o pipefail; {script}", "bash")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing_but_what_is_seen(deck: Deck, closed: str) -> None:
    done = deck.run("verify", before=shell(f'exec "$@" {closed}'))
    assert ("verified" in done.out) == (">&- " not in f"{closed} ".replace("2>&-", ""))
    deck.kernel("score=120")
    deck.run("verify", before=shell(f'exec "$@" {closed}'), code=1)
    assert deck.read("kernel.sh") == "score=100\n"
    assert deck.seen()["best"]["score"] == 100


def test_a_reader_that_goes_away_is_no_fault(deck: Deck) -> None:
    for words in (["inspect"], ["inspect", "--json"], ["verify"], ["--help"], ["completion", "bash"]):
        done = kerneldeck(*words, cwd=deck.root, before=shell('"$@" | true; exit ${PIPESTATUS[0]}'))
        assert done.err == "" and done.code in ((0, 1) if words == ["--help"] else (0,)), done
    assert deck.seen()["best"]["score"] == 100


def test_the_work_goes_on_when_whoever_watched_has_gone(knobbed: Deck) -> None:
    """Notes on failing candidates go to a pipe that nobody reads any more."""
    knobbed.kernel('[ "$block$warps" = 11 ] || status=incorrect')
    knobbed.run("sweep", "config", before=shell('"$@" 2>&1 | true; exit ${PIPESTATUS[0]}'), code=1)
    assert knobbed.seen()["history"]["incorrect"] == 7
    assert any("exit 1" in line for line in knobbed.seen()["story"])


def test_an_answer_that_cannot_be_written_is_said_and_the_work_is_recorded(deck: Deck) -> None:
    for words in (["verify"], ["verify", "--json"]):
        done = deck.run(*words, before=shell('"$@" > /dev/full'), code=1)
        if words == ["verify"]:
            assert "the answer cannot be written to standard output: No space left on device" in done.err
    assert deck.seen()["history"] == {"ok": 2}


@pytest.mark.parametrize(
    "changes",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LANG": "C", "LC_ALL": None, "HOME": None},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_any_encoding_will_do(deck: Deck, changes: dict[str, str | None]) -> None:
    deck.run("verify", env=changes)
    deck.kernel("score=120")
    done = deck.run("verify", env=changes, code=1)
    assert re.search("processes: [-−]20.0 %", done.out), "the sign of a loss is not lost"
    assert deck.json("rank", env=changes)["rows"]


def test_without_home_a_path_from_home_is_a_sentence(deck: Deck) -> None:
    gone = {"HOME": None}
    assert "home folder is not known" in deck.fault("rank", "--history-path", "~nobody-such/x", env=gone)
    assert "home folder is not known" in deck.fault("result", "~nobody-such/x.json", env=gone)
    assert "home folder is not known" in deck.fault("init", "~nobody-such/x", env=gone)


def test_a_pipe_gets_no_bars_and_no_colours(knobbed: Deck) -> None:
    done = knobbed.run("sweep", "config", env={"TERM": "xterm-256color", "FORCE_COLOR": None})
    assert ESCAPE not in done.said and "screening" not in done.said
    assert done.err.splitlines() == ["8 configurations, all valid ones of 8 combinations"]
    assert knobbed.run("sweep", "config", "--json").err == "", "and with --json nothing but the answer"


def test_a_terminal_shows_a_bar_while_it_works(knobbed: Deck) -> None:
    knobbed.kernel("sleep 0.03")
    code, text = on_a_terminal("sweep", "config", cwd=knobbed.root)
    assert code == 0
    assert ESCAPE in text and "screening" in text and "gate" in text
    assert re.search(r"\d/\d", text), "how many of how many"
    assert "winner:" in text
    _, silent = on_a_terminal("verify", "--json", cwd=knobbed.root)
    assert json.loads(silent)["outcome"]


def test_no_color_and_forty_columns(knobbed: Deck) -> None:
    code, text = on_a_terminal("sweep", "config", cwd=knobbed.root, columns=40, env={"NO_COLOR": "1"})
    assert code == 0
    assert not re.search(ESCAPE + r"\[[\d;]*(3|4|9)\d[\d;]*m", text), "a colour"
    plain = re.sub(ESCAPE + r"\[[\d;?]*[A-Za-z]", "", text)
    rows = [line.rstrip() for line in plain.splitlines() if re.match(r"\s*\d  ", line)]
    assert rows and all(len(row) <= 40 for row in rows)


def test_what_a_benchmark_says_never_steers_the_terminal(knobbed: Deck) -> None:
    knobbed.kernel("printf '\\033]0;owned\\007\\033[2Jnot good\\n' >&2; exit 3")
    code, text = on_a_terminal("run", cwd=knobbed.root)
    assert code == 1 and "not good" in text
    assert ESCAPE + "]" not in text and ESCAPE + "[2J" not in text and "\x07" not in text
    done = knobbed.run("run", code=1)
    assert ESCAPE not in done.said and "exit 3 without a result" in done.out


def test_modules_in_the_workspace_never_become_ours(deck: Deck) -> None:
    for name in ("random", "statistics", "click", "json", "asyncio", "numpy", "core", "sessions", "rich"):
        deck.write(f"{name}.py", "raise SystemExit('the workspace was imported')\n")
    deck.run("verify")
    deck.kernel("score=120")
    deck.run("verify", code=1)
    assert "slower than the best" in deck.run("inspect").out and deck.seen()["best"]["score"] == 100
