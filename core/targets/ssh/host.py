"""The machine behind an SSH target: one connection and one greeted agent, opened anew when they are lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import TargetFault
from core.targets.job import TargetFacts
from core.targets.ssh.address import SCHEME
from core.targets.ssh.bundle import DEFAULT_PYTHON, DEFAULT_SCRATCH, MARK, Boot
from core.targets.ssh.connect import Connections
from core.targets.ssh.health_cache import FRESH_S, FoundWell, HealthCache
from core.targets.ssh.link import AgentLink
from core.targets.ssh.patience import Patience
from core.targets.ssh.places import Place
from core.targets.ssh.remote_trials import Greeting, greet
from core.targets.ssh.stages import REMEDY
from core.targets.texts import plain
from core.words import JsonObject

if TYPE_CHECKING:
    from core.targets.ssh.connection import Connection
    from core.targets.ssh.host_keys import AskHostKey

SMI = "nvidia-smi"
MEGABYTE = 1_000_000
SMI_ANSWERS_WITHIN_S = 10.0
_FACTS_WITHIN_S = 60.0
_TRIES_AFTER_A_LOSS = 6
_NO_GPU_HINT = "run nvidia-smi there; a machine without a GPU has none, and its target names no gpu"


def target_name(place: Place) -> str:
    """How records call the place: `ssh:` and the user's own word for it, never its address or key."""
    return place.name if place.is_local or place.name.startswith(SCHEME) else SCHEME + place.name


def chosen_gpu(place: Place, gpus: Sequence[JsonObject]) -> JsonObject | None:
    """The card that trials at `place` use; None on a machine without GPUs.

    TargetFault of stage `gpu` when it is not among these, or has fallen off the bus.
    """
    wanted = place.gpu
    chosen = next((gpu for gpu in gpus if wanted in ("", gpu["index"], gpu["uuid"])), None)
    if gpus and chosen is None:
        known = ", ".join(str(gpu["index"]) for gpu in gpus)
        raise TargetFault("gpu", f"{target_name(place)} has no GPU {wanted}", f"GPUs there: {known}")
    if chosen is not None and chosen.get("lost"):
        words = f"{target_name(place)}: GPU {chosen['index']} does not work: {plain(chosen['lost'])}"
        raise TargetFault("gpu", words, "reset the card or restart the machine; see `dmesg` for Xid there")
    return chosen


class SshHost:
    """One target's machine. Whatever keeps it from being used is a TargetFault with its stage."""

    def __init__(
        self,
        place: Place,
        *,
        ask: AskHostKey | None = None,
        patience: Patience | None = None,
        healthy: HealthCache | None = None,
    ) -> None:
        if place.address is None:
            raise ValueError(f"{place.name} is no SSH target")
        self.place = place
        self.greeting: Greeting | None = None
        self.gpu_uuid = ""  # whose lock a trial holds; empty without a GPU
        self.gpu_count = 0
        self._address = place.address
        self._patience = patience or Patience()
        self._ask = ask
        self._healthy = healthy
        self._connections = Connections(ask=ask, patience=self._patience)
        self._connection: Connection | None = None
        self._link: AgentLink | None = None
        self._greeted_s = 0.0
        self._facts: TargetFacts | None = None
        self._turn = asyncio.Lock()

    @property
    def name(self) -> str:
        return target_name(self.place)

    @property
    def path_first(self) -> str:
        """The folder of the target's Python, which `python3` means in a trial."""
        return self.place.python.rpartition("/")[0]

    def facts(self) -> TargetFacts:
        """What a contract says of the machine; known once it was opened."""
        if self._facts is None:
            raise TargetFault("config", f"{self.name} was not opened yet")
        return self._facts

    async def open(self) -> None:
        """Connect, start the agent, and see that trials can run there; nothing of the workspace is sent.

        What was found well a moment ago is not looked at again.
        """
        try:
            link = await self.link()
            if time.monotonic() >= self._greeted_s + FRESH_S:
                await self._take_greeting(link)  # a kept link: the room is another by now
            self.need_room(self.place.min_free_mb)
            known = self._known_well()
            told = await self._ask_facts(link, "" if known else SMI)
            found = known or self._found_well(told)
            self._take_facts(told, found)
            if known is None and self._healthy is not None:
                self._healthy.keep(self.place, found)
        except BaseException as error:
            if isinstance(error, TargetFault):
                self.distrust()
            await self.close()
            raise

    @property
    def lost_by(self) -> str:
        """Why there is no link any more; empty while there is one."""
        return "it was never opened" if self._link is None else self._link.lost

    def need_room(self, wanted_mb: float) -> None:
        """TargetFault of stage `scratch` when less was free there at the greeting."""
        free_mb = self.greeting.free_bytes / MEGABYTE if self.greeting else 0.0
        if free_mb < wanted_mb:
            words = f"{free_mb:,.0f} MB are free in the scratch folder, {wanted_mb:,.0f} wanted"
            raise TargetFault("scratch", f"{self.name}: {words}", REMEDY["scratch"])

    def distrust(self) -> None:
        """The next command looks at the machine again, however lately it was well."""
        if self._healthy is not None:
            self._healthy.forget(self.place)

    def _known_well(self) -> FoundWell | None:
        known = self._healthy.fresh(self.place) if self._healthy else None
        boot_id = self.greeting.boot_id if self.greeting else ""
        return known if known and boot_id and known.boot_id == boot_id else None

    @property
    def is_linked(self) -> bool:
        return self._link is not None and not self._link.lost

    async def link(self) -> AgentLink:
        """The link to the agent, a new one after a loss."""
        async with self._turn:
            if self._link is not None and not self._link.lost:
                return self._link
            if self._link is not None:
                await self._drop()
            self._link = await self.start_agent(await self.connect())
            await self._take_greeting(self._link)
            return self._link

    async def _take_greeting(self, link: AgentLink) -> None:
        self.greeting = await self.greet(link)
        self._greeted_s = time.monotonic()

    async def greet(self, link: AgentLink) -> Greeting:
        return await greet(link, limit_bytes=int(self.place.scratch_limit_mb * MEGABYTE))

    async def connect(self) -> Connection:
        self._connection = await self._connections.get(self._address, self.place.key_file)
        return self._connection

    async def start_agent(self, connection: Connection) -> AgentLink:
        boot = Boot(self.place.scratch or DEFAULT_SCRATCH, self.place.python or DEFAULT_PYTHON)
        mark = MARK + boot.marker.encode() + b" "
        channel = await connection.open_agent_channel(boot.line, mark)
        return await AgentLink.open(channel, boot, who=self.name)

    async def _drop(self) -> None:
        """After a loss neither the agent nor the connection is believed; a new one gets more tries."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        await self._connections.close()
        patience = replace(self._patience, tries=max(_TRIES_AFTER_A_LOSS, self._patience.tries))
        self._connections = Connections(ask=self._ask, patience=patience)

    async def _ask_facts(self, link: AgentLink, smi: str) -> JsonObject:
        fields = {
            "env": dict(self.place.environment), "path_first": self.path_first,
            "smi": smi, "deadline_s": SMI_ANSWERS_WITHIN_S,
        }  # fmt: skip
        return await link.request("facts", fields, _FACTS_WITHIN_S)

    def _found_well(self, told: JsonObject) -> FoundWell:
        """A hung or broken nvidia-smi is a fault: without it the contract would be another machine's."""
        gpus = told["gpus"]
        if not gpus and (told["smi_found"] or self.place.gpu):
            because = told["no_gpus_because"] or "there is no GPU"
            raise TargetFault("gpu", f"{self.name}: {because}", _NO_GPU_HINT)
        assert self.greeting is not None
        return FoundWell(
            self.greeting.boot_id,
            bool(told["smi_found"]),
            tuple(gpus),
            free_mb=self.greeting.free_bytes // MEGABYTE,
            python=self.greeting.python,
        )

    def _take_facts(self, told: JsonObject, found: FoundWell) -> None:
        chosen = chosen_gpu(self.place, found.gpus)
        self.gpu_count = len(found.gpus)
        if chosen is None:
            self._facts = TargetFacts(str(told["cpu"]), str(told["system"]), str(told["toolchain"]))
            return
        self.gpu_uuid = str(chosen["uuid"])
        driver = f"{told['system']}, driver {chosen['driver']}"
        self._facts = TargetFacts(str(chosen["name"]), driver, str(told["toolchain"]))

    async def close(self) -> None:
        """Leave: the agent ends by itself."""
        if self._link is not None:
            link, self._link = self._link, None
            with suppress(TargetFault):
                await link.close()
        await self._connections.close()
