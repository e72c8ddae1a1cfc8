"""The agent behind a real sshd: the same requests, the same answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.targets.ssh.bundle import MARK, Boot
from core.targets.ssh.connection import Connection
from core.targets.ssh.link import AgentLink
from core.targets.ssh.remote_sync import RemoteSync
from core.targets.ssh.remote_trials import RemoteTrial, RemoteTrials, greet
from tests.remote.agents import NONCE, Held
from tests.remote.conftest import Serve
from tests.remote.connecting import connected
from tests.remote.sshd import User

pytestmark = pytest.mark.usefixtures("nothing_stays_open")


def test_a_trial_runs_over_a_real_connection(user: User, serve: Serve, tmp_path: Path) -> None:
    server = serve()
    user.trusts(server)
    user.writes("box", server.port)

    async def main(connection: Connection) -> None:
        boot = Boot(scratch=str(tmp_path / "s"))
        mark = MARK + boot.marker.encode() + b" "
        link = await AgentLink.open(await connection.open_agent_channel(boot.line, mark), boot)
        await greet(link, locks=str(tmp_path / "locks"))
        held = Held()
        trials = RemoteTrials(link, RemoteSync(link, held))
        tree = held.tree({"a": b"content\n", "large": bytes(3 << 20)})
        trial = RemoteTrial(
            ("sh", "-c", "cat a; wc -c < large; yes | head -c 3000000 >&2"), 30.0, (tree,), NONCE
        )
        collected = await trials.run(trial, tmp_path / "out")
        assert collected.ended.clean
        assert (tmp_path / "out" / "stdout").read_text() == "content\n3145728\n"
        assert (tmp_path / "out" / "stderr").stat().st_size == 3_000_000
        await link.close()

    connected(user, main)
