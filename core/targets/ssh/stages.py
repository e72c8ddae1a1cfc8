"""The stages of a remote fault as a person or a script meets them: titles, remedies, the coarse stage."""

from __future__ import annotations

from typing import Final

from core.words import STAGES

# The five coarse words of the remote health check; `stage` is the fine one.
FAILURE_STAGE: Final[dict[str, str]] = {
    "config": "configuration",
    "dns": "ssh",
    "connect": "ssh",
    "hostkey": "ssh",
    "auth": "ssh",
    "shell": "remote",
    "channel": "ssh",
    "scratch": "disk",
    "gpu": "gpu",
    "lock": "gpu",
    "sync": "ssh",
    "spawn": "remote",
    "lost": "ssh",
}

TITLE: Final[dict[str, str]] = {
    "config": "the target's description and the ssh configuration",
    "dns": "the host's name",
    "connect": "the connection",
    "hostkey": "the host's key",
    "auth": "the login",
    "shell": "the remote shell and Python",
    "channel": "a session on the connection",
    "scratch": "the scratch folder",
    "gpu": "the GPU",
    "lock": "the GPU's lock",
    "sync": "sending the workspace",
    "spawn": "starting the program",
    "lost": "the link to the running trial",
}

# What to do when the fault itself knows nothing better.
REMEDY: Final[dict[str, str]] = {
    "config": "see what is in effect with: kerneldeck target list, and ssh -G HOST",
    "dns": "check the name, its HostName in ~/.ssh/config, and whether a VPN is needed",
    "connect": "check that the machine is up, the port, and that a firewall lets you through",
    "hostkey": "ask whoever runs the machine for the key's fingerprint before trusting it",
    "auth": "try: ssh HOST true, and check User, IdentityFile and ssh-add -l",
    "shell": "try: ssh HOST python3 -V, and make the shell's start-up files quiet for commands",
    "channel": "close other sessions on that connection, or raise MaxSessions on the server",
    "scratch": "free space there, or name another folder as the target's scratch",
    "gpu": "run nvidia-smi on the machine",
    "lock": "wait, or ask the holder that the lock names",
    "sync": "run it again; files already there are not sent twice",
    "spawn": "check the command and the target's way into its environment",
    "lost": "run it again; a trial that is still running there is found at the next connection",
}


def failure_stage(stage: str) -> str:
    """The coarse word for `stage` (one of `core.words.STAGES`), as scripts of the health check read it."""
    return FAILURE_STAGE[stage]


assert tuple(FAILURE_STAGE) == tuple(TITLE) == tuple(REMEDY) == STAGES
