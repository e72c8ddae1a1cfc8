"""The health of an SSH target, stage by stage: what was reached, what failed, and what to do about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from core.errors import TargetFault
from core.targets.ssh.faults import SshFault
from core.targets.ssh.health_cache import FoundWell, HealthCache
from core.targets.ssh.host import MEGABYTE, SMI, SshHost, chosen_gpu, target_name
from core.targets.ssh.link import AgentLink
from core.targets.ssh.patience import Patience
from core.targets.ssh.places import Place
from core.targets.ssh.stages import REMEDY, TITLE, failure_stage
from core.words import STAGES, JsonObject

if TYPE_CHECKING:
    from core.targets.ssh.host_keys import AskHostKey

CHECKED = STAGES[: STAGES.index("gpu") + 1]
_LOGIN = ("config", "dns", "connect", "hostkey", "auth")
_AGENT = ("channel", "shell")
_ABOVE_SMI_S = 10.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the machine must offer. `timeout_s` bounds each step: login, agent, scratch folder, GPUs."""

    timeout_s: float = 8.0
    min_free_mb: float = 256.0
    require_gpu: bool = True


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage; `ms` is its time in milliseconds.

    The ssh configuration's and the host key's are in that of the login (`auth`), a session's in that of the
    shell. A stage that failed has the time since the last one that was told apart.
    """

    stage: str
    state: str = "skipped"  # ok | failed | skipped
    ms: float | None = None
    sentence: str = ""
    remedy: str = ""

    @property
    def json(self) -> JsonObject:
        return {
            "stage": self.stage, "title": TITLE[self.stage], "state": self.state,
            "ms": None if self.ms is None else round(self.ms, 1),
            "sentence": self.sentence, "remedy": self.remedy,
        }  # fmt: skip


@dataclass(slots=True)
class Health:
    """What was found; filled while it is looked for. `processes` is None when nobody asked who computes.

    `age_s` is None for what was just found.
    """

    target: str
    reports: dict[str, StageReport] = field(default_factory=dict)
    free_mb: int | None = None
    python: str | None = None
    gpus: tuple[JsonObject, ...] = ()
    processes: tuple[JsonObject, ...] | None = ()
    trial_gpu: str | None = None  # the UUID of the one that a trial takes
    age_s: float | None = None

    @classmethod
    def remembered(cls, place: Place, found: FoundWell) -> Health:
        """The health of a machine that was well `found.age_s` ago."""
        states = dict.fromkeys(CHECKED, "ok") | {"gpu": "ok" if found.gpus else "skipped"}
        reports = {stage: StageReport(stage, state, found.ms.get(stage)) for stage, state in states.items()}
        return cls(
            target_name(place), reports, found.free_mb, found.python, found.gpus, found.processes,
            _taken(place, found.gpus), found.age_s,
        )  # fmt: skip

    @property
    def failed(self) -> StageReport | None:
        return next((report for report in self.reports.values() if report.state == "failed"), None)

    @property
    def json(self) -> JsonObject:
        failed = self.failed
        return {
            "target": self.target,
            "status": "failed" if failed else "ok",
            "stage": failed.stage if failed else None,
            "failure_stage": failure_stage(failed.stage) if failed else None,
            "reason": failed.sentence if failed else "",
            "cached": self.age_s is not None,
            "age_s": None if self.age_s is None else round(self.age_s, 1),
            "stages": [self.reports.get(stage, StageReport(stage)).json for stage in CHECKED],
            "free_mb": self.free_mb,
            "python": self.python,
            "gpus": list(self.gpus),
            "trial_gpu": self.trial_gpu,
            "processes": None if self.processes is None else list(self.processes),
        }


def _taken(place: Place, gpus: Sequence[JsonObject]) -> str | None:
    """The UUID of the card that a trial takes; None when it takes none, or its card does not work."""
    with suppress(TargetFault):
        chosen = chosen_gpu(place, gpus)
        return None if chosen is None else str(chosen["uuid"])
    return None


async def check_host(
    place: Place, wanted: Wanted, ask: AskHostKey | None = None, healthy: HealthCache | None = None
) -> Health:
    """Look at everything a trial needs there, up to the first fault; nothing of a workspace is sent.

    What was found is what `healthy` says of the place from now on.
    """
    check = _Check(place, wanted, ask, healthy)
    try:
        await check.all()
    except TargetFault as fault:
        check.fail(fault)
    finally:
        await check.close()
    return check.health


class _Check:
    def __init__(
        self, place: Place, wanted: Wanted, ask: AskHostKey | None, healthy: HealthCache | None
    ) -> None:
        step_s = wanted.timeout_s
        patience = Patience(connect_s=step_s, login_s=step_s, session_s=step_s, tries=1)
        self.place = place
        self.wanted = wanted
        self.healthy = healthy
        self.asks = ask is not None
        self.health = Health(target_name(place))
        self.host = SshHost(place, ask=ask, patience=patience, healthy=healthy)
        self.opened: AgentLink | None = None
        self.step: tuple[str, ...] = _LOGIN
        self.began_s = time.perf_counter()

    async def all(self) -> None:
        connection = await self._in_time(_LOGIN, "connect", self.host.connect(), bounded=not self.asks)
        for stage, ms in connection.stage_ms.items():
            self._report(stage, "ok", ms)
        link = await self._in_time(_AGENT, "shell", self.host.start_agent(connection))
        self.opened = link
        greeting = await self._in_time(("scratch",), "scratch", self.host.greet(link))
        self.host.greeting = greeting
        self.health.python, self.health.free_mb = greeting.python, greeting.free_bytes // MEGABYTE
        self.host.need_room(self.wanted.min_free_mb)
        await self._look_at_gpus(link)
        self._remember(greeting.boot_id)

    async def _look_at_gpus(self, link: AgentLink) -> None:
        smi_s = self.wanted.timeout_s
        self._begin(("gpu",))
        fields = {"smi": SMI, "deadline_s": smi_s, "gpu": self.place.gpu}
        found = await link.request("gpus", fields, 2 * smi_s + _ABOVE_SMI_S)
        self.health.gpus, self.health.processes = tuple(found["gpus"]), tuple(found["processes"])
        needed = bool(self.wanted.require_gpu or self.place.gpu)
        trouble = found.get("trouble")
        if trouble and needed:
            raise TargetFault("gpu", str(trouble["sentence"]), str(trouble["hint"]))
        if needed:
            chosen_gpu(self.place, self.health.gpus)
        self.health.trial_gpu = _taken(self.place, self.health.gpus)
        state = "skipped" if trouble else "ok"
        self._report("gpu", state, self._ms, str(trouble["sentence"]) if trouble else "")

    def _remember(self, boot_id: str) -> None:
        if self.healthy is None or self.health.reports["gpu"].state != "ok":
            return
        health = self.health
        times = {stage: report.ms for stage, report in health.reports.items() if report.ms is not None}
        found = FoundWell(
            boot_id, True, health.gpus, health.processes, health.free_mb or 0, health.python or "", times
        )
        self.healthy.keep(self.place, found)

    async def _in_time(self, step: tuple[str, ...], late: str, work: Awaitable[T], bounded: bool = True) -> T:
        """The step's stages are passed together when its work ends well."""
        self._begin(step)
        try:
            async with asyncio.timeout(self.wanted.timeout_s if bounded else None):
                made = await work
        except TimeoutError:
            words = f"{self.health.target} did not get so far within {self.wanted.timeout_s:g} s"
            raise TargetFault(late, words) from None
        for stage in step:
            self._report(stage, "ok", self._ms if stage == step[-1] else None)
        return made

    def _begin(self, step: tuple[str, ...]) -> None:
        self.step, self.began_s = step, time.perf_counter()

    @property
    def _ms(self) -> float:
        return (time.perf_counter() - self.began_s) * 1e3

    def _report(self, stage: str, state: str, ms: float | None, sentence: str = "", remedy: str = "") -> None:
        self.health.reports[stage] = StageReport(stage, state, ms, sentence, remedy)

    def fail(self, fault: TargetFault) -> None:
        """A link that breaks meanwhile is a fault of the step that was being taken."""
        self.host.distrust()
        stage = fault.stage if fault.stage in CHECKED else self.step[-1]
        passed_ms = fault.passed_ms if isinstance(fault, SshFault) else {}
        if stage in self.step:
            for passed in self.step[: self.step.index(stage)]:
                self._report(passed, "ok", passed_ms.get(passed))
        self._report(
            stage, "failed", self._ms - sum(passed_ms.values()), fault.sentence, fault.hint or REMEDY[stage]
        )

    async def close(self) -> None:
        if self.opened is not None:
            with suppress(TargetFault):
                await self.opened.close()
        await self.host.close()
