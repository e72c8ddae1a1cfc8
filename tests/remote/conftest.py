"""Shared by the remote tests: a user with keys, and servers that end with the test."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.deck import Deck, configured, plain
from tests.remote.sshd import SSHD, Server, User, make_key, serving

Serve = Callable[..., Server]


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of key pairs: two hosts, the user's own, a stranger's, one with a passphrase."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "other_host", "user", "stranger"):
        make_key(folder / name)
    make_key(folder / "locked", passphrase="a passphrase")
    return folder


@pytest.fixture
def serve(tmp_path: Path, keys: Path) -> Iterator[Serve]:
    """`serve(*options, host_key=…, port=…)`: one more sshd with these lines in its configuration."""
    if not SSHD:
        pytest.skip("openssh-server is not installed")
    with ExitStack() as servers:
        count = 0

        def one_more(*options: str, host_key: str = "host", port: int = 0) -> Server:
            nonlocal count
            count += 1
            return servers.enter_context(
                serving(tmp_path / f"sshd{count}", keys / host_key, [keys / "user"], options, port)
            )

        yield one_more


@pytest.fixture
def user(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user with an empty ssh configuration, no known hosts and no agent."""
    folder = tmp_path / "near"
    (folder / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    config, known = folder / ".ssh" / "config", folder / ".ssh" / "known"
    config.touch()
    known.touch()
    return User(folder, keys / "user", known, config)


@pytest.fixture
def nothing_stays_open() -> Iterator[None]:
    """The test gives back every socket."""
    before = _sockets()
    yield
    assert _sockets() <= before, "a socket was left open"


def _sockets() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except OSError:
            continue
    return {name for name in found if name.startswith("socket:")}


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that stays refused: bound, not listened to."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    """A local workspace whose kernel scores 100 ms."""
    return plain(tmp_path / "here")


@pytest.fixture
def knobbed(tmp_path: Path) -> Deck:
    """A workspace with a config file and two knobs."""
    return configured(tmp_path / "knobs")


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Where a test puts what its trials import."""
    folder = tmp_path / "modules"
    folder.mkdir()
    return folder
