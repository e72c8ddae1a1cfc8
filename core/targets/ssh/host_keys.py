"""Host keys: what the user trusts, and what a key that is not trusted means."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from core.targets.ssh.faults import SshFault
from core.targets.ssh.user_config import Hop


@dataclass(frozen=True, slots=True)
class HostKeyQuestion:
    """An unknown host key that a person is asked about, with the hop as it was written."""

    target: str
    hop: str
    algorithm: str
    fingerprint: str
    kept_in: Path | None  # where a yes is written; None when it is only good for this connection


AskHostKey = Callable[[HostKeyQuestion], Awaitable[bool]]


class KnownHosts:
    """The host keys trusted for one hop: its known_hosts files, and what was accepted meanwhile."""

    def __init__(self, hop: Hop, target: str, may_ask: bool) -> None:
        self._hop = hop
        self._known = asyncssh.import_known_hosts("")
        present = [path for path in hop.known_hosts if path.exists()]
        if hop.names_known_hosts and not may_ask and hop.known_hosts[0] not in present:
            raise SshFault(
                "config",
                f"{target}: the file of known hosts that the configuration names for {hop.name} is not there",
                f"connect once by hand to make it: ssh {hop.asked.by_hand}",
                details=str(hop.known_hosts[0]),
            )
        for path in present:
            if path.is_file():  # /dev/null holds none, and a pipe would be waited for
                self._read(path, target)

    def _read(self, path: Path, target: str) -> None:
        try:
            lines = path.read_bytes().decode("utf-8", "replace").splitlines()
        except OSError as error:
            raise SshFault(
                "config", f"{target}: a file of known hosts cannot be read: {error.strerror}",
                details=str(path),
            ) from None  # fmt: skip
        for line in lines:
            self._trust(line)

    def _trust(self, line: str) -> None:
        try:
            self._known.load(line)
        except ValueError:
            return  # as OpenSSH does: a line that says nothing trusts nothing

    @property
    def name(self) -> str:
        """The hop's name in a known_hosts file."""
        if self._hop.key_alias:
            return self._hop.key_alias
        host = self._hop.host.lower()
        return host if self._hop.port == 22 else f"[{host}]:{self._hop.port}"

    @property
    def writable(self) -> Path | None:
        """The file that a newly accepted key is added to."""
        if not self._hop.known_hosts:
            return None
        path = self._hop.known_hosts[0]
        return path if path.is_file() or not path.exists() else None

    def lookup(
        self, host: str, _address: str, port: int | None
    ) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
        """Trusted, authority and revoked keys, by name alone: an address proves nothing about a name."""
        found = self._known.match(host.lower(), "", port)
        revoked = self._known.match(self.name, "", None)[2]  # `match` forgets these when it falls back to 22
        return list(found[0]), list(found[1]), [*found[2], *revoked]

    @property
    def has_anything(self) -> bool:
        """Whether a key or an authority is on record for this name, here or on the usual port."""
        port = None if self._hop.port == 22 else self._hop.port
        keys, authorities, _ = self.lookup(self._hop.key_alias or self._hop.host, "", port)
        return bool(keys or authorities)

    def recorded(self) -> list[asyncssh.SSHKey]:
        """The keys on record for exactly this name and port."""
        return list(self._known.match(self.name, "", None)[0])

    def accept(self, key: asyncssh.SSHKey) -> str:
        """Trust `key` from now on; a note when it could not be written down."""
        line = f"{self.name} {key.export_public_key().decode().strip()}"
        self._trust(line)
        path = self.writable
        if path is None:
            return "the accepted host key is not kept: the configuration names no file for it"
        try:
            _append_line(path, line)
        except OSError as error:
            return f"the accepted host key could not be written down: {error.strerror}"
        return ""


def _append_line(path: Path, line: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(fd, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
        gap = b"\n" if size and file.read(1) != b"\n" else b""
        file.write(gap + line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def refusal(who: str, hop: str, offered: asyncssh.SSHKey | None, known: KnownHosts) -> SshFault:
    """The fault of a host key that is not trusted: changed when another is on record, else unknown."""
    keys = sorted(known.recorded(), key=lambda key: offered is None or key.algorithm != offered.algorithm)
    if offered is None:
        return SshFault(
            "hostkey", f"{who} showed a host key that was revoked or whose certificate is not trusted"
        )
    shown = offered.get_fingerprint()
    if keys:
        return SshFault(
            "hostkey",
            f"{who} shows another host key than before: {shown} now, "
            f"{keys[0].get_fingerprint()} on record. Somebody may be listening in",
            "ask whoever runs the machine; remove the old key (ssh-keygen -R) only if the change was meant",
            details=f"ssh-keygen -R '{known.name}'",
        )
    return SshFault(
        "hostkey",
        f"{who} shows a host key that is not known here: {shown}",
        "compare it with whoever runs the machine, then accept it on a terminal (without --json, which "
        f"never asks), or with: ssh {hop}",
    )
