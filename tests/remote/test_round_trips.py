"""What the SSH target says over the wire, counted at a proxy: round trips and bytes, never times."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.records import FileSet, FileVersion
from core.targets.job import Job, Layout, Outcome
from core.targets.ssh import local_tree
from core.targets.ssh.address import parse_address
from core.targets.ssh.host import SshHost
from core.targets.ssh.places import Place
from core.targets.ssh.target import SshTarget
from core.targets.staging import Materials
from core.words import Status
from core.workspace.config import Objective
from tests.remote.agents import run
from tests.remote.conftest import Serve
from tests.remote.far import PYTHON
from tests.remote.proxy import Proxy, proxying
from tests.remote.sshd import Server, User

MEASURE = 'echo "{\\"status\\": \\"passed\\", \\"score\\": $(cat kernel.txt)}"; cat other/* | cksum >&2'


class MemoryBlobs:
    """Contents of the sealed and the mutable files."""

    def __init__(self) -> None:
        self.by_hash: dict[str, bytes] = {}

    def put(self, content: bytes) -> FileSet:
        sha256 = hashlib.sha256(content).hexdigest()
        self.by_hash[sha256] = content
        return {"kernel.txt": FileVersion(sha256)}

    def get(self, sha256: str) -> bytes:
        return self.by_hash[sha256]


@dataclass
class Wire:
    """A workspace, the target behind a proxy, and what went through that with the last trial."""

    root: Path
    proxy: Proxy
    target: SshTarget
    blobs: MemoryBlobs
    outputs: Path

    async def trial(self, score: int) -> Outcome:
        kernel = self.blobs.put(f"{score}\n".encode())
        self.proxy.forget_counts()
        job = Job(("sh", "-c", MEASURE), "final", 30.0, (Layout(kernel),), self.outputs)
        outcome = await self.target.run(job)
        assert outcome.status is Status.OK and outcome.score == score, outcome
        return outcome

    @property
    def said(self) -> str:
        return (self.outputs / "stderr").read_text()


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve()


@asynccontextmanager
async def wire(folder: Path, user: User, server: Server, files: int) -> AsyncIterator[Wire]:
    """A target that was opened and ran one trial of a workspace with this many other files."""
    root = folder / "ws"
    names = tuple(f"other/{number}.txt" for number in range(files))
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name * 100)
    user.known_hosts.write_text(server.known_hosts_line.replace(f"[127.0.0.1]:{server.port}", "box"))
    async with proxying(server.port) as proxy:
        user.writes("box", proxy.port, "HostKeyAlias box")
        place = Place("box", parse_address("ssh:box"), scratch=str(folder / "scratch"), python=PYTHON)
        blobs = MemoryBlobs()
        materials = Materials(root, {}, names)
        target = SshTarget(SshHost(place), materials, blobs, Objective("score"))  # type: ignore[arg-type]
        await target.open()
        try:
            made = Wire(root, proxy, target, blobs, folder / "outputs")
            await made.trial(1)
            yield made
        finally:
            await target.close()


def test_a_warm_trial_is_one_round_trip_and_a_few_hundred_bytes(
    tmp_path: Path, user: User, server: Server
) -> None:
    async def main() -> None:
        async with wire(tmp_path, user, server, 4) as made:
            for score in (2, 2, 3):
                await made.trial(score)
                assert made.proxy.round_trips == 1
                assert made.proxy.up_bytes < 1_500 and made.proxy.down_bytes < 1_500

    run(main())


def test_two_thousand_files_cost_no_more_when_none_or_one_has_changed(
    tmp_path: Path, user: User, server: Server
) -> None:
    async def main() -> None:
        async with wire(tmp_path, user, server, 2_000) as made:
            before = made.said
            await made.trial(1)
            assert made.said == before and made.proxy.round_trips == 1
            assert made.proxy.up_bytes < 1_500 and made.proxy.down_bytes < 1_500
            (made.root / "other" / "7.txt").write_text("seven")
            await made.trial(1)
            assert made.said != before and made.proxy.round_trips == 1
            assert made.proxy.up_bytes < 2_000 and made.proxy.down_bytes < 1_500

    run(main())


def test_a_file_whose_status_lies_is_read_while_its_trial_runs_which_then_runs_again(
    tmp_path: Path, user: User, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with wire(tmp_path, user, server, 200) as made:
            honest = made.said
            monkeypatch.setattr(local_tree._Read, "agrees_in_all", lambda *_: True)
            (made.root / "other" / "7.txt").write_text("other/8.txt" * 100)
            await made.trial(1)
            assert made.said != honest and made.proxy.round_trips == 2
            (made.root / "other" / "7.txt").write_text(
                "another length: asked for, and not to be had as believed"
            )
            await made.trial(1)
            assert made.said != honest and made.proxy.round_trips > 2
            (made.root / "other" / "7.txt").unlink()
            (made.root / "other" / "7.txt").write_text("other/7.txt" * 100)
            await made.trial(1)
            assert made.said == honest

    run(main())
