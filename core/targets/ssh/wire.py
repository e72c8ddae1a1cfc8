"""Frames between client and agent, and what both take for a safe name.

A frame is `>BII` (flags, length of the JSON, length of the body), the JSON object, the body. Bit 0 of the
flags says that the JSON is deflated, bit 1 that the body is. A request carries `id`, its answers `re`.

Part of the agent's bundle too: standard library only, Python 3.8's syntax.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Frame = tuple[Json, bytes]

PROTOCOL = 1
MOST_JSON_BYTES = 16 << 20
MOST_BODY_BYTES = 1 << 20
DEFLATE_JSON_FROM = 4096
SAMPLE_BYTES = 16 << 10
WORTH_IT = 0.9
_HEAD = struct.Struct(">BII")
_JSON_DEFLATED, _BODY_DEFLATED = 1, 2
_NO_NAMES = frozenset(("", ".", ".."))
_SHA256 = re.compile("[0-9a-f]{64}")


class NoFrame(ValueError):
    """The other side sent what cannot be a frame."""


class Fault(Exception):
    """An answer that says no: `stage` is a word of `core.words.STAGES`."""

    def __init__(self, stage: str, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.stage = stage
        self.sentence = sentence
        self.hint = hint


def frame(header: Json, body: bytes = b"", deflate: bool = False) -> bytes:
    """One frame; `deflate` is for a body that gets smaller by it, a long JSON always is."""
    flags = 0
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > DEFLATE_JSON_FROM:
        flags, text = flags | _JSON_DEFLATED, zlib.compress(text, 1)
    if deflate and _gets_smaller(body):
        flags, body = flags | _BODY_DEFLATED, zlib.compress(body, 1)
    return b"".join((_HEAD.pack(flags, len(text), len(body)), text, body))


def _gets_smaller(body: bytes) -> bool:
    """By a sample of its middle: what is packed already only costs time."""
    middle = body[len(body) // 2 :][:SAMPLE_BYTES]
    return len(zlib.compress(middle, 1)) < WORTH_IT * len(middle)


class Unframer:
    """Cuts a stream into frames; holds at most one frame and the last chunk fed."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now. NoFrame when the stream is none of ours."""
        self._unread += chunk
        frames = []
        while len(self._unread) >= _HEAD.size:
            flags, of_json, of_body = _HEAD.unpack_from(self._unread)
            if flags > 3 or of_json > MOST_JSON_BYTES or of_body > MOST_BODY_BYTES + 4096:
                raise NoFrame("it announces what no frame holds")
            end = _HEAD.size + of_json + of_body
            if len(self._unread) < end:
                break
            text = bytes(self._unread[_HEAD.size : end - of_body])
            body = bytes(self._unread[end - of_body : end])
            del self._unread[:end]
            frames.append(_unpacked(flags, text, body))
        return frames


def _unpacked(flags: int, text: bytes, body: bytes) -> Frame:
    if flags & _JSON_DEFLATED:
        text = _inflated(text, MOST_JSON_BYTES)
    if flags & _BODY_DEFLATED:
        body = _inflated(body, MOST_BODY_BYTES)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise NoFrame("its header is no JSON") from None
    if not isinstance(header, dict):
        raise NoFrame("its header is no JSON object")
    return header, body


def _inflated(packed: bytes, most_bytes: int) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed, most_bytes)
    except zlib.error:
        raise NoFrame("its content cannot be inflated") from None
    if not unpacker.eof:
        raise NoFrame("its content is cut, or larger than a frame holds")
    return content


def safe_name(name: object) -> bool:
    """Whether `name` is a relative path in normal form that stays inside the folder it is taken in."""
    if not isinstance(name, str) or not name or "\0" in name or len(name) > 4096:
        return False
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return _NO_NAMES.isdisjoint(name.split("/"))


def is_sha256(word: object) -> bool:
    return isinstance(word, str) and _SHA256.fullmatch(word) is not None
