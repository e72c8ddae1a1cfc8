"""What a host tells its clients: the engine's events and its own, each with a rising number."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.events import EVENT_TYPES
from core.events import Event as EngineEvent
from core.words import JsonObject, Overlay
from sessions.host.codec import from_json, named_kinds, tagged


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as it was last sampled; None where it does not tell. `throttle` are words."""

    index: int
    name: str = ""
    uuid: str = ""
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    clock_mhz: float | None = None
    memory_used_mb: float | None = None
    memory_total_mb: float | None = None
    throttle: tuple[str, ...] = ()
    processes: int = 0


@dataclass(frozen=True, slots=True)
class TargetView:
    """Where trials run when nothing is said, and how it is.

    `state` is idle (not connected, nothing asked), connecting, connected or lost; with a fault its stage,
    sentence and hint. Times are Unix seconds, None: never.
    """

    name: str = "local"
    device: str = ""
    state: str = "idle"
    rtt_ms: float | None = None
    gpus: tuple[Gpu, ...] = ()
    sampled_s: float | None = None
    stage: str = ""
    sentence: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """The checkpoint that stands for the contract; `score` in the objective's unit, None when unknown."""

    id: str
    score: float | None
    since_s: float
    overlay: Overlay = field(default_factory=dict)
    trial_id: int | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """One asked-for operation; `began_s` is None while it waits for its turn (Unix seconds).

    `client` is the number of whoever asked; `leased` work ends with that client.
    """

    receipt: int
    operation: str
    actor: str
    command: str
    pid: int
    client: int
    leased: bool
    asked_s: float
    began_s: float | None = None


@dataclass(frozen=True, slots=True)
class ClientView:
    number: int
    actor: str
    pid: int
    command: str
    since_s: float
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class WorkAsked:
    work: Work


@dataclass(frozen=True, slots=True)
class WorkBegan:
    receipt: int
    when_s: float


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """`outcome` is done, or the code of the fault that `sentence` tells."""

    receipt: int
    outcome: str
    exit_code: int
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class WorkKept:
    """The client of leased work has gone while others watch: it goes on, detached."""

    receipt: int


@dataclass(frozen=True, slots=True)
class WorkspaceSeen:
    """The workspace was looked at: its contract, its best, and which mutable files differ from that.

    `fault` says why it cannot be used as it is (a broken toml, protected files that changed); `baseline`
    is the trial that others are compared with.
    """

    name: str
    root: str
    contract_id: str
    metric: str
    unit: str
    lower_is_better: bool
    changed_files: tuple[str, ...] = ()
    best: Best | None = None
    fault: str = ""
    baseline: int | None = None


@dataclass(frozen=True, slots=True)
class Annotated:
    """Somebody said something of a record; `said` tells what."""

    said: str


@dataclass(frozen=True, slots=True)
class TargetSeen:
    target: TargetView


@dataclass(frozen=True, slots=True)
class ClientCame:
    client: ClientView


@dataclass(frozen=True, slots=True)
class ClientLeft:
    number: int


@dataclass(frozen=True, slots=True)
class HostLeaves:
    """The host ends by itself, or was asked to."""

    reason: str


HostEvent = (
    WorkAsked
    | WorkBegan
    | WorkEnded
    | WorkKept
    | WorkspaceSeen
    | Annotated
    | TargetSeen
    | ClientCame
    | ClientLeft
    | HostLeaves
)
Event = EngineEvent | HostEvent
HOST_EVENT_TYPES = (
    WorkAsked, WorkBegan, WorkEnded, WorkKept, WorkspaceSeen, Annotated, TargetSeen, ClientCame, ClientLeft,
    HostLeaves,
)  # fmt: skip
_KINDS = named_kinds((*EVENT_TYPES, *HOST_EVENT_TYPES))


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event as clients get it: its number, who caused it, when (Unix seconds), and of which work."""

    seq: int
    actor: str
    when_s: float
    event: Event
    receipt: int = 0

    @property
    def replaces(self) -> str:
        """Of two undelivered events with the same key only the later one counts; empty: every one does."""
        return type(self.event).__name__ if isinstance(self.event, TargetSeen | WorkspaceSeen) else ""

    def to_json(self) -> JsonObject:
        return {
            "seq": self.seq, "actor": self.actor, "when_s": self.when_s, "receipt": self.receipt,
            "event": tagged(self.event),
        }  # fmt: skip

    @classmethod
    def from_json(cls, written: JsonObject) -> Numbered:
        """ValueError when it is none, or of a type that is not known here."""
        try:
            event = written["event"]
            kind = _KINDS[event["type"]]
            value: Event = from_json(kind, event)
            return cls(written["seq"], written["actor"], written["when_s"], value, written["receipt"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"no event: {error}") from None
