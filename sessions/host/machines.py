"""The machines that a host's trials run on: kept connections, and how they are for those who watch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import TargetFault
from core.words import JsonObject
from sessions.host.event_log import EventLog
from sessions.host.events import Gpu, TargetSeen, TargetView
from sessions.kept_hosts import KeptHosts
from sessions.store import SessionStore
from sessions.where import LOCAL, Where

if TYPE_CHECKING:
    from core.targets.ssh.host import SshHost
    from core.targets.ssh.host_keys import AskHostKey
    from core.targets.ssh.places import Place

SAMPLES_EVERY_S = 30.0
_ANSWERS_WITHIN_S = 15.0


class Machines:
    """Opens places for calls, and tells the log what is seen of the machine in use."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._kept = KeptHosts()
        self._sampled_s = 0.0

    async def opened(self, place: Place | None, ask: AskHostKey | None) -> Where:
        """As `sessions.where.opened`; each step of a remote one is told."""
        if place is None:
            here = await self._kept.opened(place, ask)
            self._see(TargetView(here.name, here.facts(None).device, "connected"))
            return here
        from core.targets.ssh.host import target_name

        view = TargetView(target_name(place))
        self._see(replace(view, state="connecting"))
        try:
            where = await self._kept.opened(place, ask)
        except TargetFault as fault:
            self._see(
                replace(view, state="lost", stage=fault.stage, sentence=fault.sentence, hint=fault.hint)
            )
            raise
        self._see(replace(view, state="connected", device=where.facts(None).device))
        return where

    def look(self, where: Where, store: SessionStore) -> None:
        """The machine that is meant when nothing is said, unless work runs on one or it is shown already."""
        shown = self._log.snapshot.target
        if self._log.snapshot.work is not None:
            return
        if shown.name == where.name and (shown.device or shown.state != "idle"):
            return
        if where.name == LOCAL:
            self._see(TargetView(LOCAL, where.facts(store).device, "connected"))
        else:
            facts, host = store.facts_of_target(where.name), self._machine(where.name)
            state = "connected" if host is not None and not host.lost_by else "idle"
            self._see(TargetView(where.name, facts.device if facts else "", state))

    def _machine(self, name: str) -> SshHost | None:
        """The kept connection to that machine."""
        return next((one for one in self._kept.machines if one.name == name), None)

    async def sample(self) -> None:
        """Round trip and GPUs of a connected machine, every half minute; to be asked while nothing runs.

        A lost connection is shown, not made again: the next call does that.
        """
        shown = self._log.snapshot.target
        if shown.name == LOCAL or shown.state != "connected":
            return
        host = self._machine(shown.name)
        if host is None:
            self._see(replace(shown, state="idle", rtt_ms=None))
        elif host.lost_by:
            self._see(replace(shown, state="lost", stage="lost", sentence=host.lost_by, rtt_ms=None))
        elif time.monotonic() >= self._sampled_s + SAMPLES_EVERY_S:
            self._sampled_s = time.monotonic()
            await self._sample(host, shown)

    async def _sample(self, host: SshHost, shown: TargetView) -> None:
        try:
            self._see(await _sampled(host, shown))
        except TargetFault as fault:
            lost = replace(shown, state="lost", stage=fault.stage, sentence=fault.sentence, hint=fault.hint)
            self._see(lost)

    def _see(self, view: TargetView) -> None:
        if view != self._log.snapshot.target:
            self._log.tell(TargetSeen(view))

    async def close(self) -> None:
        await self._kept.close()


async def _sampled(host: SshHost, shown: TargetView) -> TargetView:
    from core.targets.ssh.host import SMI, SMI_ANSWERS_WITHIN_S

    link = await host.link()
    began_s = time.perf_counter()
    await link.request("ping", {}, _ANSWERS_WITHIN_S)
    rtt_ms = (time.perf_counter() - began_s) * 1e3
    fields = {"smi": SMI, "deadline_s": SMI_ANSWERS_WITHIN_S, "gpu": host.place.gpu}
    found = await link.request("gpus", fields, 2 * SMI_ANSWERS_WITHIN_S + _ANSWERS_WITHIN_S)
    gpus = tuple(_gpu(row, found.get("processes", [])) for row in found.get("gpus", []))
    return TargetView(shown.name, shown.device, "connected", rtt_ms, gpus, time.time())


def _gpu(row: JsonObject, processes: Sequence[JsonObject]) -> Gpu:
    return Gpu(
        index=int(row["index"]), name=str(row.get("name", "")), uuid=str(row.get("uuid", "")),
        temperature_c=row.get("temperature_c"), power_w=row.get("power_w"),
        power_limit_w=row.get("power_limit_w"), clock_mhz=row.get("sm_clock_mhz"),
        memory_used_mb=row.get("memory_used_mib"), memory_total_mb=row.get("memory_total_mib"),
        throttle=tuple(row.get("throttle_reasons") or ()),
        processes=sum(one.get("gpu") == row.get("uuid") for one in processes),
    )  # fmt: skip
