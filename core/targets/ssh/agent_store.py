"""Contents by SHA-256, and the manifests that name them, in the remote scratch folder.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH103, PTH104, PTH108, PTH113, PTH120, PTH123

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO, Any

    from core.targets.ssh.agent_scratch import fault_of
    from core.targets.ssh.wire import Fault, Json, is_sha256, safe_name

    Rows = list[list[Any]]
else:
    from agent_scratch import fault_of
    from wire import Fault, is_sha256, safe_name

CHUNK_BYTES = 1 << 20


class Store:
    """The blobs, read-only files under their hash; a content under its final name is whole and right."""

    def __init__(self) -> None:
        self.present: set[str] = set()

    def path(self, sha256: str) -> str:
        return f"blobs/{sha256[:2]}/{sha256}"

    def missing(self, hashes: Iterable[str]) -> list[str]:
        lacking = []
        for sha256 in dict.fromkeys(hashes):
            if sha256 in self.present:
                continue
            if os.path.isfile(self.path(sha256)):
                self.present.add(sha256)
            else:
                lacking.append(sha256)
        return lacking

    def put(self, sha256: str, content: bytes) -> None:
        """Keep a whole content; Fault when it is not what its hash says."""
        if self.missing([sha256]):
            incoming = Incoming(self, sha256, len(content))
            incoming.write(content)
            incoming.finish()

    def drop(self, sha256: str) -> None:
        self.present.discard(sha256)
        with suppress(FileNotFoundError):
            os.unlink(self.path(sha256))


class Incoming:
    """One content on its way in: hashed while it is written beside, renamed when it is right."""

    def __init__(self, store: Store, sha256: str, size: int) -> None:
        if not is_sha256(sha256):
            raise Fault("sync", "a content is announced under what is no SHA-256")
        self.store = store
        self.sha256 = sha256
        self.size = size
        self.taken = 0
        self.hash = hashlib.sha256()
        self.beside = f"blobs/.tmp-{os.getpid()}-{secrets.token_hex(8)}"
        self.file: IO[bytes] | None = _opened(self.beside)

    def write(self, piece: bytes) -> None:
        assert self.file is not None
        try:
            self.file.write(piece)
        except OSError as error:
            self.abandon()
            raise fault_of(error, "the scratch folder did not take a file") from None
        self.hash.update(piece)
        self.taken += len(piece)

    def finish(self) -> None:
        assert self.file is not None
        if self.taken != self.size or self.hash.hexdigest() != self.sha256:
            self.abandon()
            raise Fault(
                "sync", "a file arrived with another content than its hash says: it changed while sent"
            )
        place = self.store.path(self.sha256)
        try:
            os.fchmod(self.file.fileno(), 0o444)
            self.file.close()
            os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
            os.rename(self.beside, place)
        except OSError as error:
            self.abandon()
            raise fault_of(error, "the scratch folder did not take a file") from None
        self.store.present.add(self.sha256)

    def abandon(self) -> None:
        if self.file is not None:
            with suppress(OSError):
                self.file.close()
            self.file = None
        with suppress(OSError):
            os.unlink(self.beside)


def _opened(path: str) -> IO[bytes]:
    try:
        return open(path, "xb", buffering=0)
    except OSError as error:
        raise fault_of(error, "the scratch folder did not take a file") from None


class Stream:
    """A stream of contents: rows of [sha256, offset, length, size] and their bytes, in order."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.incoming: Incoming | None = None
        self.stored = 0

    def take(self, rows: Rows, body: bytes) -> None:
        at = 0
        for sha256, offset, length, size in rows:
            if offset == 0:
                self.abandon()
                self.incoming = Incoming(self.store, sha256, size)
            incoming = self.incoming
            if incoming is None or incoming.sha256 != sha256 or incoming.taken != offset:
                raise Fault("sync", "a piece of a file arrived out of its place")
            incoming.write(body[at : at + length])
            at += length
            if incoming.taken >= size:
                self.incoming = None
                incoming.finish()
                self.stored += 1

    def abandon(self) -> None:
        if self.incoming is not None:
            self.incoming.abandon()
            self.incoming = None


class Manifests:
    """What trees hold: {"files": [[path, sha256, size, mode], ..], "folders": [path, ..]}, by their hash."""

    def __init__(self) -> None:
        self.known: dict[str, Json] = {}

    def put(self, manifest: Json) -> str:
        check_manifest(manifest)
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
        id_ = hashlib.sha256(text).hexdigest()
        beside = f"manifests/.tmp-{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with open(beside, "xb") as file:
                file.write(text)
            os.rename(beside, f"manifests/{id_}")
        except OSError as error:
            with suppress(OSError):
                os.unlink(beside)
            raise fault_of(error, "the scratch folder did not take a list of files") from None
        self.known = {id_: manifest}
        return id_

    def get(self, id_: str) -> Json | None:
        """The manifest, None when it is not known (any more)."""
        if not is_sha256(id_):
            raise Fault("sync", "a list of files is named by what is no SHA-256")
        if id_ not in self.known:
            try:
                with open(f"manifests/{id_}", "rb") as file:
                    text = file.read()
            except OSError:
                return None
            if hashlib.sha256(text).hexdigest() != id_:
                return None
            self.known = {id_: json.loads(text)}
        return self.known[id_]


def check_manifest(manifest: Json) -> None:
    """Fault when a name could lead out of the tree; names come from somewhere else."""
    for path, sha256, size, mode in manifest["files"]:
        if not is_sha256(sha256) or not isinstance(size, int) or not isinstance(mode, int):
            raise Fault("sync", f"what is said of {shown(path)} is no file")
        check_names([path])
    check_names(manifest["folders"])


def check_names(names: Iterable[object]) -> None:
    for name in names:
        if not safe_name(name):
            raise Fault("sync", f"{shown(name)} is refused: it could lead out of the folder it belongs in")


def shown(name: object) -> str:
    return ascii(name)[:200]
