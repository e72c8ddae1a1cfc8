"""Work that may take long or hang, done in a child process while the agent goes on answering.

Part of the agent's bundle: standard library only, Python 3.8's syntax.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from core.targets.ssh.wire import Fault, Json
    from core.targets.watchdog import PR_SET_PDEATHSIG, prctl
else:
    from watchdog import PR_SET_PDEATHSIG, prctl
    from wire import Fault


def fault_answer(fault: Fault) -> Json:
    return {"fault": {"stage": fault.stage, "sentence": fault.sentence, "hint": fault.hint}}


class Errand:
    """A forked child that works out one answer; it is ended, not waited for, when it is late."""

    def __init__(self, request_id: int, work: Callable[[], Json], deadline_s: float, what: str) -> None:
        self.request_id = request_id
        self.until = time.monotonic() + deadline_s
        self.late = Fault("lost", f"{what} took longer than {deadline_s:g} s on the remote machine")
        self.read = bytearray()
        self.descriptor, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _child(work, write)
        os.close(write)

    def listen(self) -> Json | None:
        """The answer once it is whole, None before."""
        chunk = os.read(self.descriptor, 1 << 16)
        self.read += chunk
        if chunk:
            return None
        try:
            answer: Json = json.loads(self.read)
        except ValueError:
            answer = fault_answer(Fault("lost", "a helper process on the remote machine was ended"))
        return answer

    def end(self) -> None:
        os.close(self.descriptor)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def _child(work: Callable[[], Json], write: int) -> NoReturn:
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        answer = json.dumps(_answer(work)).encode()
        while answer:
            answer = answer[os.write(write, answer) :]
    finally:
        os._exit(0)


def _answer(work: Callable[[], Json]) -> Json:
    try:
        return work()
    except Fault as fault:
        return fault_answer(fault)
    except Exception as error:
        return fault_answer(Fault("lost", f"the agent failed: {type(error).__name__}: {error}"[:400]))
