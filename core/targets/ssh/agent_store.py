"""Contents by SHA-256, and the manifests that name them, in the remote scratch folder.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""
# Started once a connection, on Python 3.8 too: no pathlib.
# ruff: noqa: PTH101, PTH103, PTH104, PTH108, PTH116, PTH120, PTH123

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any

    from core.targets.ssh.agent_scratch import FULL, fault_of
    from core.targets.ssh.wire import Fault, Json, is_sha256, safe_name

    Identity = tuple[int, int, int]
    Rows = list[list[Any]]
else:
    from agent_scratch import FULL, fault_of
    from wire import Fault, is_sha256, safe_name

CHUNK_BYTES = 1 << 20
LOOKED_AT_AGAIN_AFTER_S = 300.0
KEPT_NS = 10**18  # every content was last changed then, or by somebody else than us
CLEANED = "cleaned"


class Store:
    """The blobs, read-only files under their hash; a content under its final name is whole and right.

    `referred` are the hashes that our client named last. A content that is used is marked so every few
    minutes, by the time of its last change of state: its own time and mode tell whether a trial whose end
    nobody saw wrote into it.
    """

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.referred: set[str] = set()
        self.put_bytes = 0
        self.make_room: Callable[[int], int] = lambda _: 0
        self._believed_until = 0.0
        self._cleaned_ns = 0

    def path(self, sha256: str) -> str:
        return f"blobs/{sha256[:2]}/{sha256}"

    def missing(self, hashes: Iterable[str]) -> list[str]:
        self._forget_what_may_be_gone()
        lacking = []
        for sha256 in dict.fromkeys(hashes):
            if sha256 in self.present:
                continue
            if _used(self.path(sha256)):
                self.present.add(sha256)
            else:
                self.drop(sha256)
                lacking.append(sha256)
        return lacking

    def _forget_what_may_be_gone(self) -> None:
        now = time.monotonic()
        cleaned_ns = _cleaned_ns()
        if now >= self._believed_until or cleaned_ns != self._cleaned_ns:
            self.present.clear()
            self._believed_until, self._cleaned_ns = now + LOOKED_AT_AGAIN_AFTER_S, cleaned_ns

    def put(self, sha256: str, content: bytes) -> None:
        """Keep a whole content; Fault when it is not what its hash says."""
        if self.missing([sha256]):
            incoming = Incoming(self, sha256, len(content))
            incoming.write(content)
            incoming.finish()

    def drop(self, sha256: str) -> None:
        """With the one for executables, which was made of it; other agents look again."""
        self.present.discard(sha256)
        for path in (self.path(sha256), self.path(sha256) + "x"):
            if os.path.lexists(path):
                with suppress(FileNotFoundError):
                    os.unlink(path)
                mark_cleaned()


def seal(descriptor: int, mode: int) -> None:
    """Nobody writes into the file from now on; `identity` tells of who did all the same."""
    os.fchmod(descriptor, mode)
    os.utime(descriptor, ns=(KEPT_NS, KEPT_NS))


def sealed(size: int, executable: bool) -> Identity:
    """The identity of a content that is as it was kept."""
    return size, KEPT_NS, stat.S_IFREG | (0o555 if executable else 0o444)


def identity(path: str) -> Identity:
    """Bytes, nanoseconds of the last change, and mode; -1 for each when nothing is there."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return (-1, -1, -1)
    return status.st_size, status.st_mtime_ns, status.st_mode


def _used(path: str) -> bool:
    """Whether the content is there as it was kept; from now on it has been used just now."""
    try:
        status = os.stat(path)
        if (status.st_size, status.st_mtime_ns, status.st_mode) != sealed(status.st_size, False):
            return False
        if time.time() - status.st_ctime > LOOKED_AT_AGAIN_AFTER_S:
            os.chmod(path, stat.S_IMODE(status.st_mode))
    except OSError:
        return False
    return True


def mark_cleaned() -> None:
    """Contents were removed: every agent looks again before it relies on one."""
    now_ns = time.time_ns()
    with suppress(OSError):
        os.close(os.open(CLEANED, os.O_WRONLY | os.O_CREAT, 0o600))
        os.utime(CLEANED, ns=(now_ns, now_ns))


def _cleaned_ns() -> int:
    try:
        return os.stat(CLEANED).st_mtime_ns
    except OSError:
        return 0


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
        self.made_room = False
        self.file: IO[bytes] | None = None
        store.referred.add(sha256)
        while self.file is None:
            try:
                self.file = open(self.beside, "xb", buffering=0)  # noqa: SIM115
            except OSError as error:
                self._make_room_or_refuse(error)

    def write(self, piece: bytes) -> None:
        assert self.file is not None
        left = memoryview(piece)
        while left:
            try:
                left = left[self.file.write(left) or 0 :]  # a full disk may take a part
            except OSError as error:
                self._make_room_or_refuse(error)
        self.hash.update(piece)
        self.taken += len(piece)

    def _make_room_or_refuse(self, error: OSError) -> None:
        """Once for a content a full disk is cleaned and tried again."""
        if error.errno in FULL and not self.made_room and self.store.make_room(self.size - self.taken):
            self.made_room = True
            return
        self.abandon()
        raise fault_of(error, "the scratch folder did not take a file") from None

    def finish(self) -> None:
        assert self.file is not None
        if self.taken != self.size or self.hash.hexdigest() != self.sha256:
            self.abandon()
            raise Fault(
                "sync", "a file arrived with another content than its hash says: it changed while sent"
            )
        place = self.store.path(self.sha256)
        try:
            seal(self.file.fileno(), 0o444)
            self.file.close()
            os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
            os.rename(self.beside, place)
        except OSError as error:
            self.abandon()
            raise fault_of(error, "the scratch folder did not take a file") from None
        self.store.present.add(self.sha256)
        self.store.put_bytes += self.size

    def abandon(self) -> None:
        if self.file is not None:
            with suppress(OSError):
                self.file.close()
            self.file = None
        with suppress(OSError):
            os.unlink(self.beside)


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
