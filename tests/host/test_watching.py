"""Looking on from commands: watch, attach, host status."""

from __future__ import annotations

import json
import re
import signal
import subprocess

from tests.cli.deck import Deck, wait_until
from tests.cli.terminal import on_a_terminal
from tests.host.hosting import command, gated, host_pid

TIMED = re.compile(r"\d\d:\d\d:\d\d ")


def line_with(watching: subprocess.Popen[str], text: str) -> list[str]:
    """The lines up to the first that holds `text`."""
    assert watching.stdout is not None
    lines = []
    while not lines or text not in lines[-1]:
        line = watching.stdout.readline()
        assert line, f"{text!r} was never told: {lines}"
        lines.append(line.rstrip("\n"))
    return lines


def test_watch_prints_one_line_an_event_into_a_pipe(deck: Deck) -> None:
    watching = command(deck, "watch", "--plain")
    line_with(watching, "nothing runs")
    deck.run("verify")
    lines = line_with(watching, "#1 ended: done, exit 0")
    assert all(TIMED.match(line) for line in lines) and not any("\x1b" in line for line in lines)
    told = "\n".join(lines)
    assert "kerneldeck verify (#1, cli) was asked for" in told and "#1 began" in told
    assert "trial #1 began: verify, mode final, on local" in told and "trial #1 ended: ok 100" in told
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate()
    assert (watching.returncode, err) == (0, "")


def test_watch_ends_with_the_host_and_when_its_reader_goes(deck: Deck) -> None:
    watching = command(deck, "watch", "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["snapshot"]["work"] is None
    second = command(deck, "watch")
    line_with(second, "nothing runs")
    assert second.stdout is not None
    second.stdout.close()
    deck.run("run", "--mode", "final")
    deck.run("run", "--mode", "final")
    assert second.wait(60) == 0
    assert second.stderr is not None
    assert second.stderr.read() == ""
    second.stderr.close()
    assert "is stopped" in deck.run("host", "stop").out
    out, err = watching.communicate()
    assert (watching.returncode, err) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["seq"] for event in events] == list(range(events[0]["seq"], events[0]["seq"] + len(events)))
    assert events[-1]["event"] == {"type": "HostLeaves", "reason": "it was stopped"}


def test_watch_ends_with_its_reader_while_nothing_happens(deck: Deck) -> None:
    """As in `kerneldeck watch --plain | head -1`: the shell would wait, and the host stay for it."""
    watching = command(deck, "watch", "--plain")
    line_with(watching, "nothing runs")
    assert watching.stdout is not None and watching.stderr is not None
    watching.stdout.close()
    assert watching.wait(60) == 0
    assert watching.stderr.read() == ""
    watching.stderr.close()


def test_status_tells_who_works_and_who_waits(deck: Deck) -> None:
    assert "no host runs for" in deck.run("host", "status").out
    reached, go_on = gated(deck)
    running = command(deck, "run", "--mode", "final")
    wait_until(reached.exists, "the trial")
    waiting = command(deck, "verify", "--wait", "60")
    wait_until(lambda: "waits: #2 kerneldeck verify" in deck.run("host", "status").out, "the second command")
    told = deck.run("host", "status").out
    assert f"host: pid {host_pid(deck.root)}, version " in told
    assert "#1 kerneldeck run (cli) runs; 1 more waits" in told
    assert f"cli, kerneldeck run (pid {running.pid})" in told
    snapshot = json.loads(deck.run("host", "status", "--json").out)["snapshot"]
    assert snapshot["work"]["leased"] is True and len(snapshot["queue"]) == 1
    go_on.touch()
    for process in (running, waiting):
        process.communicate()
        assert process.returncode == 0


def test_attach_shows_a_bar_on_a_terminal(deck: Deck) -> None:
    reached, go_on = gated(deck)
    command(deck, "verify", "--detach").communicate()
    wait_until(reached.exists, "the trial")
    count = deck.root.parent / "attached"
    deck.write("look.sh", f"#!/bin/sh\ntouch {count}\n")
    go_on.touch()
    code, text = on_a_terminal("attach", cwd=deck.root)
    assert code == 0 and ("#1 ended: done" in text or "nothing runs" in text)
