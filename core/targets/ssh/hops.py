"""Logging in to one hop: its key checked, its user let in, or a fault that says which step failed."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Any

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from core.targets.ssh.dial import dial, proxy_words
from core.targets.ssh.faults import SshFault
from core.targets.ssh.host_keys import AskHostKey, HostKeyQuestion, KnownHosts, refusal
from core.targets.ssh.login_keys import keys_for, refused_login, unreadable_key
from core.targets.ssh.patience import Patience
from core.targets.ssh.telling import (
    Leg,
    disconnected,
    nonsense,
    silent,
    slow_login,
    stuck,
    unanswered,
    unforwarded,
    unreachable,
    unusable_options,
)

logging.getLogger("asyncssh").setLevel(logging.WARNING)  # below that it logs addresses and user names


class _Witness(asyncssh.SSHClient):
    """Sees what happens on a connection, and trusts no key that is not on record."""

    def __init__(self) -> None:
        self.connection: asyncssh.SSHClientConnection | None = None
        self.offered: asyncssh.SSHKey | None = None
        self.wants_words = False
        self.lost = asyncio.Event()
        self.lost_by = ""

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self.connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost_by = str(exc) if exc else ""
        self.lost.set()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        self.offered = key
        return False

    def password_auth_requested(self) -> None:
        self.wants_words = True

    def kbdint_auth_requested(self) -> None:
        self.wants_words = True

    @property
    def trusts(self) -> bool:
        """Whether the host key was checked and found good, so that a login had begun."""
        return bool(self.connection and self.connection.get_server_host_key())

    @property
    def may_lack_the_kind(self) -> bool:
        """Whether the talk ended before a host key came up, perhaps for want of the kinds asked for."""
        return self.greeted and not self.offered and not self.trusts

    @property
    def greeted(self) -> bool:
        """Whether the other side has said that it is an ssh server."""
        return bool(self.connection and self.connection.get_extra_info("server_version"))


@dataclass(slots=True)
class LoggedIn:
    """A login on one hop; `lost` is set when its connection ends, and `lost_by` says how."""

    connection: asyncssh.SSHClientConnection
    witness: _Witness
    notes: list[str] = field(default_factory=list)
    dns_ms: float = 0.0
    connect_ms: float = 0.0
    login_ms: float = 0.0  # host key and login: asyncssh does not say where one ends


async def log_in(leg: Leg, via: LoggedIn | None, patience: Patience, ask: AskHostKey | None) -> LoggedIn:
    """A login on `leg`'s hop through `via`; SshFault otherwise.

    An unknown host key is asked about when there is somebody to ask, with the connection closed meanwhile;
    nothing was sent by then that a login needs.
    """
    known = KnownHosts(leg.hop, leg.target, ask is not None)
    notes: list[str] = []
    try:
        return await _patiently(leg, via, patience, known)
    except _Unknown as unknown:
        if ask is None or not await ask(_question(leg, known, unknown.key)):
            raise unknown.fault from None
        notes = [note for note in [known.accept(unknown.key)] if note]
    try:
        entered = await _patiently(leg, via, patience, known)
    except _Unknown as unknown:
        raise unknown.fault from None
    entered.notes.extend(notes)
    return entered


class _LacksTheKind(Exception):
    """The talk ended before a host key came up, perhaps for want of the kinds on record."""

    def __init__(self, fault: SshFault) -> None:
        super().__init__()
        self.fault = fault


class _Unknown(Exception):
    """The hop's key is not on record, and no other is."""

    def __init__(self, key: asyncssh.SSHKey, fault: SshFault) -> None:
        super().__init__()
        self.key = key
        self.fault = fault


def _question(leg: Leg, known: KnownHosts, key: asyncssh.SSHKey) -> HostKeyQuestion:
    return HostKeyQuestion(
        leg.target, leg.hop.asked.host, key.get_algorithm(), key.get_fingerprint(), known.writable
    )


async def _patiently(leg: Leg, via: LoggedIn | None, patience: Patience, known: KnownHosts) -> LoggedIn:
    for wait_s in patience.waits_s():
        try:
            return await _once(leg, via, patience, known)
        except SshFault as fault:
            if not fault.passing or (via and via.witness.lost.is_set()):
                raise
        await asyncio.sleep(wait_s)
    try:
        return await _once(leg, via, patience, known)
    except SshFault as fault:
        if fault.passing and patience.tries > 1:
            fault.sentence += f" ({patience.tries} tries)"
        raise


async def _once(
    leg: Leg, via: LoggedIn | None, patience: Patience, known: KnownHosts, any_kind: bool = False
) -> LoggedIn:
    """One try. With `any_kind` the server may show a key of a kind that is not on record."""
    options = await _usable(leg, _options(leg, via, patience, known))
    if any_kind:
        options["server_host_key_algs"] = _plain_kinds()
    passed_ms: dict[str, float] = {}
    if via is None and not leg.hop.proxy_command:
        dialled = await dial(leg, leg.hop.connect_timeout_s or patience.connect_s)
        options["sock"] = dialled.socket
        passed_ms = {"dns": dialled.dns_ms, "connect": dialled.connect_ms}
    try:
        entered = await _entered(leg, patience, known, options)
    except _LacksTheKind as lacking:
        if any_kind:
            raise lacking.fault from None
        return await _once(leg, via, patience, known, any_kind=True)
    except _Unknown as unknown:
        unknown.fault.passed_ms = passed_ms
        raise
    except SshFault as fault:
        fault.passed_ms = passed_ms
        raise
    entered.dns_ms, entered.connect_ms = passed_ms.get("dns", 0.0), passed_ms.get("connect", 0.0)
    return entered


async def _entered(leg: Leg, patience: Patience, known: KnownHosts, options: dict[str, Any]) -> LoggedIn:
    """The login over a connection that is there, or is made by the way that `options` name."""
    witness = _Witness()
    began_s = time.perf_counter()
    try:
        connection = await _bounded(leg, witness, options, patience)
        login_ms = (time.perf_counter() - began_s) * 1e3
        return LoggedIn(connection, witness, login_ms=login_ms)
    except asyncssh.HostKeyNotVerifiable:
        fault = refusal(leg.who, leg.hop.asked.by_hand, witness.offered, known)
        if witness.offered is not None and not known.recorded():
            raise _Unknown(witness.offered, fault) from None
        raise fault from None
    except asyncssh.PermissionDenied:
        raise await refused_login(leg, witness.wants_words) from None
    except (asyncssh.DisconnectError, ConnectionError) as error:
        fault = disconnected(leg, error, witness.trusts)
        if witness.may_lack_the_kind and known.recorded():
            raise _LacksTheKind(fault) from None
        raise fault from None
    except asyncssh.ChannelOpenError as error:
        raise unforwarded(leg, error) from None
    except FileNotFoundError as error:
        raise unusable_options(leg, error) from None
    except OSError as error:
        raise unreachable(leg, error) from None
    except (ValueError, LookupError, TypeError, AssertionError) as error:
        raise nonsense(leg, error) from None  # what asyncssh raises over bytes that nobody should send
    finally:
        if "sock" in options and witness.connection is None:
            options["sock"].close()


async def _usable(leg: Leg, options: dict[str, Any]) -> dict[str, Any]:
    """`options`, once they are seen to work together with the configuration: nobody is called in vain."""
    try:
        await asyncssh.SSHClientConnectionOptions.construct(None, host=leg.hop.asked.host, **options)
    except asyncssh.KeyImportError as error:
        raise unreadable_key(leg, error) from None
    except (OSError, ValueError) as error:
        raise unusable_options(leg, error) from None
    return options


async def _bounded(
    leg: Leg, witness: _Witness, options: dict[str, Any], patience: Patience
) -> asyncssh.SSHClientConnection:
    """The login, given up early when the other side never says that it is an ssh server."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    first_s = min(patience.login_s, leg.hop.connect_timeout_s or patience.connect_s)
    try:
        async with asyncio.timeout(patience.login_s) as bound:

            def give_up_on_silence() -> None:
                if not witness.greeted:
                    bound.reschedule(loop.time())

            watch = loop.call_at(started + first_s, give_up_on_silence)
            try:
                return await asyncssh.connect(leg.hop.asked.host, client_factory=lambda: witness, **options)
            finally:
                watch.cancel()
    except TimeoutError:
        if witness.trusts:
            raise slow_login(leg, patience.login_s) from None
        if witness.greeted:
            raise stuck(leg, patience.login_s) from None
        if witness.connection is None:
            raise unanswered(leg, first_s) from None
        raise silent(leg, first_s) from None


def _options(leg: Leg, via: LoggedIn | None, patience: Patience, known: KnownHosts) -> dict[str, Any]:
    """What asyncssh is told beside the user's configuration: what is always so with us."""
    hop, keys = leg.hop, keys_for(leg)
    options: dict[str, Any] = {
        "config": [str(leg.route.config_path)] if leg.route.config_path else None,
        "tunnel": via.connection if via else None,
        "known_hosts": known.lookup,
        "connect_timeout": None,
        "login_timeout": patience.login_s,
        "keepalive_interval": hop.keepalive_s,
        "keepalive_count_max": hop.keepalive_count,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "gss_delegate_creds": False,
        "canonicalize_hostname": False,
        "pkcs11_provider": None,
        "request_pty": False,
        "command": None,
        "encoding": None,
        "ignore_encrypted": True,
    }
    if not (known.has_anything or hop.names_key_kinds):
        options["server_host_key_algs"] = _plain_kinds()
    if hop.proxy_command and via is None:
        options["proxy_command"] = proxy_words(leg)
    if hop.asked.user:
        options["username"] = hop.asked.user
    if hop.asked.port:
        options["port"] = hop.asked.port
    if keys is not None:
        options["client_keys"] = [str(path) for path in keys.files]
        options["agent_identities"] = keys.agent_identities
    return options


def _plain_kinds() -> list[str]:
    """Every kind of host key but certificates: of an authority that is not known they say nothing."""
    return [kind.decode() for kind in get_default_public_key_algs()]
