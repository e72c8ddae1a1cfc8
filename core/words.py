"""The words of Kerneldeck: statuses, stages, and what each status means for a restore."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
Scalar: TypeAlias = bool | int | float | str
Overlay: TypeAlias = dict[str, Scalar]


class Status(StrEnum):
    """How a trial ended; every trial ends with exactly one."""

    OK = "ok"
    INCORRECT = "incorrect"
    INVALID = "invalid"
    COMPILE_ERROR = "compile_error"
    CRASH = "crash"
    OOM = "oom"
    TIMEOUT = "timeout"
    UNSTABLE = "unstable"
    TAMPERED = "tampered"
    CANCELLED = "cancelled"
    INFRA = "infra"


# Where an `infra` fault happened, in the order in which a trial meets them.
STAGES = (
    "config", "dns", "connect", "hostkey", "auth", "shell", "channel",
    "scratch", "gpu", "lock", "sync", "spawn", "lost",
)  # fmt: skip

RESTORE_AT_ONCE = frozenset({Status.INCORRECT, Status.TAMPERED, Status.COMPILE_ERROR, Status.INVALID})
RESTORE_WHEN_REPRODUCED = frozenset({Status.CRASH, Status.OOM, Status.TIMEOUT})
NEVER_RESTORE = frozenset({Status.INFRA, Status.UNSTABLE, Status.CANCELLED})
