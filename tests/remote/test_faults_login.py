"""A way in that is closed: told with its stage, nothing begun, nothing touched, nothing left."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.remote.far import Before, Far, Ground, settled_ground, verified


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory, keys: Path) -> Iterator[Ground]:
    with settled_ground(tmp_path_factory.mktemp("ground"), keys) as made:
        yield made


Way = Callable[[Ground, Path, int], Far]


def with_host_key(ground: Ground, folder: Path, line: str) -> Far:
    far = ground.far(folder)
    far.user.known_hosts.write_text(line)
    return far


def another_key(ground: Ground, folder: Path, _: int) -> Far:
    return with_host_key(ground, folder, f"box {(ground.keys / 'other_host.pub').read_text()}")


@pytest.mark.parametrize(
    ("way", "stage", "words"),
    [
        (lambda ground, folder, shut: ground.far(folder, port=shut), "connect",
         "box refused the connection (3 tries)"),
        (lambda ground, folder, _: ground.far(folder, "HostName nowhere.invalid"), "dns",
         "box: its host name cannot be resolved"),
        (another_key, "hostkey", "box shows another host key than before"),
        (lambda ground, folder, _: with_host_key(ground, folder, ""), "hostkey",
         "box shows a host key that is not known here"),
        (lambda ground, folder, _: ground.far(folder, key="stranger"), "auth",
         "box refused the login; keys tried: 1 from files"),
        (lambda ground, folder, _: ground.far(folder, key="locked"), "auth",
         "the key needs its passphrase, and no agent holds it"),
    ],
    ids=["refused", "dns", "wrong-host-key", "unknown-host-key", "bad-key", "locked-key"],
)  # fmt: skip
def test_a_closed_way_in(
    ground: Ground, tmp_path: Path, closed_port: int, way: Way, stage: str, words: str
) -> None:
    far = way(ground, tmp_path, closed_port)
    known = far.user.known_hosts.read_text()
    before = Before.of(far)
    before.check_not_begun(verified(far), stage, words)
    assert not far.scratch.exists() and far.user.known_hosts.read_text() == known


def test_a_silent_peer(ground: Ground, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        far = ground.far(tmp_path, "ConnectTimeout 1", port=silent.getsockname()[1])
        before = Before.of(far)
        words = "box accepted the connection but said nothing within 1 s"
        before.check_not_begun(verified(far), "connect", words)


def behind(far: Far, port: int) -> Far:
    """`far` behind the jump host `gate` on this port."""
    text = far.user.config.read_text()
    far.user.config.write_text(text.replace("Host box\n", "Host box\n  ProxyJump gate\n"))
    far.user.writes("gate", port, "HostKeyAlias box")
    return far


def test_a_jump_host_that_is_there(ground: Ground, tmp_path: Path) -> None:
    with ground.serving(tmp_path / "gate") as gate:
        far = behind(ground.far(tmp_path), gate.port)
        before = Before.of(far)
        assert far.deck.json("run", env=far.env)["score"] == 300
        assert "Accepted publickey" in gate.log.read_text()
        before.check_unharmed(1)


def test_a_jump_host_that_is_not_there(ground: Ground, tmp_path: Path, closed_port: int) -> None:
    far = behind(ground.far(tmp_path), closed_port)
    before = Before.of(far)
    before.check_not_begun(verified(far), "connect", "box: its jump host gate refused the connection")
