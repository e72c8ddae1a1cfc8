"""A disk that is full or read-only: a sentence, nothing half written, and going on afterwards.

Where this machine lets us, on a small file system of its own (a mount name space); elsewhere with a
limit on the size of files, and without permission to write.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

RunPython = Callable[..., CompletedProcess[str]]

PREPARE = """
import os, resource, subprocess, sys
from pathlib import Path
from core.errors import StorageFault
from core.measure.floor import Floor
from core.records import Candidate, Checkpoint, FileVersion, OperationRecord, SweepRecord, TrialRecord
from core.words import Status
from sessions.blobs import BlobFolder
from sessions.gc import Quotas, collect
from sessions.journal import JournaledFiles
from sessions.lock import hold
from sessions.recovery import recover
from sessions.state_dir import locate
from sessions.store import open_read, open_write

base, mounted = Path(sys.argv[1]), sys.argv[2] == "mounted"
if mounted:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(base)], check=True)
root = base / "workspace"
root.mkdir()
(root / "kernel.py").write_bytes(b"old kernel")
place = locate(root, environ={})
store = open_write(place)
files = JournaledFiles(root, ["kernel.py"], store)
store.put_contract("c", {})
candidate = Candidate({"kernel.py": FileVersion(store.blobs.put(b"old kernel"))})
store.add_candidate(candidate)
trial = TrialRecord(candidate.id, "c", "dev", "run", "local", "cli")
ended = store.begin_trial(trial).ended(Status.OK, score=1.0)
store.end_trial(ended, {"n": 1})
running = store.begin_trial(trial)
"""

FULL = (
    PREPARE
    + """
big = {"noise": os.urandom(2_000_000).hex()}
new = {"kernel.py": FileVersion(store.blobs.put(os.urandom(20_000)))}

def fill():
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return
    with (base / "filler").open("wb", buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                pass

def free():
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return
    (base / "filler").unlink()

def refused(call, *arguments):
    try:
        call(*arguments)
    except StorageFault as fault:
        if mounted:
            assert "is full" in fault.sentence and "kerneldeck gc" in fault.hint, fault
    else:
        raise AssertionError(call)

fill()
refused(store.end_trial, running.ended(Status.OK, score=2.0), big)
refused(store.blobs.put, os.urandom(50_000))
refused(files.write, new, {}, "apply")
assert (root / "kernel.py").read_bytes() == b"old kernel"
for _ in range(200):
    # Small rows may find room in pages that are there already, until none is left.
    try:
        store.add_operation(OperationRecord("run", "cli", {"text": "x" * 2000}, 1.0, 1.0, "done", 0))
    except StorageFault:
        break
else:
    raise AssertionError("the disk never was full")
with open_read(place) as reading:
    assert reading.trial(ended.id) == ended and reading.result(ended.id) == {"n": 1}
    assert reading.trial(running.id).status is None and reading.result(running.id) is None
count = len(store.operations(1000))
store.close()
free()
with hold(place, "kerneldeck run"), open_write(place) as store:
    files = JournaledFiles(root, ["kernel.py"], store)
    assert recover(store, files) == ["1 interrupted trial is cancelled"]
    assert len(store.operations(1000)) == count
    assert store.journal() == [] and (root / "kernel.py").read_bytes() == b"old kernel"
    assert not [path for path in base.rglob("*") if path.name.endswith(".tmp") or "writing" in path.name]
    files.write(new, {}, "apply")
    assert (root / "kernel.py").stat().st_size == 20_000
print("whole")
"""
)

COLLECT_ON_FULL = (
    PREPARE
    + """
store.place.output_of(ended.id).mkdir()
(store.place.output_of(ended.id) / "stdout").write_bytes(b"x" * 200_000)
with (base / "filler").open("wb", buffering=0) as filler:
    for size in (65536, 4096, 1):
        try:
            while True:
                filler.write(b"x" * size)
        except OSError:
            pass
assert collect(store, Quotas(samples_bytes=0)).samples.removed == 1
store.end_trial(running.ended(Status.OK, score=2.0), {"n": 2})
print("whole")
"""
)

READ_ONLY = (
    PREPARE
    + """
store.close()
if mounted:
    subprocess.run(["mount", "-o", "remount,bind,ro", str(base)], check=True)
else:
    for folder in (root, place.folder, *place.folder.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)

def refused(call, *arguments):
    try:
        call(*arguments)
    except StorageFault as fault:
        expected = ["read-only", "cannot be opened"] if mounted else ["no permission", "read-only"]
        assert any(words in fault.sentence for words in expected), fault
        assert "KERNELDECK_STATE_DIR" in fault.hint, fault
    else:
        raise AssertionError(call)

refused(lambda: hold(place, "kerneldeck run").__enter__())
refused(open_write, place)
refused(BlobFolder(place.blobs).put, b"new")
with open_read(place) as reading:
    assert reading.trial(ended.id) == ended
    assert reading.rank("c", "dev")[0].score == 1.0
print("whole")
"""
)


def mounting() -> tuple[str, ...]:
    """The words in front of a command that let it mount its own file systems; none where that is denied."""
    for words in (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount")):
        try:
            if subprocess.run([*words, "true"], capture_output=True).returncode == 0:
                return words
        except OSError:
            break
    return ()


@pytest.mark.parametrize("script", [FULL, COLLECT_ON_FULL], ids=["writes", "collecting"])
def test_a_full_disk_loses_nothing(tmp_path: Path, run_python: RunPython, script: str) -> None:
    before = mounting()
    if not before and script is COLLECT_ON_FULL:
        script = FULL
    done = run_python(script, tmp_path, "mounted" if before else "limited", before=before)
    assert done.stdout == "whole\n"


def test_a_limit_on_files_is_told_like_a_full_disk(tmp_path: Path, run_python: RunPython) -> None:
    assert run_python(FULL, tmp_path, "limited").stdout == "whole\n"


def test_a_read_only_disk_can_still_be_read(open_folder: Path, run_python: RunPython) -> None:
    before = mounting()
    done = run_python(READ_ONLY, open_folder, "mounted" if before else "limited", before=before)
    assert done.stdout == "whole\n"


def test_a_folder_without_permission_to_write_can_still_be_read(
    open_folder: Path, run_python: RunPython
) -> None:
    assert run_python(READ_ONLY, open_folder, "limited").stdout == "whole\n"
