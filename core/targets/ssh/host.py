"""The machine behind an SSH target: one connection and one greeted agent, opened anew when they are lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import TargetFault
from core.targets.job import TargetFacts
from core.targets.ssh.address import SCHEME
from core.targets.ssh.bundle import DEFAULT_PYTHON, DEFAULT_SCRATCH, MARK, Boot
from core.targets.ssh.connect import Connections
from core.targets.ssh.link import AgentLink
from core.targets.ssh.patience import Patience
from core.targets.ssh.places import Place
from core.targets.ssh.remote_trials import Greeting, greet
from core.words import JsonObject

if TYPE_CHECKING:
    from core.targets.ssh.connection import Connection
    from core.targets.ssh.host_keys import AskHostKey

SMI = "nvidia-smi"
SMI_ANSWERS_WITHIN_S = 10.0
_FACTS_WITHIN_S = 60.0
_TRIES_AFTER_A_LOSS = 6


def target_name(place: Place) -> str:
    """How records call the place: `ssh:` and the user's own word for it, never its address or key."""
    return place.name if place.is_local or place.name.startswith(SCHEME) else SCHEME + place.name


class SshHost:
    """One target's machine. Whatever keeps it from being used is a TargetFault with its stage."""

    def __init__(
        self, place: Place, *, ask: AskHostKey | None = None, patience: Patience | None = None
    ) -> None:
        if place.address is None:
            raise ValueError(f"{place.name} is no SSH target")
        self.place = place
        self.greeting: Greeting | None = None
        self.gpu_uuid = ""  # whose lock a trial holds; empty without a GPU
        self._address = place.address
        self._patience = patience or Patience()
        self._ask = ask
        self._connections = Connections(ask=ask, patience=self._patience)
        self._connection: Connection | None = None
        self._link: AgentLink | None = None
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
        """Connect, start the agent and learn the machine's facts; nothing of the workspace is sent."""
        try:
            self._take_facts(await self._ask_facts(await self.link()))
        except BaseException:
            await self.close()
            raise

    @property
    def lost_by(self) -> str:
        """Why there is no link any more; empty while there is one."""
        return "it was never opened" if self._link is None else self._link.lost

    async def link(self) -> AgentLink:
        """The link to the agent, a new one after a loss."""
        async with self._turn:
            if self._link is not None and not self._link.lost:
                return self._link
            if self._link is not None:
                await self._drop()
            self._link = await self.start_agent(await self.connect())
            self.greeting = await greet(self._link)
            return self._link

    async def connect(self) -> Connection:
        self._connection = await self._connections.get(self._address, self.place.key_file)
        return self._connection

    async def start_agent(self, connection: Connection) -> AgentLink:
        boot = Boot(self.place.scratch or DEFAULT_SCRATCH, self.place.python or DEFAULT_PYTHON)
        mark = MARK + boot.marker.encode() + b" "
        return await AgentLink.open(await connection.open_agent_channel(boot.line, mark), boot)

    async def _drop(self) -> None:
        """After a loss neither the agent nor the connection is believed; a new one gets more tries."""
        if self._link is not None:
            await self._link.close()
            self._link = None
        await self._connections.close()
        patience = replace(self._patience, tries=max(_TRIES_AFTER_A_LOSS, self._patience.tries))
        self._connections = Connections(ask=self._ask, patience=patience)

    async def _ask_facts(self, link: AgentLink) -> JsonObject:
        fields = {
            "env": dict(self.place.environment), "path_first": self.path_first,
            "smi": SMI, "deadline_s": SMI_ANSWERS_WITHIN_S,
        }  # fmt: skip
        return await link.request("facts", fields, _FACTS_WITHIN_S)

    def _take_facts(self, told: JsonObject) -> None:
        """A hung or broken nvidia-smi is a fault: without it the contract would be another machine's."""
        gpus, wanted = told["gpus"], self.place.gpu
        if not gpus and (told["smi_found"] or wanted):
            hint = "run nvidia-smi there; a machine without a GPU has none, and its target names no gpu"
            raise TargetFault("gpu", f"{self.name}: {told['no_gpus_because'] or 'there is no GPU'}", hint)
        chosen = next((gpu for gpu in gpus if wanted in ("", gpu["index"], gpu["uuid"])), None)
        if gpus and chosen is None:
            known = ", ".join(str(gpu["index"]) for gpu in gpus)
            raise TargetFault("gpu", f"{self.name} has no GPU {wanted}", f"GPUs there: {known}")
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
