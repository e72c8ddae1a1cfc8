"""Several clients of one host: they see the same, take turns, and one of them may only look."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import KerneldeckError
from core.events import TrialEnded
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot, fold
from tests.cli.deck import Deck
from tests.host.hosting import client, gated, until

FINAL = {"mode": "final"}


def test_work_is_asked_for_and_its_events_come_in_order(deck: Deck) -> None:
    async def both() -> None:
        async with client(deck, actor="tui") as one:
            seen: list[object] = []
            answer = await one.call("run_objective", FINAL, tell=seen.append)
            assert answer.content["status"] == "ok" and answer.exit_code == 0
            assert [type(event).__name__ for event in seen] == ["TrialBegan", "TrialEnded"]
            snapshot = await one.snapshot()
            assert snapshot.work is None and snapshot.ended[0].score == 100
            assert snapshot.ended[0].actor == "tui"
            assert snapshot.workspace is not None and snapshot.workspace.name == "sums"

    asyncio.run(both())


def test_whoever_folds_the_events_has_the_hosts_snapshot(deck: Deck) -> None:
    async def both() -> None:
        async with client(deck, actor="tui") as watcher, client(deck) as worker:
            updates = watcher.updates()
            own = await anext(updates)
            assert isinstance(own, Snapshot)
            await worker.call("guarded_final_verify", {})
            numbers = []
            while not (own.workspace and own.workspace.best):
                update = await anext(updates)
                assert isinstance(update, Numbered)
                numbers.append(update.seq)
                own = fold(own, update)
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "none is left out"
            assert own == watcher.latest == await worker.snapshot()
            assert own.workspace.best.score == 100 and own.workspace.changed_files == ()

    asyncio.run(both())


def test_events_behind_a_number_are_told_and_no_others(deck: Deck) -> None:
    async def both() -> None:
        async with client(deck) as one:
            await one.call("run_objective", FINAL)
            middle = (await one.snapshot()).seq
            await one.call("run_objective", FINAL)
            last = (await one.snapshot()).seq
            found = []
            async for update in one.updates(after=middle):
                assert isinstance(update, Numbered), "they are all kept, so no snapshot is needed"
                found.append(update.seq)
                if update.seq == last:
                    break
            assert found == list(range(middle + 1, last + 1))

    asyncio.run(both())


def test_one_who_only_looks_may_look_and_nothing_else(deck: Deck) -> None:
    async def both() -> None:
        async with client(deck, readonly=True) as looker, client(deck) as worker:
            for asked in (
                looker.submit("run_objective", FINAL),
                looker.control("pause"),
                looker.cancel(1),
            ):
                with pytest.raises(KerneldeckError, match="only looks on"):
                    await asked
            await worker.call("run_objective", FINAL)
            seen = await looker.snapshot()
            assert len(seen.ended) == 1 and {one.readonly for one in seen.clients} == {True, False}

    asyncio.run(both())
    assert deck.seen()["history"] == {"ok": 1}


def test_they_take_turns_in_the_order_of_asking(deck: Deck) -> None:
    reached, go_on = gated(deck)

    async def three() -> None:
        async with client(deck, actor="tui") as app, client(deck) as script:
            first = await script.submit("run_objective", FINAL, command="kerneldeck run")
            await until(app, lambda now: now.trial is not None)
            second = await app.submit("run_objective", {"mode": "dev"})
            third = await app.submit("run_objective", FINAL)
            now = await app.snapshot()
            assert now.work is not None and now.work.receipt == first.receipt and now.work.leased
            assert [work.receipt for work in now.queue] == [second.receipt, third.receipt]
            with pytest.raises(
                KerneldeckError, match=r"is held by `kerneldeck run` \(pid \d+, since"
            ) as busy:
                await (await script.submit("run_objective", FINAL, wait_s=0)).answer()
            assert busy.value.code == "session.busy" and busy.value.exit_code == 3
            with pytest.raises(KerneldeckError, match="is held by"):
                await (await script.submit("run_objective", FINAL, wait_s=0.05)).answer()
            go_on.touch()
            for pending in (first, second, third):
                assert (await pending.answer()).content["status"] == "ok"

    asyncio.run(three())
    assert reached.exists() and deck.seen()["history"] == {"ok": 3}


def test_anybody_may_cancel_what_waits_and_what_runs(deck: Deck) -> None:
    gated(deck)

    async def both() -> None:
        async with client(deck, actor="tui") as app, client(deck) as script:
            running = await script.submit("run_objective", FINAL)
            await until(app, lambda now: now.trial is not None)
            waiting = await script.submit("run_objective", FINAL)
            for pending in (waiting, running):
                await app.cancel(pending.receipt)
                with pytest.raises(KerneldeckError) as ended:
                    await pending.answer()
                assert (ended.value.code, ended.value.exit_code) == ("cancelled", 130)
            with pytest.raises(KerneldeckError, match="no work #99 runs or waits"):
                await app.cancel(99)
            now = await app.snapshot()
            assert now.work is None and now.queue == () and now.trial is None
            assert [trial.status for trial in now.ended] == ["cancelled"]

    asyncio.run(both())


def test_a_fault_keeps_its_code_its_hint_and_its_exit_code(deck: Deck) -> None:
    deck.run("verify")
    deck.write("verifier.sh", "#!/bin/sh\nexit 0\n")

    async def one() -> KerneldeckError:
        async with client(deck) as script:
            with pytest.raises(KerneldeckError) as fault:
                await script.call("guarded_final_verify", {})
            with pytest.raises(KerneldeckError, match="has no argument 'moode'"):
                await script.call("run_objective", {"moode": "final"})
            with pytest.raises(KerneldeckError, match="there is no operation 'run'"):
                await script.call("run", {})
            with pytest.raises(KerneldeckError, match="needs no host"):
                await script.call("inspect_context", {})
            return fault.value

    fault = asyncio.run(one())
    assert (fault.code, fault.exit_code) == ("workspace.seal", 2)
    assert "kerneldeck reseal" in fault.hint


def test_trials_get_the_callers_environment_not_the_hosts(deck: Deck) -> None:
    deck.kernel("score=${SCORE:-1}")

    async def both() -> list[float | None]:
        async with client(deck) as one:
            import os

            answers = []
            for changes in ({"SCORE": "7"}, {}, {"SCORE": "8"}):
                environment = {**os.environ, **changes}
                pending = await one.submit("run_objective", FINAL, environment=environment)
                answers.append((await pending.answer()).content["score"])
            return answers

    assert asyncio.run(both()) == [7, 1, 8]


def test_what_has_ended_is_told_newest_first_to_a_new_host_too(deck: Deck) -> None:
    deck.run("run", "--mode", "final")
    deck.kernel("score=90")
    deck.run("run", "--mode", "final")

    async def one() -> Snapshot:
        async with client(deck) as late:
            return await late.snapshot()

    assert [trial.score for trial in asyncio.run(one()).ended] == [90, 100]


def test_an_event_names_its_work_and_its_actor(deck: Deck) -> None:
    async def both() -> None:
        async with client(deck, actor="mcp") as agent:
            pending = await agent.submit("run_objective", FINAL)
            await pending.answer()
            async for update in agent.updates(after=0):
                if isinstance(update, Numbered) and isinstance(update.event, TrialEnded):
                    assert (update.actor, update.receipt) == ("mcp", pending.receipt)
                    return

    asyncio.run(both())


def test_those_who_watch_see_the_workspace_change(deck: Deck) -> None:
    deck.run("verify")

    async def watch() -> None:
        async with client(deck, actor="tui") as app:
            now = await until(app, lambda now: now.workspace is not None)
            assert now.workspace is not None
            assert now.workspace.changed_files == () and now.workspace.fault == ""
            assert now.workspace.best is not None and now.workspace.best.score == 100
            deck.kernel("score=90")
            await until(
                app, lambda now: now.workspace is not None and now.workspace.changed_files == ("kernel.sh",)
            )
            deck.write("verifier.sh", "#!/bin/sh\nexit 1\n")
            sealed = await until(app, lambda now: now.workspace is not None and now.workspace.fault != "")
            assert (
                sealed.workspace is not None and "differ from the seal: verifier.sh" in sealed.workspace.fault
            )
            deck.write("kerneldeck.toml", "schema = 1\nname =\n")
            await until(
                app, lambda now: now.workspace is not None and "kerneldeck.toml" in now.workspace.fault
            )

    asyncio.run(watch())
