"""All that the lines on the screen are made of, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.words import Scalar
from core.workspace.config import WorkspaceConfig
from sessions.host.events import Gpu, TargetView, WorkspaceSeen
from sessions.host.snapshot import Snapshot, SweepView
from tui.glyphs import UNICODE, Glyphs

CONNECTING, CONNECTED, LOST, ENDED = "connecting", "connected", "lost", "ended"
STALE_AFTER_S = 90.0


@dataclass(frozen=True, slots=True)
class Link:
    """The connection to the host; `sentence` and `hint` say why there is none."""

    state: str = CONNECTING
    sentence: str = ""
    hint: str = ""
    since_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Requested:
    """What was asked for and has not been answered yet."""

    number: int
    words: str
    asked_s: float


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a health check; `state` is ok, failed, skipped or not reached."""

    name: str
    state: str
    sentence: str = ""
    remedy: str = ""
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The last health check that this app asked for."""

    running: bool = False
    at_s: float = 0.0
    target: str = ""
    stages: tuple[Stage, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[str, ...] = ()
    sentence: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """What the workspace's own files say; `config` is None where they cannot be read, and `fault` says why.

    `current` are the values of the knobs in its configuration file now.
    """

    config: WorkspaceConfig | None = None
    current: Mapping[str, Scalar] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class HistoryFacts:
    """What the folded history says: rows in all, its filter, or why it cannot be read."""

    runs: int | None = None
    filter: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Showing:
    """What is known now; `last` is the line of the last event, `banner` a fault of the person's settings."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    link: Link = field(default_factory=Link)
    now_s: float = 0.0
    glyphs: Glyphs = UNICODE
    readonly: bool = False
    requested: tuple[Requested, ...] = ()
    facts: WorkspaceFacts = field(default_factory=WorkspaceFacts)
    probe: Probe = field(default_factory=Probe)
    history: HistoryFacts = field(default_factory=HistoryFacts)
    follow: bool = True
    hide_bad: bool = False
    last: str = ""
    banner: str = ""

    @property
    def sweep(self) -> SweepView | None:
        return self.snapshot.sweep

    @property
    def workspace(self) -> WorkspaceSeen | None:
        return self.snapshot.workspace

    @property
    def target(self) -> TargetView:
        return self.snapshot.target

    @property
    def live(self) -> bool:
        return self.link.state == CONNECTED

    @property
    def unit(self) -> str:
        return self.workspace.unit if self.workspace else ""

    def age_s(self, at_s: float | None) -> float | None:
        return None if at_s is None else max(0.0, self.now_s - at_s)
