"""A workspace's layouts on the remote side: the same files, and the same words for what became of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.records import FileVersion
from core.targets import staging as local_staging
from core.targets.job import Layout
from core.targets.ssh.remote_layout import Layouts, Seal, WorkspaceContents, written_into
from core.targets.ssh.remote_sync import RemoteSync
from core.targets.ssh.remote_trials import RemoteTrial, RemoteTrials
from core.targets.staging import Materials, Staging
from tests.remote.agents import NONCE, PYTHON_FOLDER, agent, run

ACTS = {
    "nothing": "pass",
    "edits": "open('d/v.py', 'w').write('one\\ntolerance = 9\\n')",
    "grows": "open('d/v.py', 'ab').write(b'x' * 3_000_000)",
    "removes": "os.unlink('d/v.py')",
    "links": "os.unlink('d/v.py'); os.symlink('/etc/passwd', 'd/v.py')",
    "pipes": "os.unlink('d/v.py'); os.mkfifo('d/v.py')",
    "moves": "os.rename('d', 'e'); os.symlink('e', 'd')",
    "blocks": "shutil.rmtree('d'); open('d', 'w')",
    "clears": "shutil.rmtree(os.getcwd())",
    "bloats": "os.truncate('d/v.py', 40 << 20)",
}


class Kept:
    """Blobs in memory."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256] = content
        return sha256

    def get(self, sha256: str) -> bytes:
        return self.contents[sha256]


def first_change(before: bytes, after: bytes) -> str:
    """The local target's words."""
    return local_staging.first_change(before, after)


class Workspace:
    """Two protected files, a mutable one, one small and one large other."""

    def __init__(self, root: Path) -> None:
        self.kept = Kept()
        root.mkdir()
        (root / "lib.py").write_text("lib")
        (root / "large").write_bytes(b"L" * (2 << 20))
        (root / "k.py").write_text("what the user is just typing")
        self.protected = {"d/v.py": self.version("one\ntwo\n"), "w.py": self.version("w")}
        self.materials = Materials(root, self.protected, ("lib.py", "large"))

    def version(self, text: str, executable: bool = False) -> FileVersion:
        return FileVersion(self.kept.put(text.encode()), executable)


@pytest.mark.parametrize("act", ACTS)
def test_what_became_of_a_protected_file_is_told_in_the_local_targets_words(tmp_path: Path, act: str) -> None:
    workspace = Workspace(tmp_path / "ws")
    program = f"import os, shutil\n{ACTS[act]}\n"
    mutable = {"k.py": workspace.version(program, executable=True)}
    staging = Staging(tmp_path / "stage", tmp_path / "linked", workspace.materials, workspace.kept)
    stage = staging.lay_out((Layout(mutable),))
    subprocess.run([sys.executable, "k.py"], cwd=stage.folders[0], check=True)
    told: list[str] = []

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            contents = WorkspaceContents(workspace.kept)
            tree = Layouts(workspace.materials, contents).trees([mutable])[0]
            trials = RemoteTrials(there.link, RemoteSync(there.link, contents))
            trial = RemoteTrial(("python3", "k.py"), 30.0, (tree,), NONCE, path_first=PYTHON_FOLDER)
            collected = await trials.run(trial, tmp_path / "out")
            assert collected.ended.clean, (tmp_path / "out" / "stderr").read_text()
            told.append(Seal(workspace.protected, workspace.kept, first_change).tampering(collected))

    run(main())
    assert told == [staging.tampering(stage)]
    assert bool(told[0]) == (act != "nothing")


def test_a_layout_holds_the_files_of_a_local_staging_folder(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    mutable = {"k.py": workspace.version("candidate", executable=True)}
    staging = Staging(tmp_path / "stage", tmp_path / "linked", workspace.materials, workspace.kept)
    (local,) = staging.lay_out((Layout(mutable),)).folders
    expected = sorted(
        f"{os.access(path, os.X_OK):d} {path.relative_to(local)} {path.stat().st_size}"
        for path in local.rglob("*")
        if path.is_file()
    )

    async def main() -> None:
        async with agent(tmp_path / "s") as there:
            contents = WorkspaceContents(workspace.kept)
            tree = Layouts(workspace.materials, contents).trees([mutable])[0]
            trials = RemoteTrials(there.link, RemoteSync(there.link, contents))
            line = 'x=0; [ -x "$f" ] && x=1; echo "$x ${f#./} $(wc -c < "$f")"'
            script = f"find . -type f | while read f; do {line}; done"
            trial = RemoteTrial(("sh", "-c", script), 30.0, (tree,), NONCE)
            collected = await trials.run(trial, tmp_path / "o")
            assert sorted((tmp_path / "o" / "stdout").read_text().splitlines()) == expected
            assert written_into(collected.outcome) == ()

    run(main())
