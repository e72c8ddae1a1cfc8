"""The README's commands exist: every verb and option it names is one of the command line's."""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

from core.operations.catalogue import OPERATIONS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


OTHERS = ("call", "completion", "tui", "attach", "watch", "doctor", "host")  # commands that are no operation


def named_commands() -> list[list[str]]:
    """The words after `kerneldeck` in code, up to a comment, quote or bracket."""
    found = re.findall(
        r"kerneldeck ([a-z][^#\n`)\"'…{]*)", "\n".join(re.findall(r"```.*?```|`[^`\n]+`", TEXT, re.S))
    )
    return [words.split() for words in found]


def test_every_command_of_the_readme_is_one_of_the_program() -> None:
    commands = named_commands()
    assert len(commands) > 8
    for words in commands:
        verb = [word for word in words if not word.startswith("-")]
        known = any(list(one.verb) == verb[: len(one.verb)] for one in OPERATIONS)
        assert known or verb[0] in OTHERS, words
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        length = next((len(one.verb) for one in OPERATIONS if list(one.verb) == verb[: len(one.verb)]), 1)
        help_command = [sys.executable, "-m", "kerneldeck", *verb[:length], "--help"]
        text = subprocess.run(help_command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        assert all(option in text for option in options), words


def test_make_has_the_targets_that_the_readme_names() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"\bmake ([a-z]+)", TEXT)) & {"demo", "test", "check", "bench"}
    assert targets == {"demo", "test", "check", "bench"}
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_the_screen_of_the_readme_is_one_of_the_app() -> None:
    (screen,) = re.findall(r"<!-- queue-80x24 -->\n```\n(.*?)```", TEXT, re.S)
    lines = screen.splitlines()
    assert len(lines) == 24 and max(map(len, lines)) <= 80
    assert "[3]Queue" in screen and lines[-1].endswith("q detach")
    picture = (ROOT / "docs/screens/queue-80x24.svg").read_text()
    shown = unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture)))
    assert shown.split() == screen.split()


def test_every_picture_is_shown_small_and_text() -> None:
    page = (ROOT / "docs/app.md").read_text()
    pictures = sorted((ROOT / "docs/screens").iterdir())
    assert sorted(re.findall(r"screens/([\w-]+\.svg)", page)) == [one.name for one in pictures]
    for one in pictures:
        text = one.read_text()
        assert len(text.encode()) < 60_000 and text.startswith("<svg ") and "<text " in text, one.name
        assert "/tmp/" not in text and "<image" not in text, one.name


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert re.search(r"^make test\b", TEXT, re.M)
    assert re.search(r"^make test$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert "@@" not in TEXT
