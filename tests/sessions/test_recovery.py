"""What the next writing command puts right after a killed one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from core.errors import StorageFault
from core.records import Candidate, FileSet, FileVersion, SweepRecord, TrialRecord
from core.words import Status
from sessions.journal import JournaledFiles
from sessions.recovery import recover
from sessions.store import SessionStore

CONTRACT = "contract-1"
FIRST = Candidate({"kernel.py": FileVersion("0" * 64)}, {"block": 0})
TRIAL = TrialRecord(FIRST.id, CONTRACT, "dev", "screen", "local", "cli")


def interrupted(files: JournaledFiles, store: SessionStore, new: dict[str, bytes]) -> FileSet:
    """An intent to write `new`, with nothing written yet; the new file set."""
    wanted = {name: FileVersion(store.blobs.put(content)) for name, content in new.items()}
    store.begin_write(files.current(), wanted, "apply of trial 7")
    return wanted


NEW = {"kernel.py": b"new kernel", "config.json": b"[]"}


def test_nothing_to_put_right_says_nothing(files: JournaledFiles, store: SessionStore) -> None:
    assert recover(store, files) == []


def test_a_write_with_nothing_done_is_finished(files: JournaledFiles, store: SessionStore) -> None:
    new = interrupted(files, store, NEW)
    assert recover(store, files) == [
        "finished writing config.json (interrupted write: apply of trial 7)",
        "finished writing kernel.py (interrupted write: apply of trial 7)",
    ]
    assert files.current() == new
    assert [row.state for row in store.journal()] == ["done"]
    assert recover(store, files) == []


def test_a_write_half_done_is_finished(files: JournaledFiles, store: SessionStore, root: Path) -> None:
    new = interrupted(files, store, NEW)
    (root / "config.json").write_bytes(b"[]")
    assert recover(store, files) == ["finished writing kernel.py (interrupted write: apply of trial 7)"]
    assert files.current() == new


def test_a_removal_is_finished(files: JournaledFiles, store: SessionStore, root: Path) -> None:
    interrupted(files, store, {"kernel.py": b"new kernel"})
    recover(store, files)
    assert not (root / "config.json").exists()


def test_a_write_that_only_lacked_its_end_is_closed(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    interrupted(files, store, NEW)
    for name, content in NEW.items():
        (root / name).write_bytes(content)
    assert recover(store, files) == ["an interrupted write (apply of trial 7) had reached every file"]
    assert [row.state for row in store.journal()] == ["done"]


def test_a_file_edited_since_stays_and_is_kept(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    interrupted(files, store, NEW)
    (root / "kernel.py").write_text("edited by hand")
    finished, left = recover(store, files)
    assert finished.startswith("finished writing config.json")
    assert left.startswith("left kernel.py as it was edited by hand, its content kept as ")
    assert (root / "kernel.py").read_text() == "edited by hand"
    (row,) = store.journal()
    assert row.state == "left"
    assert left in row.note
    assert store.blobs.get(files.current()["kernel.py"].sha256) == b"edited by hand"


def test_a_file_that_the_write_did_not_touch_may_be_edited(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    interrupted(files, store, {"kernel.py": b"new kernel", "config.json": b"{}"})
    (root / "config.json").write_text("edited by hand")
    assert recover(store, files) == ["finished writing kernel.py (interrupted write: apply of trial 7)"]
    assert (root / "config.json").read_text() == "edited by hand"
    assert store.journal()[0].state == "done"


def test_a_file_removed_by_hand_since_stays_removed(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    interrupted(files, store, NEW)
    (root / "kernel.py").unlink()
    assert any("left kernel.py removed" in sentence for sentence in recover(store, files))
    assert not (root / "kernel.py").exists()


def test_a_lost_content_leaves_the_old_file_whole(
    files: JournaledFiles, store: SessionStore, root: Path
) -> None:
    new = interrupted(files, store, NEW)
    store.blobs.remove(new["kernel.py"].sha256)
    said = recover(store, files)
    assert any("left kernel.py as it is" in sentence and "is not kept" in sentence for sentence in said)
    assert (root / "kernel.py").read_text() == "old kernel"
    assert (root / "config.json").read_text() == "[]"
    assert recover(store, files) == []


def test_a_full_disk_leaves_the_write_open_for_the_next_time(
    files: JournaledFiles, store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, os.strerror(28))

    new = interrupted(files, store, NEW)
    with monkeypatch.context() as patched, pytest.raises(StorageFault, match="is full"):
        patched.setattr(os, "fsync", full)
        recover(store, files)
    assert len(store.unfinished_writes()) == 1
    recover(store, files)
    assert files.current() == new


def test_an_open_row_with_a_later_write_behind_it_is_only_closed(
    files: JournaledFiles, store: SessionStore
) -> None:
    interrupted(files, store, NEW)
    last = {name: FileVersion(store.blobs.put(content)) for name, content in (("kernel.py", b"last"),)}
    files.write(last, {}, "later")
    store.begin_write(files.current(), last, "the same again")
    recover(store, files)
    assert files.current() == last
    assert {row.state for row in store.journal()} == {"done"}


def test_interrupted_trials_are_cancelled_and_ended_ones_stay(
    files: JournaledFiles, store: SessionStore
) -> None:
    ended = store.begin_trial(TRIAL).ended(Status.OK, score=1.5)
    store.end_trial(ended, {"n": 1})
    store.begin_trial(TRIAL)
    store.begin_trial(TRIAL)
    assert recover(store, files) == ["2 interrupted trials are cancelled"]
    assert [(trial.status, trial.reason) for trial in store.trials()] == [
        (Status.CANCELLED, "interrupted"),
        (Status.CANCELLED, "interrupted"),
        (Status.OK, ""),
    ]
    assert store.trial(ended.id) == ended
    assert store.result(ended.id) == {"n": 1}


def test_interrupted_sweeps_are_stopped_with_the_reason(files: JournaledFiles, store: SessionStore) -> None:
    done = store.add_sweep(SweepRecord({}, CONTRACT, "cli", 1.0, state="done"))
    running = store.add_sweep(SweepRecord({}, CONTRACT, "cli", 2.0, summary={"screened": 3}))
    assert recover(store, files) == [f"sweep {running.id} was interrupted and is stopped"]
    stopped = store.sweep(running.id)
    assert stopped is not None and stopped.state == "stopped" and stopped.ended_s is not None
    assert stopped.summary == {"screened": 3, "reason": "interrupted"}
    assert store.sweep(done.id) == done


def test_leftovers_are_removed_and_what_links_lead_to_is_not(
    files: JournaledFiles, store: SessionStore, root: Path, tmp_path: Path
) -> None:
    place = store.place
    (place.staging / "a1").mkdir()
    (place.staging / "a1" / "out").symlink_to(tmp_path)
    (place.staging / "a1.json").write_text("{}")
    (place.scratch / "reserved").write_bytes(b"\0" * 100)
    (place.linked / "ab.tmp").write_text("half a copy")
    (place.linked / "whole").write_text("a copy")
    (root / ".kerneldeck-0123.tmp").write_text("half a kernel")
    said = recover(store, files)
    assert len([sentence for sentence in said if sentence.startswith("removed ")]) == 4
    assert list(place.staging.iterdir()) == list(place.scratch.iterdir()) == []
    assert [path.name for path in place.linked.iterdir()] == ["whole"]
    assert not (root / ".kerneldeck-0123.tmp").exists()
    assert (root / "kernel.py").exists()


RECOVER_WITHOUT_PRIVILEGE = """
import json, os, sys
from pathlib import Path
import sessions.recovery
from sessions.journal import JournaledFiles
from sessions.state_dir import locate
from sessions.store import open_write
root = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
with open_write(locate(root)) as store:
    closed = store.place.staging / "a1" / "closed" / "inner"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    for folder in (closed, closed.parent, closed.parent.parent):
        folder.chmod(0)
    print(json.dumps(sessions.recovery.recover(store, JournaledFiles(root, [], store))))
    print(list(store.place.staging.iterdir()))
"""


def test_a_staging_folder_closed_by_its_benchmark_is_removed(
    open_folder: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    root = open_folder / "workspace"
    root.mkdir()
    root.chmod(0o777)
    said, left = run_python(RECOVER_WITHOUT_PRIVILEGE, root).stdout.splitlines()
    assert json.loads(said)[0].startswith("removed ")
    assert left == "[]"
