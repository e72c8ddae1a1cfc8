"""Ctrl-C, and being ended: nothing goes on running, nothing is lost, and the history says what was."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.deck import Deck, interrupt, processes_with, wait_until

REPO = Path(__file__).resolve().parents[2]


def hanging(deck: Deck, when: str) -> Path:
    """A kernel that starts a child and hangs when `when` holds; the file that says it has begun."""
    reached = deck.root.parent / "reached"
    deck.kernel(f"if {when}; then touch {reached}; sleep 300 & sleep 300; fi; : ${{score:=100}}")
    return reached


def sweeps(deck: Deck) -> list[tuple[str, str]]:
    database = sqlite3.connect(deck.root / ".kerneldeck/state.sqlite3")
    rows = database.execute("SELECT state, summary FROM sweeps ORDER BY id").fetchall()
    database.close()
    return [(state, json.loads(summary).get("reason", "")) for state, summary in rows]


def test_a_sweep_is_interrupted_in_the_middle(knobbed: Deck) -> None:
    reached = hanging(knobbed, '[ "$mode$block" = dev4 ]')
    before = knobbed.files()
    command = knobbed.start("sweep", "config", "--set", "block=2,4,8", "--keep-best")
    wait_until(reached.exists, "the second candidate")
    done = interrupt(command)
    assert done.code == 130
    assert "kerneldeck: interrupted; what had finished is in the history" in done.err
    assert processes_with(str(knobbed.root)) == []
    assert knobbed.files() == before
    assert sweeps(knobbed) == [("stopped", "interrupted")]
    after = knobbed.seen()
    assert after["history"] == {"ok": 3, "cancelled": 1}, "baseline, the start, block 2, and block 4 cut off"
    assert after["best"]["score"] == 131
    assert any("sweep_kernel_config: exit 130 cancelled" in line for line in after["story"])
    assert "recovered" not in knobbed.run("verify").said, "it had left nothing to put right"


@pytest.mark.parametrize("words", [("run", "--mode", "final"), ("verify",), ("repeat",), ("sweep", "config")])
def test_any_command_can_be_interrupted(knobbed: Deck, words: tuple[str, ...]) -> None:
    reached = hanging(knobbed, "[ $mode = final ]")
    before = knobbed.files()
    command = knobbed.start(*words, "--json")
    wait_until(reached.exists, "the trial")
    done = interrupt(command)
    assert done.code == 130
    assert done.answer["error"]["code"] == "cancelled" and done.answer["error"]["exit_code"] == 130
    assert processes_with(str(knobbed.root)) == [] and knobbed.files() == before
    assert knobbed.seen()["history"] == {"cancelled": 1}


def test_an_interrupted_gate_decides_nothing(deck: Deck) -> None:
    deck.run("verify")
    count, reached = deck.root.parent / "count", deck.root.parent / "reached"
    deck.kernel(
        f"echo >> {count}; [ $(wc -l < {count}) -ge 2 ] && {{ touch {reached}; sleep 300; }}; score=120"
    )
    command = deck.start("verify")
    wait_until(reached.exists, "the gate's own run of it")
    assert interrupt(command).code == 130
    assert "score=120" in deck.read("kernel.sh")
    assert deck.seen()["best"]["score"] == 100


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_a_command_interrupts_it(knobbed: Deck, number: signal.Signals) -> None:
    reached = hanging(knobbed, '[ "$mode$block" = dev4 ]')
    before = knobbed.files()
    command = knobbed.start("sweep", "config", "--set", "block=4", "--keep-best", "--json")
    wait_until(reached.exists, "the candidate")
    command.send_signal(number)
    out, _ = command.communicate(timeout=60)
    error = json.loads(out)["error"]
    assert command.returncode == error["exit_code"] == 128 + number
    assert error["code"] == "cancelled" and error["sentence"].startswith("interrupted")
    assert processes_with(str(knobbed.root)) == [] and knobbed.files() == before
    assert sweeps(knobbed) == [("stopped", "interrupted")]
    assert "recovered" not in knobbed.run("verify").said, "it had left nothing to put right"


def test_a_hang_up_that_is_to_be_ignored_is(deck: Deck) -> None:
    reached, go = deck.root.parent / "reached", deck.root.parent / "go"
    os.mkfifo(go)
    deck.kernel(f"touch {reached}; read _ < {go}; score=7")
    command = deck.start("run", "--json", preexec_fn=ignore_hang_ups)
    wait_until(reached.exists, "the trial")
    command.send_signal(signal.SIGHUP)
    go.write_text("go\n")
    out, _ = command.communicate(timeout=60)
    assert (command.returncode, json.loads(out)["score"]) == (0, 7)


def ignore_hang_ups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_a_command_that_is_killed_takes_its_work_with_it(knobbed: Deck) -> None:
    reached = hanging(knobbed, '[ "$mode$block" = dev4 ]')
    before = knobbed.files()
    command = knobbed.start("sweep", "config", "--set", "block=4", "--keep-best")
    wait_until(reached.exists, "the candidate")
    command.send_signal(signal.SIGKILL)
    command.communicate(timeout=60)
    wait_until(lambda: processes_with(str(knobbed.root)) == [], "the end of its trial and of its host")
    assert knobbed.files() == before
    assert sweeps(knobbed) == [("stopped", "interrupted")]
    assert knobbed.seen()["history"] == {"ok": 2, "cancelled": 1}
    assert "recovered" not in knobbed.run("verify").said, "it had left nothing to put right"
    assert knobbed.seen()["best"]["score"] == 131


CAUGHT_WHILE_A_CLASS_IS_MADE = """
import sys
import kerneldeck.__main__ as door
import kerneldeck.cli as cli

def run(words):
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        print("said")
        return 130

cli.run = run
door.main()
"""


def test_an_interrupt_that_meets_a_class_being_made_has_the_same_exit_code(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(CAUGHT_WHILE_A_CLASS_IS_MADE)
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "said\n", "")
