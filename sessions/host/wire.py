"""What goes over a host's socket: JSON objects, one a line, and the greeting before all others.

    client                                     host
    {"hello": Hello}                    →
                                        ←      {"welcome": Welcome}, or {"refused": fault} and the end
    {"do": WORD, "id": N, …}            →
                                        ←      {"re": N, "receipt": R}            (call: at once)
                                        ←      {"re": N, "answer": {…}} | {"re": N, "fault": {…}}
                                        ←      {"snapshot": …} | {"event": …}     (after watch)
                                        ←      {"question": {…}, "number": Q}     (unknown host key)
    {"do": "reply", "number": Q, "yes": …}  →

WORD is call, control, cancel, snapshot, watch, reply or bye.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

from core.errors import KerneldeckError
from core.words import JsonObject

PROTOCOL = 1
MOST_FROM_CLIENT_BYTES = 32 << 20  # a sweep of a hundred thousand written-out configurations
MOST_FROM_HOST_BYTES = 256 << 20
GREETED_WITHIN_S = 20.0


@dataclass(frozen=True, slots=True)
class Hello:
    """Who comes: the face (cli, tui, mcp), its process, and the command line for messages to others."""

    protocol: int
    version: str
    actor: str
    pid: int
    command: str
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Welcome:
    """The host's answer; `seq` is the number of its last event, `number` the client's own."""

    protocol: int
    version: str
    pid: int
    seq: int
    number: int
    root: str


class WireFault(Exception):
    """The other side sent what is none of this; the connection ends."""


class HostFault(KerneldeckError):
    """The host cannot be used: not startable, not ours, of another version, or gone meanwhile."""

    code = "session.host"
    exit_code = 3


class ToldFault(KerneldeckError):
    """A fault as the host told it, with its own code, exit code and details."""

    def __init__(self, written: JsonObject) -> None:
        super().__init__(str(written.get("sentence", "")), str(written.get("hint", "")))
        self.code = str(written.get("code", "error"))
        self.exit_code = int(written.get("exit_code", 1))
        self.stage = str(written.get("stage", ""))
        self.details = str(written.get("details", ""))


def fault_json(error: KerneldeckError) -> JsonObject:
    """A fault for the wire, with what is only for the user's own terminal."""
    return {
        "code": error.code, "sentence": error.sentence, "hint": error.hint, "exit_code": error.exit_code,
        "stage": getattr(error, "stage", ""), "details": getattr(error, "details", ""),
    }  # fmt: skip


def encoded(message: JsonObject) -> bytes:
    """One line. Texts that no encoding has (lone surrogates of odd file names) pass as escapes."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


async def read_message(reader: asyncio.StreamReader) -> JsonObject | None:
    """The next message; None at the end. WireFault when the line is too long or no JSON object."""
    try:
        line = await reader.readline()
    except ValueError:
        raise WireFault("a line is too long") from None
    except ConnectionError:
        return None
    if not line.endswith(b"\n"):
        return None
    return decoded(line)


def decoded(line: bytes) -> JsonObject:
    """WireFault when the line is no JSON object."""
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise WireFault("a line is no JSON") from None
    if not isinstance(message, dict):
        raise WireFault("a line is no JSON object")
    return message


def peer_uid(connection: socket.socket) -> int:
    """The user of the process at the other end, as the kernel says (SO_PEERCRED)."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", packed)
    return int(uid)
