"""What asyncssh and the system raise on the way in, told as faults with their stage."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED

from core.targets.ssh.faults import SshFault
from core.targets.ssh.user_config import Hop, Route

_TOO_MANY = "Too many authentication failures"
_NO_NAME = ("name or service not known", "name resolution", "nodename nor servname", "no address associated",
            "cannot resolve", "could not resolve")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Leg:
    """One hop of a route while it is being taken."""

    route: Route
    number: int  # from 0

    @property
    def hop(self) -> Hop:
        return self.route.hops[self.number]

    @property
    def target(self) -> str:
        return self.route.address.name

    @property
    def is_jump(self) -> bool:
        return self.number < len(self.route.hops) - 1

    @property
    def who(self) -> str:
        """The hop as the subject of a sentence, always with the target's name."""
        if self.is_jump:
            return f"{self.target}: its jump host {self.hop.name}"
        if self.number:
            return f"{self.target} (behind {self.route.hops[self.number - 1].name})"
        return self.target

    @property
    def details(self) -> str:
        return f"{self.hop.user}@{self.hop.host} port {self.hop.port}"


def unresolved(leg: Leg, told: str) -> SshFault:
    by = f" by {leg.route.hops[leg.number - 1].name}" if leg.number else ""
    return SshFault(
        "dns", f"{leg.who}: its host name cannot be resolved{by}", details=f"{leg.details}: {told}"
    )


def refused(leg: Leg, told: str) -> SshFault:
    return SshFault(
        "connect",
        f"{leg.who} refused the connection",
        "check that its ssh server runs and the port is right; after a reboot wait a moment",
        details=f"{leg.details}: {told}",
        passing=True,
    )


def unanswered(leg: Leg, within_s: float) -> SshFault:
    return SshFault(
        "connect", f"{leg.who} did not answer a connection within {within_s:g} s", details=leg.details
    )


def silent(leg: Leg, within_s: float) -> SshFault:
    return SshFault(
        "connect",
        f"{leg.who} accepted the connection but said nothing within {within_s:g} s",
        "it may not be an ssh server, or it is overloaded",
        details=leg.details,
    )


def stuck(leg: Leg, within_s: float) -> SshFault:
    return SshFault(
        "connect",
        f"{leg.who} began to talk but did not come to the login within {within_s:g} s",
        "the server or the network in between may be overloaded",
        details=leg.details,
    )


def slow_login(leg: Leg, within_s: float) -> SshFault:
    return SshFault(
        "auth",
        f"{leg.who} did not finish the login within {within_s:g} s",
        "a key that wants a touch or an agent that asks may be waiting; else the server is stuck",
        details=leg.details,
    )


def unreachable(leg: Leg, error: OSError) -> SshFault:
    """A fault for whatever the system says of a connection that did not come about."""
    told = error.strerror or str(error)
    if isinstance(error, socket.gaierror):
        return unresolved(leg, told)
    if isinstance(error, ConnectionRefusedError):
        return refused(leg, told)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return dropped(leg, told)
    return SshFault("connect", f"{leg.who} cannot be reached: {told}", details=leg.details)


def dropped(leg: Leg, told: str) -> SshFault:
    return SshFault(
        "connect",
        f"{leg.who} closed the connection before a login",
        "it is no ssh server, or it is refusing new logins just now (MaxStartups)",
        details=f"{leg.details}: {told}",
        passing=True,
    )


def nonsense(leg: Leg, error: Exception) -> SshFault:
    return SshFault(
        "connect",
        f"{leg.who} does not speak as an ssh server should",
        "check the port; something else may listen there",
        details=f"{leg.details}: {type(error).__name__}: {error}",
    )


def dropped_while_logging_in(leg: Leg, told: str) -> SshFault:
    """Not `passing`: a second login nobody asked for could lock an account."""
    return SshFault(
        "connect",
        f"{leg.who} ended the connection during the login",
        "the account may be closed to logins, or the link broke; see: ssh HOST true",
        details=f"{leg.details}: {told}",
    )


def unforwarded(leg: Leg, error: asyncssh.ChannelOpenError) -> SshFault:
    """The hop before did not open the way to this one."""
    told = error.reason.lower()
    if any(words in told for words in _NO_NAME):
        return unresolved(leg, error.reason)
    if "refused" in told:
        return refused(leg, error.reason)
    before = leg.route.hops[leg.number - 1].name
    if error.code == OPEN_ADMINISTRATIVELY_PROHIBITED:
        return SshFault(
            "connect",
            f"{leg.target}: its jump host {before} does not pass connections on",
            "its server forbids it (AllowTcpForwarding); use another jump host",
            details=f"{leg.details}: {error.reason}",
        )
    return SshFault(
        "connect", f"{leg.who} could not be reached by {before}", details=f"{leg.details}: {error.reason}"
    )


def disconnected(leg: Leg, error: asyncssh.DisconnectError | ConnectionError, logging_in: bool) -> SshFault:
    """The connection ended: too many keys, no common language, or nobody knows why."""
    told = error.reason if isinstance(error, asyncssh.DisconnectError) else error.strerror or str(error)
    details = f"{leg.details}: {told}"
    if _TOO_MANY.lower() in told.lower():
        return SshFault(
            "auth",
            f"{leg.who} gave up: too many keys were offered",
            "set IdentitiesOnly yes and the right IdentityFile for it in ~/.ssh/config",
            details=details,
        )
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return SshFault(
            "connect",
            f"{leg.who} shares no algorithm with this client",
            "update its ssh server, or remove algorithm lists for it from ~/.ssh/config",
            details=details,
        )
    return dropped_while_logging_in(leg, told) if logging_in else dropped(leg, told)


def unusable_options(leg: Leg, error: Exception) -> SshFault:
    """The configuration asks for something that cannot be had: a file, an algorithm, a program."""
    what = type(error).__name__ if isinstance(error, OSError) else "a value is not known"
    if isinstance(error, FileNotFoundError):
        what = "a file or program that it names is not there"
    return SshFault(
        "config",
        f"{leg.who}: its ssh configuration cannot be used: {what}",
        details=f"{leg.details}: {error}",
    )
