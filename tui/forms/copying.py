"""Copying out of a terminal that may be far away: tmux's buffer, else its clipboard; always a file."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sessions.atomic_file import write_beside

MOST_OSC52_BYTES = 74_994  # what terminals that take it at all take; longer ones are dropped in silence
TMUX_ANSWERS_WITHIN_S = 2.0
FILE_NAME = "copied.txt"


@dataclass(frozen=True, slots=True)
class Copied:
    """Where the text is now, as a sentence; `path` is the file that always has it."""

    sentence: str
    path: Path


async def copy(
    text: str, folder: Path, environ: Mapping[str, str], to_terminal: Callable[[str], None]
) -> Copied:
    """Copy by the first way that works, and into a file of `folder`.

    `to_terminal` sends OSC 52, which no terminal acknowledges: the sentence does not promise it.
    OSError when the file cannot be written.
    """
    content = text.encode("utf-8", "replace")
    path = _kept(content, folder)
    server = environ.get("TMUX", "")
    if server and await _to_tmux(content, server):
        return Copied(f"in tmux's buffer (paste: prefix ]), and in {path}", path)
    if len(content) <= MOST_OSC52_BYTES:
        to_terminal(text)
        return Copied(f"sent to the terminal's clipboard, where it takes that; surely in {path}", path)
    return Copied(f"too long for the terminal's clipboard; in {path}", path)


def _kept(content: bytes, folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return write_beside(folder, ".copied-", ".txt", content).replace(folder / FILE_NAME)


async def _to_tmux(content: bytes, server: str) -> bool:
    """Into the buffer and, by tmux 3.2 and newer, the clipboard of the terminal outside."""
    if shutil.which("tmux") is None:
        return False
    return await _loaded(content, server, "-w") or await _loaded(content, server)


async def _loaded(content: bytes, server: str, *options: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux", "load-buffer", *options, "-",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL, env={**os.environ, "TMUX": server},
        )  # fmt: skip
    except OSError:
        return False
    try:
        async with asyncio.timeout(TMUX_ANSWERS_WITHIN_S):
            await process.communicate(content)
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode == 0
