"""The keys for a login: which are offered, and why a login with them was refused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from core.targets.ssh.faults import SshFault
from core.targets.ssh.telling import Leg

_AGENT_ANSWERS_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Keys:
    """What is offered to a server: key files, and of an agent's keys only those named (all when None)."""

    files: tuple[Path, ...]
    agent_identities: tuple[bytes, ...] | None


def keys_for(leg: Leg) -> Keys | None:
    """The keys that the configuration names; None for the usual ones.

    SshFault of stage `config` when it names key files and none of them is there. One missing among
    others is passed over, as OpenSSH does.
    """
    named = leg.hop.key_files
    if not named:
        return None
    files = tuple(path for path in named if path.is_file())
    public = [blob for path in named for blob in _public_blobs(path)]
    if not files and not public and leg.hop.key_is_described:
        raise SshFault(
            "config",
            f"{leg.who}: the key_file of its description is not there",
            "correct it: kerneldeck target add … --replace --key-file PATH (or HARNESSGYM_GPU_KEY)",
            details=str(named[0]),
        )
    if not files and not public:
        one = "the key file that its configuration names is" if len(named) == 1 else "its key files are"
        raise SshFault(
            "config",
            f"{leg.who}: {one} not there",
            "correct IdentityFile for it in ~/.ssh/config",
            details=", ".join(map(str, named)),
        )
    return Keys(files, tuple(public) if leg.hop.identities_only else None)


def _public_blobs(path: Path) -> list[bytes]:
    for candidate in (path, path.with_name(path.name + ".pub")):
        try:
            return [asyncssh.read_public_key(candidate).public_data]
        except (OSError, asyncssh.KeyImportError, UnicodeDecodeError):
            continue
    return []


async def refused_login(leg: Leg, wants_words: bool) -> SshFault:
    """Why the server said no, as far as this side can tell.

    `wants_words` says that it would have taken a password or a code.
    """
    files = leg.hop.present_keys
    locked = [path for path in files if _needs_passphrase(path)]
    held = await _keys_in_agent(leg.hop.agent)
    details = f"{leg.details}; key files: {', '.join(map(str, files)) or 'none'}; keys in the agent: {held}"
    if locked and not held:
        return SshFault(
            "auth",
            f"{leg.who} refused the login: the key needs its passphrase, and no agent holds it",
            f"run: ssh-add {'(with that key file)' if leg.hop.key_files else ''}".strip(),
            details=details,
        )
    words = "; it also takes a password or a code, but these are not asked for here" if wants_words else ""
    if not files and not held:
        return SshFault(
            "auth",
            f"{leg.who} refused the login: there was no key to offer{words}",
            "name one with IdentityFile in ~/.ssh/config, or load one with ssh-add",
            details=details,
        )
    unlocked = len(files) - len(locked)
    tried = [f"{unlocked} from files" if unlocked else "", f"{held} from an agent" if held else ""]
    return SshFault(
        "auth",
        f"{leg.who} refused the login; keys tried: {' and '.join(filter(None, tried))}{words}",
        "check User and IdentityFile for it in ~/.ssh/config, and that the machine knows your key",
        details=details,
    )


def unreadable_key(leg: Leg, error: Exception) -> SshFault:
    if "passphrase" in str(error).lower():
        return SshFault(
            "auth", f"{leg.who}: the key needs its passphrase, and no agent holds it", "run: ssh-add",
            details=f"{leg.details}: {error}",
        )  # fmt: skip
    return SshFault(
        "auth", f"{leg.who}: a key file that is named for it holds no key", details=f"{leg.details}: {error}"
    )


def _needs_passphrase(path: Path) -> bool:
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        return "passphrase" in str(error).lower()
    except OSError:
        return False
    return False


async def _keys_in_agent(path: str) -> int:
    if not path:
        return 0
    try:
        async with asyncio.timeout(_AGENT_ANSWERS_WITHIN_S):
            agent = await asyncssh.connect_agent(path)
            try:
                return len(await agent.get_keys())
            finally:
                agent.close()
    except (OSError, ValueError, asyncssh.Error, TimeoutError):
        return 0
