"""The client's link to an agent: the handshake, requests with deadlines, and how a broken link shows."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from core.errors import TargetFault
from core.targets.ssh.bundle import MARK, Boot, bundle
from core.targets.ssh.frames import ByteChannel, FrameChannel, NoFrame
from core.targets.texts import plain
from core.words import STAGES, JsonObject

MARKER_WITHIN_S = 15.0
PING_EVERY_S = 5.0
CLOSED_WITHIN_S = 5.0
_MOST_NOISE_BYTES = 1 << 20
_SHOWN_NOISE = 300
_OLDEST_PYTHON = (3, 8)
_TRIALS = ("run", "attach")
_AGAIN = "run it again: no trial was begun"

PartSink = Callable[[str, bytes], None]
NoteSink = Callable[[JsonObject], None]


@dataclass(slots=True)
class _Waiting:
    answer: asyncio.Future[JsonObject]
    on_part: PartSink | None
    on_note: NoteSink | None


class AgentLink:
    """Requests to one agent; many may be under way. Any request may end in a TargetFault.

    Once the link is lost, every request under way and every later one is a TargetFault of stage `lost`.
    """

    def __init__(self, channel: FrameChannel, who: str) -> None:
        self._channel = channel
        self._who = who
        self._may_run = False  # a trial there
        self._ids = itertools.count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._lost = ""
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._ping())]

    @classmethod
    async def open(
        cls, channel: ByteChannel, boot: Boot, within_s: float = MARKER_WITHIN_S, who: str = "the machine"
    ) -> AgentLink:
        """Wait for the marker, then send what the agent lacks. Without it a TargetFault of stage `shell`.

        `who` is what sentences call the machine.
        """
        noise = bytearray()
        try:
            async with asyncio.timeout(within_s):
                told, rest = await _marker(channel, boot, noise)
                if _python_of(told) < _OLDEST_PYTHON:
                    raise TargetFault(
                        "shell", f"python3 there is {told[0]}, 3.8 or newer is needed",
                        "name a newer interpreter as this target's `python`",
                    )  # fmt: skip
                if told[1] == "need":
                    channel.write(bundle())
                    await channel.drain()
        except TimeoutError:
            channel.close()
            raise _no_marker(f"within {within_s:g} s", bytes(noise)) from None
        except (OSError, TargetFault) as error:
            channel.close()
            if isinstance(error, TargetFault):
                raise
            words = f"{who}: the connection broke while the agent was started: {error}"
            raise TargetFault("lost", words, _AGAIN) from None
        return cls(FrameChannel(channel, rest), who)

    @property
    def lost(self) -> str:
        """Why there is no link any more, "" while there is."""
        return self._lost

    async def request(
        self,
        word: str,
        fields: JsonObject,
        deadline_s: float,
        *,
        body: bytes = b"",
        on_part: PartSink | None = None,
        on_note: NoteSink | None = None,
    ) -> JsonObject:
        """The answer. TargetFault: the agent's own, or `lost` when there is none in time.

        An OSError is `on_part`'s own.
        """
        number, answer = self.begin(on_part, on_note)
        try:
            async with asyncio.timeout(deadline_s):
                await self.send(number, word, fields, body)
                return await answer
        except TimeoutError:
            raise TargetFault(
                "lost", f"the agent did not answer ({word}) within {deadline_s:g} s", "is the link up?"
            ) from None
        finally:
            self.forget(number)

    def begin(
        self, on_part: PartSink | None = None, on_note: NoteSink | None = None
    ) -> tuple[int, asyncio.Future[JsonObject]]:
        """A request's number and its answer to come, for one that is sent in several frames."""
        number = next(self._ids)
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = _Waiting(answer, on_part, on_note)
        return number, answer

    def forget(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.cancel()

    async def send(
        self, number: int, word: str, fields: JsonObject, body: bytes = b"", deflate: bool = False
    ) -> None:
        """One frame of a request; an answer that has come already is the better reason for a broken pipe."""
        if self._lost:
            raise self._fault()
        self._may_run = self._may_run or word in _TRIALS
        try:
            await self._channel.send({**fields, "op": word, "id": number}, body, deflate)
        except OSError as error:
            self._end(f"the connection broke: {error}")
            raise self._fault() from None

    async def tell(self, word: str, fields: JsonObject) -> None:
        """A request whose answer does not matter."""
        await self.send(next(self._ids), word, fields)

    async def _read(self) -> None:
        """Hand frames to whoever waits; at the end, of whatever kind, tell them."""
        reason = "the connection ended"
        try:
            while (received := await self._channel.receive()) is not None:
                self._hand_out(*received)
        except NoFrame as error:
            reason = f"the agent sent what is no frame: {error}"
        except OSError as error:
            reason = f"the connection broke: {error}"
        finally:
            self._end(reason)

    def _hand_out(self, header: JsonObject, body: bytes) -> None:
        number = header.get("re")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.answer.done():
            return
        if isinstance(header.get("note"), dict):
            if waiting.on_note is not None:
                waiting.on_note(header["note"])
        elif "part" in header:
            _keep_part(waiting, str(header["part"]), body)
        elif "fault" in header:
            waiting.answer.set_exception(_fault_in(header["fault"]))
        else:
            waiting.answer.set_result(header)

    def _end(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._channel.close()
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(self._fault())

    def _fault(self) -> TargetFault:
        hint = "a trial that runs there goes on; its result is kept" if self._may_run else _AGAIN
        return TargetFault("lost", plain(f"{self._who}: {self._lost}"), hint)

    async def _ping(self) -> None:
        """The agent ends when its client falls silent."""
        with suppress(TargetFault):
            while not self._lost:
                await asyncio.sleep(PING_EVERY_S)
                await self.tell("ping", {})

    async def close(self) -> None:
        """The agent ends by itself; trials that run go on until their lease is over."""
        self._end("the link was closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=CLOSED_WITHIN_S)
        for waiting in self._waiting.values():
            with suppress(TargetFault, asyncio.CancelledError):
                waiting.answer.exception()


def _keep_part(waiting: _Waiting, name: str, body: bytes) -> None:
    """A disk of ours that does not take it is no fault of the link: the request ends with the OSError."""
    try:
        if waiting.on_part is not None:
            waiting.on_part(name, body)
    except OSError as error:
        waiting.answer.set_exception(error)


async def _marker(channel: ByteChannel, boot: Boot, read: bytearray) -> tuple[list[str], bytes]:
    """The words on the marker's line, and what came after it; `read` gets all that was read."""
    mark = MARK + boot.marker.encode() + b" "
    while True:
        before, found, after = bytes(read).partition(mark)
        line, newline, rest = after.partition(b"\n")
        if found and newline:
            words = line.decode("utf-8", "replace").split()
            if len(words) != 2:
                raise _no_marker("in the form it should have", before)
            return words, rest
        chunk = await channel.read(1 << 16)
        if not chunk:
            raise _no_marker("before it ended", bytes(read))
        read += chunk
        if len(read) > _MOST_NOISE_BYTES:
            raise _no_marker("in its first megabyte", bytes(read))


def _python_of(told: list[str]) -> tuple[int, ...]:
    return tuple(int(part) for part in told[0].split(".") if part.isdigit())


def _no_marker(when: str, noise: bytes) -> TargetFault:
    said = plain(noise.decode("utf-8", "replace"), _SHOWN_NOISE)
    printed = f"; it printed: {said}" if said else ""
    return TargetFault(
        "shell",
        f"the remote shell did not start the agent {when}{printed}",
        "log in by ssh: is there a python3, and do start-up files exit, read input or start another shell?",
    )


def _fault_in(told: object) -> TargetFault:
    """A fault as the agent tells it; what comes from there is not taken for granted."""
    fault = told if isinstance(told, dict) else {}
    stage = fault.get("stage")
    sentence = plain(fault.get("sentence") or "the agent says no, and not why")
    return TargetFault(stage if stage in STAGES else "lost", sentence, plain(fault.get("hint") or ""))
