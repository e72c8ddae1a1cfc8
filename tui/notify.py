"""Telling a person who looks elsewhere: by the terminal's bell, a message of tmux, or a command of theirs."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from tui.plain import plain

BELL, TMUX = "bell", "tmux"
ENDS_WITHIN_S = 30.0


def wrong_setting(value: str) -> str:
    """Why the setting cannot be used; empty when it can."""
    try:
        words = shlex.split(value)
    except ValueError as error:
        return f"notify is no command: {str(error).lower()}"
    return "" if words or not value else "notify is no command: it is blank"


def tmux_words(sentence: str) -> list[str]:
    """The command that shows the sentence; # and % in it, which tmux would expand, stay signs."""
    kept = re.sub(r"#(?!\d)", "", sentence)
    return ["tmux", "display-message", kept.replace("#", "##").replace("%", "%%")]


async def give_notice(
    setting: str, sentence: str, environ: Mapping[str, str], bell: Callable[[], None]
) -> str:
    """Tell it as the setting says: "" (nothing), bell, tmux (outside of it: bell), or a command whose last
    word the sentence becomes. What went wrong, as a sentence; empty when nothing did."""
    if not setting:
        return ""
    if setting == BELL or (setting == TMUX and not environ.get("TMUX")):
        bell()
        return ""
    words = tmux_words(sentence) if setting == TMUX else [*shlex.split(setting), sentence]
    return await _done(words)


async def _done(words: Sequence[str]) -> str:
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
    except OSError as error:
        return f"notify: {plain(words[0])} cannot be started: {plain(error.strerror or error)}"
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            code = await process.wait()
    except TimeoutError:
        return f"notify: {plain(words[0])} did not end within {ENDS_WITHIN_S:g} s, and was killed"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return f"notify: {plain(words[0])} ended with exit code {code}" if code else ""
