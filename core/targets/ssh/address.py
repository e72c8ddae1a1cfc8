"""`ssh:HOST`: which machine is meant, as the user writes it."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import socket
import unicodedata
from contextlib import suppress
from dataclasses import dataclass

from core.errors import ArgumentFault

SCHEME = "ssh:"
_HOST = re.compile(r"[\w:][\w.:%+-]*")
_USER = re.compile(r"[^\s:/@-][^\s:/]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A host or a name of the ssh configuration; no user or port 0 leave these to the configuration."""

    host: str
    user: str = ""
    port: int = 0

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and self.port else self.host
        return SCHEME + (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")

    @property
    def label(self) -> str:
        """The address as records may keep it: without its user, and in digits only as a name made of them."""
        return str(Address(self.name, "", self.port))

    @property
    def name(self) -> str:
        """How the user calls it; the only name that sentences show. The same digits give the same name."""
        if not self.is_in_digits:
            return self.host
        return f"host-{hashlib.sha256(self.host.lower().encode()).hexdigest()[:6]}"

    @property
    def by_hand(self) -> str:
        """The word for an ssh command that a sentence proposes."""
        return "HOST" if self.is_in_digits else self.host

    @property
    def is_in_digits(self) -> bool:
        """Whether it says where the machine stands in the network, and is no name for it."""
        for reads in (ipaddress.ip_address, socket.inet_aton):  # the second takes short forms too
            with suppress(ValueError, OSError):
                reads(self.host.partition("%")[0])
                return True
        return False


def parse_address(text: str) -> Address:
    """`ssh:HOST`, `ssh:USER@HOST:PORT`, `ssh:[IPV6]:PORT`; ArgumentFault with what is wrong."""
    if not text.startswith(SCHEME):
        raise ArgumentFault(f"{text!r} is no SSH target", "write it as ssh:HOST or ssh:USER@HOST:PORT")
    try:
        return split_destination(text.removeprefix(SCHEME))
    except ValueError as error:
        raise ArgumentFault(f"{text}: {error}", "write it as ssh:HOST or ssh:USER@HOST:PORT") from None


def split_destination(text: str) -> Address:
    """`[ssh://][USER@]HOST[:PORT]`, as ProxyJump writes it too; ValueError with what is wrong."""
    rest = text.strip().removeprefix("ssh://").removeprefix("//").rstrip("/")
    user, at, rest = rest.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is no user name" if user else "the user name before @ is empty")
    host, port = _host_and_port(rest)
    host = unicodedata.normalize("NFKC", host)  # as whoever looks the name up reads it: wide digits, too
    if not host:
        raise ValueError("no host is named")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is no host name")
    return Address(host, user, port)


def _host_and_port(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise ValueError(f"{text!r} has no matching bracket")
        return host, check_port(port[1:]) if port else 0
    if text.count(":") > 1:  # an IPv6 address on its own
        return text, 0
    host, colon, port = text.partition(":")
    return host, check_port(port) if colon else 0


def check_port(text: str) -> int:
    """`text` as a port; ValueError with what is wrong."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise ValueError(f"{text!r} is no port (1 to 65535)")
    return int(text)
