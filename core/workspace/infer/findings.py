"""What inference asks of its caller, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from core.workspace.config import WorkspaceConfig


@dataclass(frozen=True, slots=True)
class ProbeOutput:
    """What a command printed; `exit_code` is None when it did not end by itself, and `note` says why."""

    stdout: str
    exit_code: int | None
    note: str = ""


class Probe(Protocol):
    """Runs a command in a throw-away copy of the folder and answers within `timeout_s` seconds."""

    def __call__(self, command: tuple[str, ...], timeout_s: float) -> ProbeOutput: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing inferred, and where it was seen: `file:line`, a file, or `dev run`."""

    topic: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Inference:
    """What a folder looks like. `config` is None when a part that every workspace needs was not found.

    `open_points` are sentences: what could not be inferred, and what to write where. `file_count` and
    `file_bytes` measure the set of files that a trial would need.
    """

    config: WorkspaceConfig | None
    findings: tuple[Finding, ...]
    open_points: tuple[str, ...]
    file_count: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Choices:
    """What the caller decided already; empty where inference may choose. Paths are relative to the folder."""

    benchmark: str = ""
    verifier: str = ""
    config: str = ""
    metric: str = ""


class Notes:
    """Collects findings and open points while a folder is read."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.open_points: list[str] = []

    def found(self, topic: str, value: str, source: str) -> None:
        self.findings.append(Finding(topic, value, source))

    def open(self, sentence: str) -> None:
        if sentence not in self.open_points:
            self.open_points.append(sentence)
