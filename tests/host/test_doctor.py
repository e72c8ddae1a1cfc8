"""`kerneldeck doctor`: what it looks at, and what it says to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kerneldeck.doctor_terminal import colour_depth
from tests.cli.deck import Deck, kerneldeck
from tests.cli.terminal import on_a_terminal


def findings(deck: Deck, **more: object) -> dict[str, dict[str, object]]:
    told = deck.run("doctor", "--json", **more).answer["findings"]
    return {finding["topic"]: finding for finding in told}


def test_all_is_fine_where_it_is(deck: Deck) -> None:
    found = findings(deck, env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "TMUX": None})
    assert all(finding["ok"] for finding in found.values()), found
    assert found["workspace"]["said"] == f"sums in {deck.root}"
    assert "(no host runs)" in str(found["host's socket"]["said"])
    assert not (deck.root / ".kerneldeck").exists(), "looking makes nothing"


@pytest.mark.parametrize(
    ("changes", "topic", "said", "remedy"),
    [
        ({"TERM": "dumb"}, "TERM", "dumb", "watch --plain"),
        ({"TERM": None}, "TERM", "not set", "TERM=xterm-256color"),
        ({"TERM": "xterm", "TMUX": "/x,1,0"}, "TERM", "xterm, inside tmux", "tmux-256color"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "characters", "", "LC_ALL=C.UTF-8"),
        ({"KERNELDECK_ASSUME_NETWORK_FS": "1"}, "state folder", "", "state_dir"),
        ({"TMUX": "/nonexistent/socket,1,0"}, "tmux escape-time", "not told", ""),
    ],
)
def test_what_is_not_fine_is_told_with_what_to_do(
    deck: Deck, changes: dict[str, str | None], topic: str, said: str, remedy: str
) -> None:
    found = findings(deck, env=changes)[topic]
    assert said in str(found["said"]) and remedy in str(found["remedy"])
    assert found["ok"] is (remedy == "")


def test_ssh_targets_are_told_with_what_is_not_obeyed(deck: Deck, tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(
        "Host gpu\n HostName 10.0.0.9\n User ann\n Port 2222\n ProxyJump door\n ForwardAgent yes\n"
        " ControlMaster auto\n ControlPath ~/.ssh/m\nHost broken\n ProxyJump broken\n"
    )
    env = {"HOME": str(tmp_path), "SSH_AUTH_SOCK": None}
    found = findings(deck, env={**env, "KERNELDECK_GPU_HOST": "gpu"})
    told = [
        finding for topic, finding in found.items() if topic.startswith("target") and topic != "target in use"
    ]
    assert "ControlMaster, ControlPath, ForwardAgent" in str(told[-1]["said"])
    lines = deck.run("doctor", env={**env, "KERNELDECK_GPU_HOST": "gpu"}).out
    assert "WARN" in lines and "ann@10.0.0.9 port 2222 by way of door; no key file, no agent" in lines
    assert "ssh-keygen" in lines
    circle = deck.run("doctor", env={**env, "KERNELDECK_GPU_HOST": "broken"}).out
    assert "its ProxyJump leads in a circle" in circle


def test_outside_a_workspace_the_rest_is_told(tmp_path: Path) -> None:
    done = kerneldeck("doctor", cwd=tmp_path)
    assert done.code == 0 and "is no workspace" in done.out and "target in use" in done.out


def test_a_terminals_size_is_told(deck: Deck) -> None:
    code, text = on_a_terminal("doctor", cwd=deck.root, columns=80)
    assert code == 0 and "80x24" in text
    _, small = on_a_terminal("doctor", cwd=deck.root, columns=30)
    assert "make it larger: 40x12 is the least" in " ".join(small.split())


@pytest.mark.parametrize(
    ("environ", "depth"),
    [
        ({"TERM": "xterm"}, "16"), ({"TERM": "screen-256color"}, "256"), ({"TERM": "dumb"}, "none"),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "16 million"), ({}, "none"),
        ({"TERM": "xterm-direct"}, "16 million"), ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "none"),
    ],
)  # fmt: skip
def test_how_many_colours_there_are(environ: dict[str, str], depth: str) -> None:
    assert colour_depth(environ) == depth


def test_tmux_is_asked(deck: Deck, tmp_path: Path) -> None:
    socket = tmp_path / "tmux"
    try:
        subprocess.run(["tmux", "-S", str(socket), "-f", "/dev/null", "new", "-d", "sleep 600"], check=True)
    except FileNotFoundError:
        pytest.skip("tmux is not installed")
    try:
        options = {"-sg escape-time": "500", "-s set-clipboard": "off", "-g default-terminal": "xterm"}
        for option, value in options.items():
            words = ["tmux", "-S", str(socket), "set", *option.split(), value]
            subprocess.run(words, check=True)
        found = findings(deck, env={"TMUX": f"{socket},{os.getpid()},0", "TERM": "tmux-256color"})
        assert "escape-time 10" in str(found["tmux escape-time"]["remedy"])
        assert "set-clipboard on" in str(found["tmux set-clipboard"]["remedy"])
        assert "tmux-256color" in str(found["tmux default-terminal"]["remedy"])
        assert str(found["tmux"]["said"]).startswith("tmux ")
    finally:
        subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=True)
