"""What a person who looks elsewhere is told, and how."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from core.sweep.standing import TARGET
from sessions.host.client import HostKeyAsked
from sessions.host.events import TargetView
from sessions.host.snapshot import Snapshot, SweepView
from tests.cli.deck import configured
from tests.tui.scripted import shown, snapshot
from tui.notices import PAUSED_BY_TARGET, notices
from tui.notify import give_notice, tmux_words
from tui.settings import read_settings


def sweep_of(state: Snapshot) -> SweepView:
    assert state.sweep is not None
    return state.sweep


RUNNING = snapshot(waiting=2, ended=3, running=True)
DONE = replace(RUNNING, work=None, sweep=replace(sweep_of(RUNNING), state="DONE", ended_s=5.0))
FAILED = replace(
    DONE, sweep=replace(sweep_of(DONE), state="FAILED", best_score=None, reason="no best to compare with")
)
HELD = replace(RUNNING, sweep=replace(sweep_of(RUNNING), state="PAUSED", paused_by="target"))
PAUSED = replace(RUNNING, sweep=replace(sweep_of(RUNNING), state="PAUSED", paused_by="cli"))
LOST = replace(RUNNING, target=TargetView("h200-3", "H200", "lost", stage="login", sentence="refused\x1b[1m"))
IDLE_LOST = replace(LOST, work=None, sweep=None)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (RUNNING, DONE, ["sums sweep #7 DONE: 3 of 6 screened, best 101ms"]),
        (RUNNING, FAILED, ["sums sweep #7 FAILED: 3 of 6 screened; no best to compare with"]),
        (replace(RUNNING, sweep=None), DONE, ["sums sweep #7 DONE: 3 of 6 screened, best 101ms"]),
        (DONE, DONE, []),
        (RUNNING, PAUSED, []),
        (RUNNING, HELD, ["sums sweep #7 waits: its target cannot run trials; p resumes it"]),
        (HELD, HELD, []),
        (HELD, RUNNING, []),
        (RUNNING, LOST, ["h200-3 is lost at login: refused\N{MIDDLE DOT}[1m"]),
        (LOST, LOST, []),
        (RUNNING, IDLE_LOST, []),
    ],
)  # fmt: skip
def test_ends_and_what_waits_for_a_person_are_told_once(
    before: Snapshot, now: Snapshot, told: Sequence[str]
) -> None:
    assert list(notices(before, now)) == told


def test_a_sweep_held_by_its_target_is_told_by_the_engine_s_word() -> None:
    assert PAUSED_BY_TARGET == TARGET


def give(setting: str, sentence: str, **environ: str) -> tuple[str, int]:
    """What went wrong, and how often the bell rang."""
    rung: list[int] = []
    return asyncio.run(give_notice(setting, sentence, environ, lambda: rung.append(1))), len(rung)


def test_nothing_is_told_unless_asked_for(tmp_path: Path) -> None:
    assert read_settings({"XDG_CONFIG_HOME": str(tmp_path)}).notify == ""
    assert give("", "ended") == ("", 0)


def test_the_bell_rings_also_for_tmux_outside_of_it() -> None:
    assert give("bell", "ended", TMUX="/tmp/t,1,0") == ("", 1)
    assert give("tmux", "ended") == ("", 1)


def test_a_command_gets_the_sentence_as_one_last_word(tmp_path: Path) -> None:
    script = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text(repr(sys.argv[2:]))"
    sentence = "sums sweep #7 DONE; $(touch no) 'x'"
    setting = f"{sys.executable} -c '{script}' '{tmp_path / 'told it'}' --urgent"
    assert give(setting, sentence) == ("", 0)
    assert (tmp_path / "told it").read_text() == repr(["--urgent", sentence])


def test_a_command_that_fails_is_told() -> None:
    assert give("no-such-program -x", "ended") == (
        "notify: no-such-program cannot be started: No such file or directory", 0,
    )  # fmt: skip
    assert give("false", "ended") == ("notify: false ended with exit code 1", 0)


def test_tmux_is_given_nothing_to_expand() -> None:
    assert tmux_words("sweep #7 #(touch x) #[bold] 5 %")[-1] == "sweep ##7 (touch x) [bold] 5 %%"


@pytest.mark.parametrize(
    ("value", "fault"),
    [('"say \'"', "notify is no command: no closing quotation"), ("true", "notify is no str"),
     ('" "', "notify is no command: it is blank")],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_told_and_nothing_asked_for(
    tmp_path: Path, value: str, fault: str
) -> None:
    (tmp_path / "kerneldeck").mkdir()
    (tmp_path / "kerneldeck/tui.toml").write_text(f"notify = {value}\n")
    settings = read_settings({"XDG_CONFIG_HOME": str(tmp_path)})
    assert settings.notify == "" and settings.faults == (f"tui.toml: {fault}",)


def test_the_app_tells_what_happens_while_it_is_open_and_nothing_older(tmp_path: Path) -> None:
    root = configured(tmp_path / "sums").root

    async def look() -> None:
        told: list[str] = []
        async with shown(root, DONE, notify=told.append) as screen:
            await screen.tell(replace(DONE, last="news"))
            await screen.tell(RUNNING)
            await screen.tell(FAILED)
            await screen.wait_for("FAILED")
            assert told == ["sums sweep #7 FAILED: 3 of 6 screened; no best to compare with"]
            question = HostKeyAsked("h200-3", "jump", "ssh-ed25519", "SHA256:abcdef", "~/.ssh/known_hosts")
            answer = asyncio.ensure_future(screen.app.deck.host_key(question))
            await screen.wait_for("SHA256:abcdef")
            await screen.press("enter")
            assert not await answer
            assert told[1:] == ["jump shows a host key that is not known; the app asks about it"]

    asyncio.run(look())
