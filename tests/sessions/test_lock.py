"""One writing command at a time, and what the others are told."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess, Popen

import pytest

from core.errors import Busy
from sessions.database import open_for_writing
from sessions.holder import Holder
from sessions.lock import hold, holder_of, release_foreign
from sessions.state_dir import StatePlace, create, locate

StartPython = Callable[..., Popen[str]]

HOLD = """
import sys
from pathlib import Path
from core.errors import Busy
from sessions.lock import hold
from sessions.state_dir import locate
try:
    with hold(locate(Path(sys.argv[1])), "kerneldeck sweep", float(sys.argv[2])):
        print("held", flush=True)
        sys.stdin.readline()
except Busy as busy:
    print(busy)
print("left", flush=True)
"""


@pytest.fixture(params=["local", "network"])
def place(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> StatePlace:
    """A state on a local disk, and on a network file system."""
    if request.param == "network":
        monkeypatch.setenv("KERNELDECK_ASSUME_NETWORK_FS", "1")
    return locate(root)


@pytest.fixture
def network_place(root: Path) -> StatePlace:
    return locate(root, environ={"KERNELDECK_ASSUME_NETWORK_FS": "1"})


@pytest.fixture
def holding(place: StatePlace, start_python: StartPython) -> Iterator[Popen[str]]:
    """Another process that holds the workspace until its input ends."""
    process = start_python(HOLD, place.workspace, 0)
    assert process.stdout and process.stdout.readline() == "held\n"
    yield process


def let_go(process: Popen[str]) -> None:
    assert process.stdin and process.stdout
    process.stdin.close()
    assert process.stdout.readline() == "left\n"
    process.stdin = None


def test_a_second_command_is_told_who_holds_it(place: StatePlace, holding: Popen[str]) -> None:
    with pytest.raises(Busy) as caught, hold(place, "kerneldeck run"):
        pass
    expected = f"{place.workspace} is held by `kerneldeck sweep` (pid {holding.pid}, since "
    assert caught.value.sentence.startswith(expected)
    assert caught.value.hint == "wait with --wait SECONDS, or end that command"
    assert caught.value.exit_code == 3


def test_the_workspace_is_free_when_the_command_ended(place: StatePlace, holding: Popen[str]) -> None:
    let_go(holding)
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_the_workspace_is_free_when_the_command_was_killed(place: StatePlace, holding: Popen[str]) -> None:
    holding.kill()
    holding.wait()
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_a_killed_command_that_nobody_waited_for_holds_nothing(
    place: StatePlace, holding: Popen[str]
) -> None:
    holding.kill()
    os.waitid(os.P_PID, holding.pid, os.WEXITED | os.WNOWAIT)
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_a_waiting_command_goes_on_as_soon_as_it_is_free(
    place: StatePlace, holding: Popen[str], start_python: StartPython
) -> None:
    waiting = start_python(HOLD, place.workspace, 60)
    let_go(holding)
    assert waiting.stdout and waiting.stdout.readline() == "held\n"
    let_go(waiting)


def test_waiting_ends_at_its_deadline(place: StatePlace, holding: Popen[str]) -> None:
    before = time.monotonic()
    with pytest.raises(Busy), hold(place, "kerneldeck run", wait_s=0.3):
        pass
    assert 0.3 <= time.monotonic() - before < 10


def test_one_process_cannot_hold_it_twice(place: StatePlace) -> None:
    with (
        hold(place, "kerneldeck run"),
        pytest.raises(Busy, match=rf"`kerneldeck run` \(pid {os.getpid()}"),
        hold(place, "kerneldeck sweep"),
    ):
        pass


def test_an_exception_frees_it(place: StatePlace) -> None:
    with pytest.raises(KeyError), hold(place, "kerneldeck run"):
        raise KeyError
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_a_child_that_outlives_its_command_holds_nothing(
    place: StatePlace, start_python: StartPython
) -> None:
    with hold(place, "kerneldeck run"):
        child = start_python("import sys; print('here', flush=True); sys.stdin.readline()")
        assert child.stdout and child.stdout.readline() == "here\n"
    with hold(place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_who_holds_it_can_be_looked_up(root: Path, start_python: StartPython) -> None:
    place = locate(root)
    assert holder_of(place) is None
    process = start_python(HOLD, root, 0)
    assert process.stdout and process.stdout.readline() == "held\n"
    holder = holder_of(place)
    assert holder is not None and holder.pid == process.pid and holder.command == "kerneldeck sweep"
    process.kill()
    process.wait()
    assert holder_of(place) is None


def test_a_lock_file_removed_by_hand_while_waiting_is_made_anew(root: Path) -> None:
    place = locate(root)
    create(place)
    place.lock.write_text("not JSON")
    assert holder_of(place) is None
    with hold(place, "kerneldeck run"):
        place.lock.unlink()
    with hold(place, "kerneldeck run"):
        assert place.lock.exists()


LOCK_ON_READ_ONLY = """
import os, sys
from pathlib import Path
from core.errors import StorageFault
from sessions.lock import hold
from sessions.state_dir import locate
import pwd
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    with hold(locate(Path(sys.argv[1])), "kerneldeck run"):
        print("held")
except StorageFault as fault:
    print(fault)
"""


def test_a_state_that_cannot_be_written_is_said(
    open_folder: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    root = open_folder / "workspace"
    root.mkdir()
    create(locate(root))
    locate(root).folder.chmod(0o555)
    done = run_python(LOCK_ON_READ_ONLY, root)
    assert "cannot lock the workspace: no permission for" in done.stdout


def row_of(place: StatePlace, holder: Holder) -> None:
    """Put a holder's row into the database, as that process would have."""
    database = open_for_writing(place.database, network=True)
    with database.transaction("test") as connection:
        connection.execute("INSERT OR REPLACE INTO holder VALUES (1, ?)", (holder.to_text(),))
    database.close()


@pytest.fixture
def here() -> Holder:
    return Holder.here("kerneldeck sweep")


@pytest.mark.parametrize(
    "changes",
    [{"boot": "an earlier boot"}, {"started": "1"}, {"pid": 2**22 + 5}],
    ids=["rebooted", "number taken by another process", "ended"],
)
def test_a_row_of_a_process_that_is_gone_is_taken_over(
    network_place: StatePlace, here: Holder, changes: dict[str, object]
) -> None:
    create(network_place)
    row_of(network_place, replace(here, **changes))  # type: ignore[arg-type]
    with hold(network_place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


@pytest.mark.parametrize("changes", [{"host": "node17"}, {"machine": "another with the same name"}])
def test_a_row_of_another_machine_is_never_taken_over(
    network_place: StatePlace, here: Holder, changes: dict[str, str]
) -> None:
    create(network_place)
    other = replace(here, boot="another boot", user="anna", **changes)
    row_of(network_place, other)
    with pytest.raises(Busy) as caught, hold(network_place, "kerneldeck run"):
        pass
    assert f"user anna, on {other.host}" in caught.value.sentence
    assert "`kerneldeck unlock`" in caught.value.hint
    assert release_foreign(network_place) == other
    assert release_foreign(network_place) is None
    with hold(network_place, "kerneldeck run") as holder:
        assert holder.pid == os.getpid()


def test_a_command_of_this_machine_that_runs_cannot_be_unlocked(network_place: StatePlace) -> None:
    with (
        hold(network_place, "kerneldeck run"),
        pytest.raises(Busy, match=r"`kerneldeck run` \(pid"),
    ):
        release_foreign(network_place)


def test_unlocking_makes_no_state(network_place: StatePlace) -> None:
    assert release_foreign(network_place) is None
    assert not network_place.folder.exists()


def test_a_holder_of_another_day_is_told_with_its_date(here: Holder) -> None:
    assert "since 1970-01-0" in replace(here, since_s=1.0).described(here, time.time())


def test_two_writers_of_a_network_state_take_turns(network_place: StatePlace) -> None:
    create(network_place)
    first, second = (open_for_writing(network_place.database, network=True) for _ in range(2))
    second.row("PRAGMA busy_timeout = 0")
    with (
        first.transaction("hold a write open"),
        pytest.raises(Busy, match="locked by another process"),
        second.transaction("write"),
    ):
        pass
    with second.transaction("write"):
        pass
    first.close()
    second.close()
