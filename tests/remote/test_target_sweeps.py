"""Commands to a sweep on an SSH target, and going on with it there after its process has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from core.sweep.plan import Cancel
from tests.remote.conftest import Serve
from tests.remote.far import Far, far_of
from tests.remote.sshd import User
from tests.sweep.live import Gated, Live, screened, store_of


@pytest.fixture
def far(tmp_path: Path, user: User, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Far:
    """The target `gpu`, in use in this process."""
    far = far_of(tmp_path, user, serve())
    for name, value in far.env.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    return far


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    """Blocks 1, 2, 4 and 8 score 131, 121, 101 and 141; the workspace holds 1, the screening of 2 waits."""
    gated = Gated(tmp_path / "knobs", "[ $block$mode = 2dev ]")
    yield gated
    gated.close()


def live(work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await work()

    asyncio.run(whole())


def test_a_cancelled_trial_ends_there_and_the_next_one_runs(far: Far, gated: Gated) -> None:
    async def work() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        assert await sweep.ask(Cancel(gated.candidate(2), "tui")) == ""
        assert (await sweep.answer())["winner"]["config"]["block"] == 4

    live(work)
    assert screened(gated.deck, 1) == [("start", "ok"), (2, "cancelled"), (4, "ok"), (8, "ok")]
    assert far.left() == []


def test_a_sweep_whose_process_has_gone_goes_on_there(far: Far, gated: Gated) -> None:
    async def first() -> None:
        sweep = Live(gated.deck)
        sweep.start()
        await sweep.until_screening(2)
        await sweep.cut_off()

    live(first)
    with store_of(gated.deck) as store:
        assert [sweep.target for sweep in store.running_sweeps()] == ["ssh:gpu"]

    async def second() -> None:
        sweep = Live(gated.deck)
        sweep.start("resume_sweep")
        gated.let_go()
        answer = await sweep.answer()
        assert answer["kept"] and answer["winner"]["config"]["block"] == 4

    live(second)
    assert screened(gated.deck, 1) == [("start", "ok"), (2, "cancelled"), (2, "ok"), (4, "ok"), (8, "ok")]
    assert far.left() == []
