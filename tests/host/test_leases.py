"""Work that ends with its client, and work that does not."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from core.words import JsonObject
from tests.cli.deck import Deck, interrupt, processes_with, wait_until
from tests.host.hosting import client, command, gated, host_pid, kill, rows, until

SWEEP = ("sweep", "config", "--set", "block=2,4,8")


def only_the_host(deck: Deck) -> bool:
    return processes_with(str(deck.root)) == [host_pid(deck.root)]


def test_a_killed_command_takes_its_trial_with_it(deck: Deck) -> None:
    reached, go_on = gated(deck)
    running = command(deck, "run", "--mode", "final")
    wait_until(reached.exists, "the trial")
    kill(running.pid)
    running.communicate()
    wait_until(lambda: deck.seen()["history"] == {"cancelled": 1}, "its end on record")
    wait_until(lambda: only_the_host(deck), "the end of all that it had started")
    go_on.touch()
    assert "recovered" not in deck.run("run", "--mode", "final").said


def test_a_killed_sweep_is_stopped(knobbed: Deck) -> None:
    reached, _ = gated(knobbed, '[ "$mode$block" = dev4 ]')
    running = command(knobbed, *SWEEP)
    wait_until(reached.exists, "the candidate")
    kill(running.pid)
    running.communicate()
    wait_until(lambda: rows(knobbed.root, "SELECT state FROM sweeps") == [("stopped",)], "its end on record")
    assert rows(knobbed.root, "SELECT id FROM trials WHERE status IS NULL") == []
    wait_until(lambda: only_the_host(knobbed), "the end of all that it had started")


def test_while_another_watches_the_work_of_a_killed_command_goes_on(deck: Deck) -> None:
    reached, go_on = gated(deck)

    async def watched() -> None:
        async with client(deck, actor="tui") as app:
            running = command(deck, "run", "--mode", "final")
            await until(app, lambda now: now.trial is not None)
            kill(running.pid)
            running.communicate()
            now = await until(app, lambda now: now.work is not None and not now.work.leased)
            assert now.last == "client 2 left" or "goes on without" in now.last
            go_on.touch()
            ended = await until(app, lambda now: now.work is None)
            assert ended.ended[0].status == "ok"

    asyncio.run(watched())
    assert reached.exists()


def test_ctrl_c_ends_the_work_even_when_others_watch(deck: Deck) -> None:
    gated(deck)

    async def watched() -> None:
        async with client(deck, actor="tui") as app:
            running = deck.start("run", "--mode", "final", "--json")
            await until(app, lambda now: now.trial is not None)
            done = await asyncio.to_thread(interrupt, running)
            assert done.code == 130 and done.answer["error"]["code"] == "cancelled"
            now = await until(app, lambda now: now.work is None)
            assert now.ended[0].status == "cancelled"

    asyncio.run(watched())


def test_work_is_taken_back_by_one_who_has_not_even_got_its_receipt(deck: Deck) -> None:
    """Else it would go on for those who watch."""
    reached, go_on = gated(deck)
    command(deck, "run", "--mode", "final", "--detach").communicate()
    wait_until(reached.exists, "the trial")

    async def watched(monkeypatch: pytest.MonkeyPatch) -> None:
        async with client(deck, actor="tui") as app, client(deck) as waiting:
            late: list[JsonObject] = []
            with monkeypatch.context() as patched:
                patched.setattr(waiting, "_take", late.append)
                asked = asyncio.create_task(waiting.call("run_objective", {}, wait_s=600))
                await until(app, lambda now: len(now.queue) == 1)
                asked.cancel()
            for message in late:
                waiting._take(message)
            with pytest.raises(asyncio.CancelledError):
                await asked
            await until(app, lambda now: now.queue == ())
            go_on.touch()
            ended = await until(app, lambda now: now.work is None)
            assert [trial.status for trial in ended.ended] == ["ok"]

    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(watched(monkeypatch))


def test_ctrl_c_of_one_who_waits_for_its_turn_takes_it_out_of_the_queue(deck: Deck) -> None:
    reached, go_on = gated(deck)
    command(deck, "run", "--mode", "final", "--detach").communicate()
    wait_until(reached.exists, "the trial")

    async def watched() -> None:
        async with client(deck, actor="tui") as app:
            waiting = deck.start("run", "--wait", "600")
            await until(app, lambda now: len(now.queue) == 1)
            assert (await asyncio.to_thread(interrupt, waiting)).code == 130
            await until(app, lambda now: now.queue == ())
            go_on.touch()
            ended = await until(app, lambda now: now.work is None)
            assert [trial.status for trial in ended.ended] == ["ok"]

    asyncio.run(watched())


def test_detached_work_goes_on_without_its_command(knobbed: Deck) -> None:
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    started = command(knobbed, *SWEEP, "--detach", "--json")
    told = json.loads(started.communicate()[0])
    assert told["receipt"] == 1 and told["detached"] is True and started.returncode == 0
    wait_until(reached.exists, "the candidate")
    go_on.touch()
    attached = command(knobbed, "attach")
    out, err = attached.communicate()
    assert attached.returncode == 0, err
    assert out == "#1 ended: done\n" or out == "nothing runs\n"
    assert rows(knobbed.root, "SELECT state, detached FROM sweeps") == [("done", 1)]


def test_detached_work_is_shown_and_how_to_follow_it(deck: Deck) -> None:
    reached, go_on = gated(deck)
    out, _ = command(deck, "verify", "--detach").communicate()
    assert "#1 runs: kerneldeck verify" in out or "#1 waits for its turn: kerneldeck verify" in out
    assert "kerneldeck attach" in out
    wait_until(reached.exists, "the trial")
    busy = deck.fault("run", code=3)
    assert "is held by `kerneldeck verify`" in busy and "see to it: kerneldeck attach" in busy
    refused = command(deck, "verify", "--detach")
    assert "is held by" in refused.communicate()[1] and refused.returncode == 3
    waits, _ = command(deck, "run", "--detach", "--wait", "60").communicate()
    assert "#4 waits for its turn: kerneldeck run" in waits
    go_on.touch()


def test_leaving_an_attached_command_stops_nothing(deck: Deck) -> None:
    reached, go_on = gated(deck)
    command(deck, "verify", "--detach").communicate()
    wait_until(reached.exists, "the trial")
    attached = command(deck, "attach")
    assert attached.stderr is not None
    assert "kerneldeck verify (cli) runs" in attached.stderr.readline()
    attached.send_signal(signal.SIGINT)
    _, err = attached.communicate()
    assert attached.returncode == 0 and "the work goes on" in err
    go_on.touch()
    wait_until(lambda: deck.seen()["best"] is not None, "the verification's end")


@pytest.mark.parametrize("words", [(), ("--now",)])
def test_a_host_that_works_is_stopped_only_when_that_is_meant(knobbed: Deck, words: tuple[str, ...]) -> None:
    reached, go_on = gated(knobbed, '[ "$mode$block" = dev4 ]')
    command(knobbed, *SWEEP, "--detach").communicate()
    wait_until(reached.exists, "the candidate")
    pid = host_pid(knobbed.root)
    if not words:
        assert "end it too: kerneldeck host stop --now" in knobbed.fault("host", "stop", code=3)
        assert host_pid(knobbed.root) == pid
        go_on.touch()
        return
    assert f"the host (pid {pid}) is stopped" in knobbed.run("host", "stop", "--now").out
    assert processes_with(str(knobbed.root)) == [], "with all that it had started"
    assert rows(knobbed.root, "SELECT state FROM sweeps") == [("running",)], "for the next host"
    assert "no host runs" in knobbed.run("host", "stop").out
    go_on.touch()
    assert "no host runs" in knobbed.run("host", "status").out
