"""Forked trials on the remote side: what waits for a parent, why some do not, and who outlives whom."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.errors import TargetFault
from core.targets.ssh.bundle import _MODULES as MODULES_THERE
from core.targets.ssh.remote_trials import Collected, LockWish, RemoteTrial
from tests.cli.deck import Deck, wait_until
from tests.remote.agents import RESULT, Running, agent, processes_with, run
from tests.remote.conftest import Serve
from tests.remote.far import far_of
from tests.remote.sshd import User
from tests.remote.test_agent_links import begun, open_gate
from tests.targets.bench import ends
from tests.targets.test_prefork import SWEPT, TOML
from tests.targets.test_prefork_equal import ENDINGS, INSIDE, MODULES

LOADED = (
    RESULT
    + """
import os, sys
loaded = "heavy" in sys.modules
import heavy
if os.environ.get("GATE"):
    open(os.environ["GATE"]).read()
print(loaded, heavy.STATE)
heavy.STATE = "changed by a trial"
result(us=1.0)
"""
)


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    folder = tmp_path / "modules"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("file", MODULES_THERE, ids=[file.name for file in MODULES_THERE])
def test_no_function_imports_a_module_of_ours(file: Path) -> None:
    """A parent forgets them, so that a trial's module of the same name is found."""
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    inside = [node for function in functions for node in ast.walk(function)]
    names = {node.module or "" for node in inside if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in inside if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names} == set()


def heavy(folder: Path, source: str = "") -> None:
    (folder / "heavy.py").write_text(f"STATE = 'fresh'\n{source}\n")


def forked(there: Running, modules: Path, program: str = LOADED, **more: Any) -> RemoteTrial:
    env = {"PYTHONPATH": str(modules), **more.pop("env", {})}
    return there.script(program, env=env, prefork=more.pop("prefork", ("heavy",)), **more)


def told(collected: Collected) -> tuple[object, ...]:
    stdout = (collected.folder / "stdout").read_text().strip()
    return collected.outcome["forked"], stdout, collected.outcome["note"]


def parents(there: Running) -> list[int]:
    """The agent's children that run a program of their own."""
    found = []
    for pid in processes_with("PARENT=sys.argv"):
        with suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == there.process.pid:
                found.append(pid)
    return found


def test_a_trial_finds_the_modules_loaded_and_nothing_of_an_earlier_one(
    tmp_path: Path, modules: Path
) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            for number, (named, loaded) in enumerate([(("heavy",), True), ((), False), (("heavy",), True)]):
                collected = await there.trials.run(
                    forked(there, modules, prefork=named), tmp_path / f"{number}"
                )
                assert told(collected) == (loaded, f"{loaded} fresh", "")
            (parent,) = parents(there)
        assert ends(parent)
        assert processes_with(str(tmp_path / "s")) == []

    run(main())


def unplaced(text: str) -> str:
    """Without the folder's name, and without the number under which the lock is open."""
    text = re.sub(r"/[^\s\"':]*/trials/[0-9a-f]{32}/work/[0-9a-f]{8}", "HERE", text)
    text = re.sub(r'\[\d+, ("[^"]*lock")\]', r"\1", text)
    return re.sub(r"/[^\s\"':]*/trials/[0-9a-f]{32}|0x[0-9a-f]+", "IT", text)


def test_it_is_what_it_would_be_from_nothing(tmp_path: Path) -> None:
    """With the lock's descriptor, which a trial inherits, and the umask of the login."""

    async def main() -> None:
        ending = [ENDINGS[name] for name in ("code", "words", "raises", "atexit", "thread", "interrupted")]
        async with agent(tmp_path / "s", "sh", "-c", 'umask 027; exec "$@"', "sh") as there:
            for number, program in enumerate([INSIDE, *ending]):
                seen = []
                for named in ((), MODULES):
                    folder = tmp_path / f"{number}.{len(named)}"
                    lock = LockWish("cpu", "me", "here")
                    trial = there.script(program, prefork=named, lock=lock, files={"wire.py": b"a = 1"})
                    collected = await there.trials.run(trial, folder)
                    assert collected.outcome["forked"] is bool(named)
                    ended = collected.ended
                    streams = [unplaced((folder / name).read_text()) for name in ("stdout", "stderr")]
                    seen.append((ended.exit_code, ended.signal, ended.ended_by, ended.left_behind, streams))
                assert seen[0] == seen[1]
                if program is INSIDE:
                    assert json.loads(seen[0][4][0])["umask"] == 0o027

    run(main())


def test_modules_that_are_named_as_ours_are_the_trials_own(tmp_path: Path) -> None:
    async def main() -> None:
        names = ("agent", "wire", "watchdog", "forked", "ending", "imports", "agent_prefork", "remove_tree")
        program = "\n".join(f"import {name}; print({name}.VALUE)" for name in names)
        files = {f"{name}.py": f"VALUE = 'mine: {name}'".encode() for name in names}
        async with agent(tmp_path / "s") as there:
            trial = there.script(program, files=files, prefork=MODULES)
            collected = await there.trials.run(trial, tmp_path / "out")
        assert told(collected)[0] is True
        assert (tmp_path / "out" / "stdout").read_text().splitlines() == [f"mine: {name}" for name in names]

    run(main())


DECLINED = {
    "raise ValueError('no')": "heavy could not be imported (ValueError: no)",
    "import os; os._exit(0)": "importing heavy ended the interpreter",
    "import time; time.sleep(600)": "importing heavy took longer than 0.5 s",
    "import signal, time; signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(600)":
        "importing heavy took longer than 0.5 s",
}  # fmt: skip


@pytest.mark.parametrize("source", DECLINED)
def test_what_cannot_be_imported_is_said_once_and_trials_start_from_nothing(
    tmp_path: Path, modules: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    async def main() -> None:
        heavy(modules, source)
        async with agent(tmp_path / "s") as there:
            said = []
            for number in (1, 2):
                trial = forked(there, modules, "print('ran')", import_within_s=0.5)
                said.append(told(await there.trials.run(trial, tmp_path / f"{number}")))
            assert parents(there) == []
        assert said == [
            (False, "ran", f"prefork: {DECLINED[source]}: trials start from nothing"),
            (False, "ran", ""),
        ]

    run(main())


def test_what_imports_print_reaches_neither_the_channel_nor_a_trial(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, "import os, sys\nfor n in range(9): os.write(n, b'noise') if n < 3 and n else None")
        async with agent(tmp_path / "s") as there:
            collected = await there.trials.run(forked(there, modules), tmp_path / "out")
            assert await there.link.request("ping", {}, 10) is not None
        assert told(collected) == (True, "True fresh", "")
        assert (tmp_path / "out" / "stderr").read_text() == ""

    run(main())


@pytest.mark.parametrize("wrapper", [("env",), ("nice",)])
def test_a_command_in_a_wrapper_runs_from_nothing(tmp_path: Path, wrapper: tuple[str, ...]) -> None:
    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            trial = there.script("print('ran')", prefork=("nowhere",), wrapper=wrapper)
            assert told(await there.trials.run(trial, tmp_path / "out")) == (False, "ran", "")

    run(main())


def waits_for(gate: Path) -> str:
    """The source of a module whose import waits until somebody opens the pipe."""
    os.mkfifo(gate)
    return f"open({str(gate)!r}).read()"


async def importing(there: Running) -> None:
    async with asyncio.timeout(20):
        while not parents(there):
            await there.link.request("ping", {}, 10)


def test_the_agent_answers_while_a_parent_imports(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        async with agent(tmp_path / "s") as there:
            waiting = [
                asyncio.create_task(there.trials.run(forked(there, modules), tmp_path / f"{number}"))
                for number in (1, 2)
            ]
            await importing(there)
            other = await there.trials.run(there.script("print('other')"), tmp_path / "other")
            assert told(other) == (False, "other", "")
            rows = (await there.link.request("trials", {}, 10))["trials"]
            assert [row["state"] for row in rows if row["trial"] != ""].count("running") == 2
            await asyncio.to_thread(open_gate, tmp_path / "import")
            for collected in await asyncio.gather(*waiting):
                assert told(collected) == (True, "True fresh", "")
            assert len(parents(there)) == 1

    run(main())


@pytest.mark.parametrize("word", [b"[]", b"1", b"null", b"[" * 60000, b"\xff"])
def test_a_word_that_makes_no_sense_is_no_reason_to_end(tmp_path: Path, modules: Path, word: bytes) -> None:
    """What imports write where their parent is heard."""

    async def main() -> None:
        attempt = f"    try: os.write(n, {word!r})\n    except OSError: pass"
        heavy(modules, f"import os\nfor n in range(3, 20):\n{attempt}")
        async with agent(tmp_path / "s") as there:
            collected = await there.trials.run(forked(there, modules, "print('ran')"), tmp_path / "out")
            assert told(collected)[:2] == (False, "ran")
            assert await there.link.request("ping", {}, 10) is not None

    run(main())


def test_a_trial_that_waits_for_a_parent_can_be_cancelled(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules)
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "1"))
            await importing(there)
            assert await there.trials.cancel(trial.id)
            collected = await task
            assert collected.ended.ended_by == "cancel" and collected.outcome["forked"] is False
            (parent,) = parents(there)
        assert ends(parent), "it was still importing"

    run(main())


def test_a_trial_that_waits_goes_on_without_its_agent(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, waits_for(tmp_path / "import"))
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, "import os; open(os.environ['GATE']).read(); print('ran')",
                           env={"GATE": str(tmp_path / "gate")})  # fmt: skip
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "1"))
            await importing(there)
            (parent,) = parents(there)
        with pytest.raises(TargetFault):
            await task
        assert ends(parent)
        async with agent(tmp_path / "s") as there:
            attached = asyncio.create_task(there.trials.attach(trial.id, tmp_path / "2", 30))
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            assert told(await attached) == (False, "ran", "")

    run(main())


def test_a_forked_trial_outlives_its_killed_agent_and_parent(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, env={"GATE": str(tmp_path / "gate")})
            task = await begun(there, trial, tmp_path / "1")
            (parent,) = parents(there)
            there.process.kill()
            with pytest.raises(TargetFault):
                await task
            assert await asyncio.to_thread(ends, parent)
        async with agent(tmp_path / "s") as there:
            attached = asyncio.create_task(there.trials.attach(trial.id, tmp_path / "2", 30))
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            collected = await attached
            assert told(collected) == (True, "True fresh", "") and collected.ended.clean
            assert (tmp_path / "2" / "result").exists()

    run(main())


def test_a_parent_that_was_killed_is_replaced(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            await there.trials.run(forked(there, modules), tmp_path / "1")
            (parent,) = parents(there)
            os.kill(parent, signal.SIGKILL)
            await asyncio.to_thread(ends, parent)
            for number in (2, 3):
                collected = await there.trials.run(forked(there, modules), tmp_path / f"{number}")
                assert (tmp_path / f"{number}" / "result").exists()
            assert told(collected) == (True, "True fresh", "")
            assert parents(there) != [parent]

    run(main())


STOPS = """
import os, signal, sys
def above(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
print("heavy" in sys.modules, above(os.getppid()))
if "heavy" in sys.modules:
    os.kill(above(os.getppid()), signal.SIGSTOP)
"""


@pytest.mark.parametrize("killed", [False, True], ids=["leaves", "is killed"])
def test_a_parent_that_a_trial_has_stopped_is_replaced_and_ends_with_the_agent(
    tmp_path: Path, modules: Path, killed: bool
) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            seen = []
            for number in (1, 2, 3):
                collected = await there.trials.run(forked(there, modules, STOPS), tmp_path / f"{number}")
                assert collected.ended.exit_code == 0
                seen.append((tmp_path / f"{number}" / "stdout").read_text().split())
            assert [loaded for loaded, _ in seen] == ["True", "False", "True"]
            first, last = int(seen[0][1]), int(seen[2][1])
            assert first != last and await asyncio.to_thread(ends, first)
            if killed:
                there.process.kill()
        assert ends(last)

    run(main())


def test_imports_work_in_an_empty_folder_of_their_own(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules, "import os\nSTATE = [os.getcwd(), os.listdir()]\nopen('left', 'w').close()")
        async with agent(tmp_path / "s") as there:
            for number in (1, 2):
                program = "import heavy, json; print(json.dumps(heavy.STATE))"
                collected = await there.trials.run(forked(there, modules, program), tmp_path / f"{number}")
                loaded, stdout, note = told(collected)
                assert (loaded, note) == (True, "")
            folder, found = json.loads(str(stdout))
            assert found == [] and folder.startswith(f"{tmp_path}/s/")

    run(main())


HANGS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
forked = os.fork()
if forked == 0:
    os.setsid()
    time.sleep(600)
with open(os.environ["PIDS"], "w") as file:
    print(os.getpid(), child.pid, forked, os.getppid(), file=file)
os.rename(os.environ["PIDS"], os.environ["PIDS"] + ".whole")
time.sleep(600)
"""


def pids_told(path: Path) -> list[int]:
    whole = path.with_suffix(".whole")
    wait_until(whole.exists, "the trial's processes")
    return [int(word) for word in whole.read_text().split()]


def test_a_time_out_ends_a_forked_trial_and_its_grandchildren(tmp_path: Path, modules: Path) -> None:
    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            trial = forked(
                there, modules, HANGS, env={"PIDS": str(tmp_path / "pids")}, wall_s=0.5, grace_s=0.2
            )
            collected = await there.trials.run(trial, tmp_path / "out")
            assert collected.ended.ended_by == "timeout" and collected.outcome["forked"] is True
            assert all(ends(pid) for pid in pids_told(tmp_path / "pids")[:3])

    run(main())


def test_what_a_killed_keeper_leaves_of_a_forked_trial_is_ended(tmp_path: Path, modules: Path) -> None:
    """Its forked processes carry the parent's environment; they work in the trial's tree."""

    async def main() -> None:
        heavy(modules)
        async with agent(tmp_path / "s") as there:
            trial = forked(there, modules, HANGS, env={"PIDS": str(tmp_path / "pids")})
            task = asyncio.create_task(there.trials.run(trial, tmp_path / "out"))
            *pids, keeper = await asyncio.to_thread(pids_told, tmp_path / "pids")
            os.kill(keeper, signal.SIGKILL)
            collected = await task
            assert collected.outcome["stage"] == "lost"
            assert all(ends(pid) for pid in pids)

    run(main())


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.chdir("/")
    os.closerange(0, 1000)
    if os.fork():
        os._exit(0)
    with open(os.environ["PIDS"], "w") as file:
        print(os.getpid(), file=file)
    os.rename(os.environ["PIDS"], os.environ["PIDS"] + ".whole")
    time.sleep(600)
while not os.path.exists(os.environ["PIDS"] + ".whole"):
    time.sleep(0.01)
os.kill(os.getppid(), 9)
time.sleep(600)
"""


def test_a_daemon_of_a_forked_trial_is_ended_when_its_keeper_is_killed(tmp_path: Path, modules: Path) -> None:
    """Nothing of it names the trial: it was left to the parent. Another's keeper is none of that."""

    async def main() -> None:
        heavy(modules)
        os.mkfifo(tmp_path / "gate")
        async with agent(tmp_path / "s") as there:
            env = {"GATE": str(tmp_path / "gate"), "PIDS": str(tmp_path / "pids")}
            waits = await begun(there, forked(there, modules, env=env), tmp_path / "other")
            trial = forked(there, modules, DAEMON, env=env)
            collected = await there.trials.run(trial, tmp_path / "out")
            assert collected.outcome["stage"] == "lost"
            (daemon,) = await asyncio.to_thread(pids_told, tmp_path / "pids")
            assert await asyncio.to_thread(ends, daemon)
            await asyncio.to_thread(open_gate, tmp_path / "gate")
            await waits
            assert len(parents(there)) == 1
        assert (tmp_path / "other" / "stdout").read_text() == "True fresh\n"

    run(main())


def test_a_sweep_over_ssh_forks_what_screens_and_nothing_that_decides(
    tmp_path: Path, user: User, serve: Serve
) -> None:
    far = far_of(tmp_path, user, serve())
    seen = tmp_path / "seen"
    deck = Deck(tmp_path / "swept")
    deck.write("kerneldeck.toml", TOML)
    deck.write("benchmark.py", SWEPT.replace('os.environ["SEEN"]', repr(str(seen))))
    deck.config(block=4)
    deck.json("sweep", "config", "--keep-best", env=far.env)
    rows = seen.read_text().splitlines()
    screened = [row for row in rows if row == "dev True"]
    assert len(screened) == 3
    assert set(rows) - {"dev True"} == {"final False"}
    assert far.left() == []


def test_what_goes_wrong_only_in_a_fork_does_not_count_over_ssh(
    tmp_path: Path, user: User, serve: Serve
) -> None:
    far = far_of(tmp_path, user, serve())
    deck = Deck(tmp_path / "swept")
    deck.write("kerneldeck.toml", TOML)
    program = SWEPT.replace('os.environ["SEEN"]', repr(str(tmp_path / "seen")))
    deck.write("benchmark.py", program + "if loaded: sys.exit(3)\n")
    deck.config(block=4)
    swept = deck.json("sweep", "config", env=far.env)
    assert swept["screened"] == {"ok": 3}, json.dumps(swept)
    rows = (tmp_path / "seen").read_text().splitlines()
    assert [row for row in rows if row.startswith("dev")] == ["dev True", *["dev False"] * 3]
