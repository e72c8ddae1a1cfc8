"""A workspace's layouts as remote trees, and what a trial there changed in the words of the local target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.records import FileSet
from core.store import Blobs
from core.targets.ssh.local_tree import FileHashes, tree_of
from core.targets.ssh.remote_sync import RemoteFile, RemoteTree
from core.targets.ssh.remote_trials import Collected
from core.targets.staging import Materials
from core.words import JsonObject

MANY_FILES = 100
FirstChange = Callable[[bytes, bytes], str]  # the first line that differs, as words
_TOLD = {
    "no_folder": "the whole folder was removed, protected files and all",
    "removed": "{name} was removed",
    "replaced": "{name} was replaced: {word}",
    "folder_link": "{name} was replaced: its folder is a link",
    "unreadable": "{name} can no longer be read: {word}",
}


class WorkspaceContents:
    """Contents of the workspace's other files, where they lie, and of kept versions, from the blobs."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.paths: dict[str, str] = {}

    def pieces(self, sha256: str, piece_bytes: int) -> Iterator[bytes]:
        path = self.paths.get(sha256)
        if path is not None:
            with Path(path).open("rb") as file:
                while piece := file.read(piece_bytes):
                    yield piece
            return
        content = self.blobs.get(sha256)
        for at in range(0, len(content), piece_bytes):
            yield content[at : at + piece_bytes]


class Layouts:
    """Lays candidates out as remote trees: other files as they are now, sealed and mutable ones as kept."""

    def __init__(self, materials: Materials, contents: WorkspaceContents) -> None:
        self.materials = materials
        self.contents = contents
        self._hashes = FileHashes()
        self._bytes: dict[str, int] = {}

    @property
    def many(self) -> bool:
        """Whether reading them all takes longer than starting a trial."""
        return len(self.materials.others) >= MANY_FILES

    def trees(self, mutables: Iterable[FileSet], believed: dict[str, str] | None = None) -> list[RemoteTree]:
        """One for each candidate; `believed` as in `tree_of`.

        OSError or StorageFault when a file cannot be read, TargetFault `sync` when it cannot be sent.
        """
        others, found = tree_of(self.materials.root, self._hashes, self.materials.others, believed)
        self.contents.paths.update(found.paths)
        return [self._tree(others, mutable) for mutable in mutables]

    def differing(self, believed: Mapping[str, str]) -> list[str]:
        """Files among those that are, once read, not what their status was believed to say."""
        return self._hashes.differing(believed)

    def _tree(self, others: RemoteTree, mutable: FileSet) -> RemoteTree:
        files = {file.path: file for file in others.files}
        for kept in (self.materials.protected, mutable):
            for name, version in kept.items():
                mode = 0o755 if version.executable else 0o644
                files[name] = RemoteFile(name, version.sha256, self._size(version.sha256), mode)
        return RemoteTree(
            tuple(files.values()), protected=tuple(self.materials.protected), copied=tuple(mutable)
        )

    def _size(self, sha256: str) -> int:
        if sha256 not in self._bytes:
            self._bytes[sha256] = len(self.contents.blobs.get(sha256))
        return self._bytes[sha256]


@dataclass(frozen=True, slots=True)
class Seal:
    """The protected files as they were sealed; `first_change` finds words for a difference."""

    protected: FileSet
    blobs: Blobs
    first_change: FirstChange

    def tampering(self, collected: Collected) -> str:
        """What the trial changed among them, as a sentence with the first difference; "" for nothing.

        A file that the agent's answer leaves out counts as removed.
        """
        told = collected.outcome.get("protected")
        for index, rows in enumerate(told if isinstance(told, list) else [[]]):
            findings = {str(row[0]): (str(row[1]), str(row[2])) for row in rows if len(row) == 3}
            for name in self.protected:
                sentence = self._difference(collected.folder / f"changed.{index}", name, findings.get(name))
                if sentence:
                    return sentence
        return ""

    def _difference(self, changed: Path, name: str, finding: tuple[str, str] | None) -> str:
        kind, word = finding or ("removed", "")
        if kind in _TOLD:
            return _TOLD[kind].format(name=name, word=word)
        if word == self.protected[name].sha256:
            return ""
        now = changed.read_bytes() if changed.is_file() else b""
        if hashlib.sha256(now).hexdigest() != word:
            return f"{name} was changed: its bytes differ"
        return f"{name} was changed: {self.first_change(self.blobs.get(self.protected[name].sha256), now)}"


def written_into(outcome: JsonObject) -> tuple[str, ...]:
    """Names of large files that the trial wrote into; what is kept of them was dropped there."""
    names = outcome.get("written_into")
    return tuple(str(name) for name in names) if isinstance(names, list) else ()
