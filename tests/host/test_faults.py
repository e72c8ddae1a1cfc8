"""What goes wrong inside the host or a client is told to whoever waits, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.errors import Busy, KerneldeckError, StorageFault
from core.operations.catalogue import operation_named
from core.operations.declaration import Answer
from core.records import SweepRecord
from core.sweep.mailbox import Mailbox
from sessions.host import server, serving
from sessions.host.desk import Desk, Job
from sessions.host.event_log import EventLog
from sessions.host.events import Event, Work
from sessions.host.resuming import keep_sweeps
from sessions.host.server import Host
from sessions.host.snapshot import Snapshot
from sessions.host.visitor import Visitor
from sessions.host.wire import encoded, read_message
from sessions.session import Caller, Held, hold_workspace
from sessions.store import SessionStore
from tests.cli.deck import DEADLINE_S, Deck
from tests.host.hosting import client
from tests.host.test_wire import HELLO


class Broken:
    """A host of which nothing can be seen."""

    def __init__(self) -> None:
        self.log = EventLog(Snapshot())
        self.desk: Desk
        self.root = ""
        self.leaving = ""

    def came(self, visitor: Visitor) -> None:
        pass

    went = annotate = came

    def receipt(self) -> int:
        return 1

    def look(self) -> None:
        raise ZeroDivisionError("so it is")

    async def cancel(self, actor: str, receipt: int) -> bool:
        return False

    async def control(self, actor: str, message: object) -> str:
        return ""


def test_a_fault_of_the_hosts_own_is_an_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def asked() -> dict[str, object] | None:
        async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await Visitor(Broken(), reader, writer).serve()  # type: ignore[arg-type]
            writer.close()

        async with await asyncio.start_unix_server(visit, tmp_path / "s"), asyncio.timeout(DEADLINE_S):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            writer.write(encoded(HELLO) + encoded({"do": "snapshot", "id": 7}))
            await read_message(reader)
            told = await read_message(reader)
            writer.write(encoded({"do": "bye", "id": 8}))
            await reader.read()
            writer.close()
            return told

    told = asyncio.run(asked())
    assert told is not None and told["re"] == 7
    assert told["fault"]["code"] == "internal" and "so it is" in told["fault"]["sentence"]  # type: ignore[index]
    assert "ZeroDivisionError" in capfd.readouterr().err, "its trace is in the log"


def test_a_client_that_cannot_show_an_event_is_not_left_waiting(deck: Deck) -> None:
    def broken(event: Event) -> None:
        raise ZeroDivisionError

    async def called() -> None:
        async with client(deck) as one, asyncio.timeout(DEADLINE_S):
            pending = await one.submit("run_objective", {"mode": "final"}, tell=broken)
            await pending.answer()

    with pytest.raises(KerneldeckError):
        asyncio.run(called())


def test_whoever_waits_for_the_start_is_told_once(tmp_path: Path) -> None:
    ours, its = os.pipe()
    waiting = serving._Waiting(its)
    waiting.tell({"ready": True})
    assert os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT) == its, "the next file gets its number"
    waiting.tell({"fault": "too late"})
    assert os.read(ours, 100) == b'{"ready": true}\n'
    assert os.fstat(its).st_size == 0
    os.close(ours)
    os.close(its)


def test_a_lock_that_is_just_being_left_is_waited_for(deck: Deck, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is locked, and its text gone already."""
    deck.run("run")
    lock = os.open(deck.root / ".kerneldeck/lock", os.O_RDWR)
    pauses: list[float] = []

    def left(pause_s: float) -> None:
        pauses.append(pause_s)
        fcntl.flock(lock, fcntl.LOCK_UN)

    with monkeypatch.context() as patched:
        patched.setattr(serving.time, "sleep", left)
        fcntl.flock(lock, fcntl.LOCK_EX)
        with serving._held(deck.root, "") as held:
            assert held.root == deck.root and len(pauses) == 1
    os.close(lock)


@contextmanager
def holding(deck: Deck) -> Iterator[Held]:
    deck.run("run")
    with hold_workspace(deck.root, "a test") as held:
        yield held


def leased_sweep(held: Held) -> SweepRecord:
    contract = held.store.trials(1)[0].contract_id
    return held.store.add_sweep(SweepRecord({}, contract, "cli", time.time(), target="local"))


def test_a_sweep_whose_client_went_while_it_was_set_up_goes_on_in_the_next_host(
    deck: Deck, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def performed(held: Held) -> None:
        operation = operation_named("sweep_kernel_config")
        assert operation is not None
        work = Work(1, operation.id, "cli", "kerneldeck sweep config", 1, 1, True, 0.0)
        ended: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        host, job = Host(held, 0.0, []), Job(work, operation, {}, {}, str(deck.root), ended)

        async def sets_up(held: Held, _: object, __: object, caller: Caller, *___: object) -> Answer:
            host.desk.keep(job)  # others watch
            assert caller.on_sweep is not None
            caller.on_sweep(leased_sweep(held).id, Mailbox())
            return Answer({})

        monkeypatch.setattr(server, "call_held", sets_up)
        await host._perform(job)

    with holding(deck) as held:
        asyncio.run(performed(held))
        assert [sweep.detached for sweep in held.store.running_sweeps()] == [True]


@pytest.mark.parametrize("fault", [StorageFault, Busy])
def test_what_cannot_be_stored_of_a_kept_sweep_ends_nothing(
    deck: Deck, monkeypatch: pytest.MonkeyPatch, fault: type[KerneldeckError]
) -> None:
    def refuses(*_: object) -> None:
        raise fault("cannot store the sweep")

    with holding(deck) as held:
        sweep = leased_sweep(held)
        with monkeypatch.context() as patched:
            patched.setattr(SessionStore, "update_sweep", refuses)
            keep_sweeps(held.store, [sweep.id])
        keep_sweeps(held.store, [sweep.id])
        assert [one.detached for one in held.store.running_sweeps()] == [True]


def test_a_look_that_fails_ends_nothing_and_is_logged_once(
    deck: Deck, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("so it is")

    monkeypatch.setattr("sessions.host.looking.Looker.look", broken)
    with hold_workspace(deck.root, "a test") as held:
        host = Host(held, 0.0, [])
        host.look()
        host.look()
    assert capfd.readouterr().err.count("ZeroDivisionError: so it is") == 1
