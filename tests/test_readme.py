"""The README's commands exist: every verb and option it names is one of the command line's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from core.operations.catalogue import OPERATIONS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


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
        assert known or verb[0] in ("call", "completion"), words
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


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert re.search(r"^make test\b", TEXT, re.M)
    assert re.search(r"^make test$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert "@@" not in TEXT
