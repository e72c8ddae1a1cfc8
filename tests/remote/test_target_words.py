"""What a person reads of trials on a target: where they ran, and what to do after a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.remote.conftest import Serve
from tests.remote.far import Far, far_of
from tests.remote.sshd import User


@pytest.fixture
def far(tmp_path: Path, user: User, serve: Serve) -> Far:
    return far_of(tmp_path, user, serve())


def test_a_trial_says_where_it_ran_when_that_was_not_here(far: Far) -> None:
    assert "trial #1 on ssh:gpu  dev benchmark  ok" in far.deck.run("run", env=far.env).out
    assert "trial #2  dev benchmark  ok" in far.deck.run("run", "--target", "local", env=far.env).out
    seen = far.deck.run("inspect", env=far.env).out
    assert "trials run on: ssh:gpu" in seen
    assert "#1 on ssh:gpu run dev ok" in seen and "#2 run dev ok" in seen


def test_a_final_that_the_machine_ended_says_what_is_next(far: Far) -> None:
    far.describe(wrapper=["no-such-program"])
    said = far.deck.run("verify", env=far.env, code=3).out
    assert "pending, nothing was decided and nothing touched" in said and "  0.00 s" not in said
    assert "next: kerneldeck verify, when the machine is back" in said
    candidate = far.deck.json("inspect", env=far.env)["pending"]
    seen = far.deck.run("inspect", env=far.env).out
    assert f"a final verification of {candidate[:12]} is pending: kerneldeck verify" in seen
    far.describe()
    far.deck.run("verify", env=far.env)
    assert far.deck.json("inspect", env=far.env)["pending"] is None
