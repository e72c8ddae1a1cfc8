"""A process killed between any two steps of a write leaves each file old or new, and recovery ends it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.records import FileSet, FileVersion
from sessions.database import Database
from sessions.journal import JournaledFiles
from sessions.recovery import recover
from sessions.state_dir import locate
from sessions.store import SessionStore, open_write

NAMES = ("kernel.py", "config.json", "sub/variant.py")
CONTENTS = st.sampled_from([b"", b"a", b"b" * 5000])
SETS = st.dictionaries(st.sampled_from(NAMES), st.tuples(CONTENTS, st.booleans()))


class Killed(BaseException):
    """The process is no more: nothing after it runs, no matter who would catch errors."""


class Steps:
    """Counts what a process does to the disk; from step `last` on nothing happens any more."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.done = 0

    def step(self) -> None:
        self.done += 1
        if self.done >= self.last:
            raise Killed

    def counted(self, real: Callable[..., object]) -> Callable[..., object]:
        """`real` with a chance to be killed before and after."""

        def call(*arguments: object, **named: object) -> object:
            self.step()
            result = real(*arguments, **named)
            self.step()
            return result

        return call

    def before(self, real: Callable[..., object]) -> Callable[..., object]:
        """`real` with a chance to be killed before it only."""

        def call(*arguments: object, **named: object) -> object:
            self.step()
            return real(*arguments, **named)

        return call

    @contextmanager
    def killing(self) -> Iterator[None]:
        names = ("replace", "fsync", "unlink", "write", "chmod")
        with pytest.MonkeyPatch.context() as patched:
            for name in names:
                patched.setattr(os, name, self.counted(getattr(os, name)))
            real = Database.transaction

            @contextmanager
            def transaction(database: Database, action: str, wait_for_disk: bool = True) -> Iterator[object]:
                self.step()
                with real(database, action, wait_for_disk) as connection:
                    yield connection
                    self.step()
                self.step()

            patched.setattr(Database, "transaction", transaction)
            yield


def versions(store: SessionStore, files: dict[str, tuple[bytes, bool]]) -> FileSet:
    return {name: FileVersion(store.blobs.put(content), run) for name, (content, run) in files.items()}


def expect_old_or_new(found: FileSet, old: FileSet, new: FileSet) -> None:
    for name in NAMES:
        assert found.get(name) in (old.get(name), new.get(name)), name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(SETS, st.integers(1, 60)), min_size=1, max_size=4))
def test_any_sequence_of_killed_writes_leaves_each_file_old_or_new(
    writes: list[tuple[dict[str, tuple[bytes, bool]], int]],
) -> None:
    with TemporaryDirectory() as folder, open_write(locate(Path(folder))) as store:
        files = JournaledFiles(Path(folder), NAMES, store)
        for wanted, last in writes:
            old, new = files.current(), versions(store, wanted)
            begun = len(store.journal())
            with suppress(Killed), Steps(last).killing():
                files.write(new, {}, "random")
            expect_old_or_new(files.versions(), old, new)
            recover(store, files)
            # Once the intent is on disk the write is finished, else it never was.
            assert files.current() == (new if len(store.journal()) > begun else old)
            assert store.unfinished_writes() == []
            assert list(Path(folder).rglob("*.tmp")) == []


def test_recovery_itself_may_be_killed_anywhere(
    root: Path, files: JournaledFiles, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = files.current()
    new = versions(store, {"kernel.py": (b"new", True), "config.json": (b"[]", False)})
    for last in itertools.count(1):
        second_rename = Steps(2)
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(os, "replace", second_rename.before(os.replace))
            files.write(new, {}, "apply")
        assert files.versions() not in (old, new)
        steps = Steps(last)
        with suppress(Killed), steps.killing():
            recover(store, files)
        expect_old_or_new(files.versions(), old, new)
        recover(store, files)
        assert files.current() == new
        files.write(old, {}, "again")
        if steps.done < last:
            break
    assert last > 8


KILL_AT_EVERY_CALL = """
import itertools, os, shutil, signal, sys
from pathlib import Path
from core.records import FileVersion
from sessions.journal import JournaledFiles
from sessions.recovery import recover
from sessions.state_dir import locate
from sessions.store import open_write

CALLS = {"open", "os.rename", "os.chmod", "os.chown", "os.remove", "os.mkdir", "sqlite3.connect"}
NAMES = ("kernel.py", "config.json")
OLD, NEW = [b"old kernel", b"{}"], [b"new kernel", b"[]"]
root = Path(sys.argv[1])

def contents():
    return [(root / name).read_bytes() for name in NAMES]

def write(last):
    done = 0
    def event(name, arguments):
        nonlocal done
        if name in CALLS:
            done += 1
        if name in CALLS and done == last:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(event)
    store = open_write(locate(root))
    new = {name: FileVersion(store.blobs.put(content)) for name, content in zip(NAMES, NEW)}
    JournaledFiles(root, NAMES, store).write(new, {}, "apply")
    os._exit(0)

for last in itertools.count(1):
    shutil.rmtree(locate(root).folder, ignore_errors=True)
    for name, content in zip(NAMES, OLD):
        (root / name).write_bytes(content)
    child = os.fork()
    if not child:
        write(last)
    status = os.waitpid(child, 0)[1]
    assert all(found in pair for found, pair in zip(contents(), zip(OLD, NEW))), last
    with open_write(locate(root)) as store:
        recover(store, JournaledFiles(root, NAMES, store))
        rows = [row.state for row in store.journal()]
    assert rows in ([], ["done"]), (last, rows)
    assert contents() == (NEW if rows else OLD), last
    assert not list(root.glob("*.tmp")), last
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0
        break
    assert os.WTERMSIG(status) == signal.SIGKILL, last
print("killed", last - 1)
"""


def test_a_real_kill_at_every_system_call_leaves_whole_files(
    root: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    done = run_python(KILL_AT_EVERY_CALL, root)
    word, count = done.stdout.split()
    assert (word, done.returncode) == ("killed", 0), done.stdout
    assert int(count) > 40
