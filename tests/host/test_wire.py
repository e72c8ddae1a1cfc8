"""Whatever is sent to a host harms nobody but whoever sent it; whoever is slow gets a newer snapshot."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from core.version import VERSION
from sessions.host.events import Numbered
from sessions.host.snapshot import Snapshot, fold
from sessions.host.wire import PROTOCOL
from tests.cli.deck import DEADLINE_S, REPO, Deck
from tests.host.hosting import client, host_pid, knock, read_line, socket_of, until

HELLO = {"hello": {"protocol": PROTOCOL, "version": VERSION, "actor": "tui", "pid": 1, "command": "a test"}}


def started(deck: Deck) -> int:
    async def once() -> None:
        async with client(deck):
            pass

    asyncio.run(once())
    return host_pid(deck.root)


GARBAGE = [
    b"\n", b"no JSON\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b'{"hello": 7}\n',
    b'{"hello": {"protocol": "1"}}\n', b"[" * 100_000 + b"\n", b"x" * 40_000_000,
]  # fmt: skip
CALL: dict[str, object] = {
    "do": "call", "id": 1, "operation": "run_objective", "arguments": {}, "environment": {}, "cwd": "/",
}  # fmt: skip
REQUESTS: list[object] = [
    {"do": "call"}, {"do": "call", "id": "1"}, {"do": "sing", "id": 1}, {"id": 1}, {"do": "cancel", "id": 1},
    CALL | {"operation": 7}, CALL | {"arguments": []}, CALL | {"cwd": None},
    CALL | {"environment": {"A=": "x"}}, CALL | {"environment": {"A": 1}}, b"}{\n",
    CALL | {"environment": {"A": "\ud800"}}, CALL | {"cwd": "/\0"}, CALL | {"cwd": "/\ud800"},
    CALL | {"wait_s": 10**400}, CALL | {"wait_s": float("nan")}, CALL | {"wait_s": []},
    {"do": "reply", "id": 1, "number": []},
]  # fmt: skip


def test_garbage_ends_its_sender_alone(deck: Deck) -> None:
    pid = started(deck)

    async def beside() -> None:
        async with client(deck) as other:
            for garbage in GARBAGE:
                with knock(deck.root) as connection:
                    try:
                        connection.sendall(garbage)
                        assert await asyncio.to_thread(read_line, connection) == b"", garbage[:40]
                    except (BrokenPipeError, ConnectionResetError):
                        pass
            for request in REQUESTS:
                with knock(deck.root, HELLO, request) as connection:
                    assert b"welcome" in await asyncio.to_thread(read_line, connection)
                    left = await asyncio.to_thread(read_line, connection)
                    assert left == b"", request
            answer = await other.call("run_objective", {"mode": "final"})
            assert answer.exit_code == 0

    asyncio.run(beside())
    assert host_pid(deck.root) == pid
    assert socket_of(deck.root).with_suffix(".log").read_text() == "", "and no trace of a fault"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_is_sent_away_whatever_the_files_modes_say(deck: Deck) -> None:
    started(deck)
    path = socket_of(deck.root)
    for folder in (path.parent, path.parent.parent):
        folder.chmod(0o711)
    path.chmod(0o666)
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(sys.argv[2].encode()); print(s.recv(100))"
    )
    words = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-I", "-S", "-c", program]
    python = Path(sys.executable).resolve()
    words[3] = str(python) if os.access("/root", os.X_OK) and _may_run(python) else "/usr/bin/python3"
    done = subprocess.run([*words, str(path), json.dumps(HELLO) + "\n"], capture_output=True, text=True)
    path.parent.chmod(0o700)
    assert done.stdout == "b''\n" or "ConnectionReset" in done.stderr or "BrokenPipe" in done.stderr, done


def _may_run(python: Path) -> bool:
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", str(python), "-V"], capture_output=True
    )
    return done.returncode == 0


def test_an_idle_client_is_sent_nothing(deck: Deck) -> None:
    started(deck)
    with knock(deck.root, HELLO, {"do": "watch", "id": 1, "after": None}) as connection:
        for _ in range(3):
            read_line(connection)  # welcome, the answer, the snapshot
        connection.settimeout(5.0)
        with pytest.raises(TimeoutError):
            connection.recv(1)


def memory_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def test_a_burst_leaves_memory_flat_and_a_slow_client_with_the_newest_state(deck: Deck) -> None:
    """Three seconds of 1,000 events a second, one client reading all the time and one not at all."""
    words = [sys.executable, str(Path(__file__).with_name("bursting.py")), str(deck.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=REPO, env=os.environ) as bursting:
        assert bursting.stdout is not None and bursting.stdout.readline() == "listens\n"
        asyncio.run(watched(deck, bursting.pid))
        bursting.terminate()
        assert bursting.wait(DEADLINE_S) == 0


async def watched(deck: Deck, pid: int) -> None:
    with knock(deck.root, HELLO, {"do": "watch", "id": 1, "after": None}) as slow:
        assert b"welcome" in read_line(slow)
        async with client(deck) as quick:
            before_kb = memory_kb(pid)
            os.kill(pid, signal.SIGUSR1)
            now = await until(quick, lambda now: now.last == "the burst is over")
            assert memory_kb(pid) - before_kb < 6_000
            last, received = await asyncio.to_thread(newest, slow, now.seq)
            assert last.last == "the burst is over" and received < 2_500


def newest(connection: socket.socket, seq: int) -> tuple[Snapshot, int]:
    """What the slow client knows once it has read on to event `seq`, and how many messages that took."""
    own, count = Snapshot(), 0
    while own.seq < seq:
        message = json.loads(read_line(connection))
        count += 1
        if "snapshot" in message:
            own = Snapshot.from_json(message["snapshot"])
        elif "event" in message:
            own = fold(own, Numbered.from_json(message))
    return own, count
