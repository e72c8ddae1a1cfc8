"""What the user's ssh configuration says of a target: every hop of the way there, and what is not obeyed."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from asyncssh.config import ConfigParseError, SSHClientConfig

from core.targets.ssh.address import Address, split_destination
from core.targets.ssh.faults import SshFault

KEEPALIVE_S: Final = 5.0
KEEPALIVE_COUNT: Final = 3
_MOST_HOPS: Final = 8
_DEFAULT_KEYS: Final = ("id_ed25519_sk", "id_ed25519", "id_ecdsa_sk", "id_ecdsa", "id_rsa")
_DEFAULT_KNOWN: Final = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN: Final = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")

# Read by asyncssh, but never obeyed here; every other option that is not obeyed asyncssh does not know.
_OVERRULED: Final = {
    "canonicalizehostname": "CanonicalizeHostname",
    "forwardagent": "ForwardAgent",
    "forwardx11trusted": "ForwardX11Trusted",
    "gssapidelegatecredentials": "GSSAPIDelegateCredentials",
    "remotecommand": "RemoteCommand",
    "requesttty": "RequestTTY",
}
_SPELLING: Final = {
    name.lower(): name
    for name in (
        "AddKeysToAgent", "CheckHostIP", "ClearAllForwardings", "ControlMaster", "ControlPath",
        "ControlPersist", "DynamicForward", "EscapeChar", "ExitOnForwardFailure", "ForwardX11",
        "HashKnownHosts", "HostbasedAcceptedAlgorithms", "IgnoreUnknown", "IPQoS", "KnownHostsCommand",
        "LocalCommand", "LocalForward", "LogLevel", "NoHostAuthenticationForLocalhost",
        "NumberOfPasswordPrompts", "PermitLocalCommand", "PKCS11Provider", "ProxyUseFdpass",
        "PubkeyAcceptedAlgorithms", "RemoteForward", "RequiredRSASize", "RevokedHostKeys",
        "SecurityKeyProvider", "StreamLocalBindUnlink", "StrictHostKeyChecking", "Tunnel", "UpdateHostKeys",
        "UseKeychain", "VerifyHostKeyDNS", "VisualHostKey", "XAuthLocation",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hop:
    """One machine on the way, with all that the configuration says of it.

    `name` is what sentences call it. `asked` is what was written for it, `host`, `port` and `user` what that
    comes to. Empty `key_files` stand for the usual ones.
    """

    name: str
    asked: Address
    host: str
    port: int
    user: str
    key_files: tuple[Path, ...]
    key_is_described: bool  # by the target's description, not by the configuration
    identities_only: bool
    known_hosts: tuple[Path, ...]
    names_known_hosts: bool
    names_key_kinds: bool
    agent: str
    key_alias: str
    proxy_command: str
    family: int
    connect_timeout_s: float | None
    keepalive_s: float
    keepalive_count: int

    @property
    def present_keys(self) -> tuple[Path, ...]:
        """The private key files that a login can read."""
        usual = tuple(Path("~/.ssh", name).expanduser() for name in _DEFAULT_KEYS)
        return tuple(path for path in self.key_files or usual if path.is_file())


@dataclass(frozen=True, slots=True)
class Route:
    """The hops to a target in their order; the last one is the target itself."""

    address: Address
    config_path: Path | None
    hops: tuple[Hop, ...]


def effective(address: Address, config_path: Path | None = None, key_file: Path | None = None) -> Route:
    """The way to `address` under the user's ssh configuration (~/.ssh/config when no path is given).

    A `key_file` is offered to the target instead of the configured keys, and no other.
    SshFault of stage `config` when the configuration cannot be read or leads nowhere.
    """
    with _homes_known(address):
        path = _config_file(address, config_path)
        *jumps, last = _hops(address, address, path, ())
    if key_file:
        last = replace(last, key_files=(key_file,), key_is_described=True, identities_only=True)
    return Route(address, path, (*jumps, last))


def ignored_options(address: Address, config_path: Path | None = None) -> tuple[str, ...]:
    """The options which the configuration sets for this host and which are not obeyed, each once."""
    with _homes_known(address):
        path = _config_file(address, config_path)
        if path is None:
            return ()
        noting = _Noting(None, False, False, False, _local_user(), address.user or (), address.host,
                         address.port or ())  # fmt: skip
        _parse(noting, path, address)
    found = [_OVERRULED[key] for key in _OVERRULED if noting.get(_OVERRULED[key])]
    return tuple(dict.fromkeys([*noting.unread, *found]))


@contextmanager
def _homes_known(address: Address) -> Iterator[None]:
    """SshFault where a ~ stands for a home folder that nobody knows, as in a container without its user."""
    try:
        yield
    except RuntimeError as error:
        hint = "set HOME, and correct what names a home folder (~) that is not known here"
        raise SshFault(
            "config", f"{address.name}: the ssh configuration cannot be read",
            "" if isinstance(error, RecursionError) else hint, details=str(error),
        ) from None  # fmt: skip


def _config_file(address: Address, given: Path | None) -> Path | None:
    path = given or Path("~/.ssh/config").expanduser()
    if path.is_file():
        return path
    if given is not None:
        raise SshFault(
            "config", f"{address.name}: the ssh configuration file is not there", details=str(given)
        )
    return None


def _hops(target: Address, asked: Address, path: Path | None, behind: tuple[str, ...]) -> list[Hop]:
    """The way to `asked`; as in OpenSSH only the first jump host may itself have a ProxyJump."""
    if asked.host in behind or len(behind) > _MOST_HOPS:
        chain = " → ".join(Address(host).name for host in (*behind, asked.host))
        raise SshFault("config", f"{target.name}: its ProxyJump leads in a circle ({chain})")
    config = _load(target, asked, path)
    jumps = _jumps(target, config)
    before = _hops(target, jumps[0], path, (*behind, asked.host)) if jumps else []
    between = [_hop(jump, _load(target, jump, path)) for jump in jumps[1:]]
    return [*before, *between, _hop(asked, config)]


def _jumps(target: Address, config: SSHClientConfig) -> list[Address]:
    text = str(config.get("ProxyJump") or "")
    try:
        return [split_destination(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise SshFault("config", f"{target.name}: its ProxyJump cannot be read: {error}") from None


def _load(target: Address, asked: Address, path: Path | None) -> SSHClientConfig:
    who = (_local_user(), asked.user or (), asked.host, asked.port or ())
    config = SSHClientConfig(None, False, False, False, *who)  # type: ignore[arg-type]
    if path is None:
        return config
    _parse(config, path, target)
    if config.has_match_final():
        config = SSHClientConfig(config, True, False, True, *who)  # type: ignore[arg-type]
        _parse(config, path, target)
    return config


def _parse(config: SSHClientConfig, path: Path, target: Address) -> None:
    try:
        config.parse(path)
    except ConfigParseError as error:
        place = re.search(r"([^/]+) line ([0-9]+): ", str(error))
        where = f"line {place[2]} of its file {place[1]}" if place else "its file"
        raise SshFault(
            "config",
            f"{target.name}: the ssh configuration cannot be read at {where}",
            "correct that line; ssh -G HOST reads the same file",
            details=str(error),
        ) from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise SshFault(
            "config", f"{target.name}: the ssh configuration cannot be read", details=f"{path}: {error}"
        ) from None


def _hop(asked: Address, config: SSHClientConfig) -> Hop:
    def of(option: str, default: Any = None) -> Any:
        value = config.get(option)
        return default if value is None else value

    known, named = of("UserKnownHostsFile", ()), config.get("UserKnownHostsFile") is not None
    files = [*(known or ([] if named else _DEFAULT_KNOWN)), *of("GlobalKnownHostsFile", _GLOBAL_KNOWN)]
    return Hop(
        name=asked.name,
        asked=asked,
        host=of("Hostname", asked.host),
        port=of("Port", 22),
        user=of("User", "") or _local_user(),
        key_files=tuple(Path(name).expanduser() for name in of("IdentityFile", ())),
        key_is_described=False,
        identities_only=bool(of("IdentitiesOnly", False)),
        known_hosts=tuple(Path(name).expanduser() for name in files),
        names_known_hosts=bool(known),
        names_key_kinds=config.get("HostKeyAlgorithms") is not None,
        agent=_agent(config),
        key_alias=of("HostKeyAlias", ""),
        proxy_command=of("ProxyCommand", ""),
        family=of("AddressFamily", socket.AF_UNSPEC),
        connect_timeout_s=of("ConnectTimeout"),
        keepalive_s=float(of("ServerAliveInterval", KEEPALIVE_S)),
        keepalive_count=max(1, of("ServerAliveCountMax", KEEPALIVE_COUNT)),
    )


def _agent(config: SSHClientConfig) -> str:
    """The agent's socket, empty for none: as configured, by path or by variable, or the usual one."""
    named = config.get("IdentityAgent", "SSH_AUTH_SOCK")
    if not named:
        return ""
    text = str(named)
    if text == "SSH_AUTH_SOCK" or text.startswith("$"):
        return os.environ.get(text.lstrip("$"), "")
    return str(Path(text).expanduser())


def _local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "nobody"


class _Noting(SSHClientConfig):
    """Reads a configuration as asyncssh does, and keeps the names of the options it passes over."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.unread: list[str] = []

    def _note(self, option: str, args: list[str]) -> None:
        self.unread.append(_SPELLING.get(option, option))
        args.clear()


class _Every(dict[str, Any]):
    """Handlers by option; what has none is noted."""

    def __missing__(self, option: str) -> Any:
        return option, _Noting._note


_Noting._handlers = _Every(
    {key: handler for key, handler in SSHClientConfig._handlers.items() if key != "pkcs11provider"}
)
