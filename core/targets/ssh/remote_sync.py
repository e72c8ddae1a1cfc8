"""The client's side of the delta sync: what a tree holds, and sending only what the agent lacks.

A warm trial needs one round trip: its few small changed files travel inside the run request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from core.errors import TargetFault
from core.targets.ssh.link import AgentLink
from core.targets.ssh.wire import MOST_BODY_BYTES
from core.words import JsonObject

INLINE_BYTES = 64_000
REBASE_FROM_ROWS = 100
ANSWERS_WITHIN_S = 60.0
STALLS_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a tree: its name there, the SHA-256 (hex) of its content, bytes and permission bits.

    Names are text with forward slashes; bytes that are no UTF-8 stand as surrogate escapes.
    """

    path: str
    sha256: str
    size: int
    mode: int = 0o644

    @property
    def row(self) -> list[str | int]:
        return [self.path, self.sha256, self.size, self.mode]


@dataclass(frozen=True, slots=True)
class RemoteTree:
    """What one folder of a trial holds. `protected` and `copied` files are never links to kept contents."""

    files: tuple[RemoteFile, ...]
    folders: tuple[str, ...] = ()  # empty ones; the others follow from the files
    protected: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()


class Contents(Protocol):
    """Contents by their SHA-256."""

    def pieces(self, sha256: str, piece_bytes: int) -> Iterator[bytes]:
        """The content in order. OSError or a KerneldeckError when it cannot be read."""
        ...


class RemoteSync:
    """What one agent has of ours: a base list of files, and contents it told us it holds."""

    def __init__(self, link: AgentLink, contents: Contents, *, deflate: bool = True) -> None:
        self.link = link
        self.contents = contents
        self.deflate = deflate
        self._base = ""
        self._base_rows: dict[str, RemoteFile] = {}
        self._base_folders: frozenset[str] = frozenset()
        self._there: set[str] = set()

    async def offer(self, tree: RemoteTree) -> None:
        """Make `tree` the base: the agent keeps its list, and is sent the contents that it lacks."""
        rows = {file.path: file for file in tree.files}
        fields = {"files": [file.row for file in tree.files], "folders": list(tree.folders)}
        answer = await self.link.request("manifest", fields, ANSWERS_WITHIN_S)
        missing = _hashes(answer.get("missing"))
        await self.put(missing, {file.sha256: file.size for file in tree.files})
        self._base, self._base_rows = str(answer.get("manifest")), rows
        self._base_folders = frozenset(tree.folders)
        self._there.update(file.sha256 for file in tree.files)

    async def delta(
        self, trees: tuple[RemoteTree, ...]
    ) -> tuple[list[JsonObject], list[list[str | int]], bytes]:
        """The trees as changes of the base, the contents that travel along, and their bytes."""
        changed = [file for tree in trees for file in self._changed(tree)]
        if not self._base or len(changed) > REBASE_FROM_ROWS * len(trees):
            await self.offer(trees[0])
            changed = [file for tree in trees for file in self._changed(tree)]
        inline, body = self._inline(changed)
        return [self._spec(tree) for tree in trees], inline, body

    def _changed(self, tree: RemoteTree) -> list[RemoteFile]:
        return [file for file in tree.files if self._base_rows.get(file.path) != file]

    def _spec(self, tree: RemoteTree) -> JsonObject:
        names = {file.path for file in tree.files}
        return {
            "base": self._base,
            "set": [file.row for file in self._changed(tree)],
            "drop": [path for path in self._base_rows if path not in names],
            "folders": sorted(set(tree.folders) - self._base_folders),
            "protected": list(tree.protected),
            "copied": list(tree.copied),
        }

    def _inline(self, changed: list[RemoteFile]) -> tuple[list[list[str | int]], bytes]:
        rows: dict[str, bytes] = {}
        room = MOST_BODY_BYTES
        for file in changed:
            small = file.size <= min(INLINE_BYTES, room)
            if small and file.sha256 not in self._there and file.sha256 not in rows:
                rows[file.sha256] = b"".join(self.contents.pieces(file.sha256, INLINE_BYTES + 1))[:room]
                room -= len(rows[file.sha256])
        return [[sha256, len(content)] for sha256, content in rows.items()], b"".join(rows.values())

    def has(self, trees: tuple[RemoteTree, ...]) -> None:
        """The agent ran these: it holds all their contents."""
        self._there.update(file.sha256 for tree in trees for file in tree.files)

    def lacks(self, told: object) -> None:
        """These were dropped there: a trial wrote into them."""
        self._there.difference_update(_hashes(told))

    async def supply(self, need: JsonObject, trees: tuple[RemoteTree, ...]) -> None:
        """Send what the agent says it lacks."""
        if need.get("manifests"):
            self._base = ""
        missing = _hashes(need.get("blobs"))
        self._there.difference_update(missing)
        await self.put(missing, {file.sha256: file.size for tree in trees for file in tree.files})

    async def put(self, hashes: list[str], sizes: Mapping[str, int]) -> None:
        """One stream of contents; TargetFault of stage `sync` or `scratch` as soon as the agent says so."""
        if not hashes:
            return
        unknown = next((sha256 for sha256 in hashes if sha256 not in sizes), None)
        if unknown is not None:
            raise TargetFault("sync", "the agent asks for a content that was never offered")
        number, answer = self.link.begin()
        try:
            for rows, body, last in self._packs(hashes, sizes):
                if answer.done():
                    break
                async with asyncio.timeout(STALLS_AFTER_S):
                    await self.link.send(number, "put", {"blobs": rows, "end": last}, body, self.deflate)
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                await answer
        except TimeoutError:
            raise TargetFault(
                "lost", "the files could not be sent: the link stalls", "is the link up?"
            ) from None
        except OSError as error:
            raise TargetFault("sync", f"a file of the workspace cannot be read: {error.strerror}") from None
        finally:
            self.link.forget(number)
        self._there.update(hashes)

    def _packs(
        self, hashes: list[str], sizes: Mapping[str, int]
    ) -> Iterator[tuple[list[list[str | int]], bytes, bool]]:
        """Rows [sha256, offset, length, size] and their bytes, packed to at most a frame's body."""
        rows: list[list[str | int]] = []
        pieces: list[bytes] = []
        filled = 0
        for sha256, offset, piece in self._pieces(hashes):
            if filled + len(piece) > MOST_BODY_BYTES:
                yield rows, b"".join(pieces), False
                rows, pieces, filled = [], [], 0
            rows.append([sha256, offset, len(piece), sizes[sha256]])
            pieces.append(piece)
            filled += len(piece)
        yield rows, b"".join(pieces), True

    def _pieces(self, hashes: list[str]) -> Iterator[tuple[str, int, bytes]]:
        for sha256 in hashes:
            offset = 0
            for piece in self.contents.pieces(sha256, MOST_BODY_BYTES):
                yield sha256, offset, piece
                offset += len(piece)
            if offset == 0:
                yield sha256, 0, b""


def _hashes(told: object) -> list[str]:
    return [str(each) for each in told] if isinstance(told, list) else []
