"""Forked trials on the remote side: what they find loaded, why some do not, and that nothing else differs."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from core.targets.ssh.bundle import _MODULES as MODULES_THERE
from core.targets.ssh.remote_trials import LockWish
from tests.cli.deck import Deck
from tests.remote.agents import agent, processes_with, run
from tests.remote.conftest import Serve
from tests.remote.far import far_of
from tests.remote.forking import forked, heavy, parents, told
from tests.remote.sshd import User
from tests.targets.bench import ends
from tests.targets.test_prefork import SWEPT, TOML
from tests.targets.test_prefork_equal import ENDINGS, INSIDE, MODULES


@pytest.mark.parametrize("file", MODULES_THERE, ids=[file.name for file in MODULES_THERE])
def test_no_function_imports_a_module_of_ours(file: Path) -> None:
    """A parent forgets them, so that a trial's module of the same name is found."""
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    inside = [node for function in functions for node in ast.walk(function)]
    names = {node.module or "" for node in inside if isinstance(node, ast.ImportFrom)}
    names |= {alias.name for node in inside if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names} == set()


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


ITS_FOLDER, LAID_OUT = r"/[^\s\"':]*/trials/[0-9a-f]{32}", "work"


def unplaced(text: str) -> str:
    """Without the folder's name, and without the number under which the lock is open."""
    text = re.sub(rf"{ITS_FOLDER}/{LAID_OUT}/[0-9a-f]{{8}}", "HERE", text)
    text = re.sub(r'\[\d+, ("[^"]*lock")\]', r"\1", text)
    return re.sub(rf"{ITS_FOLDER}|0x[0-9a-f]+", "IT", text)


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
