"""A net under forked trials: one that ends badly is run once more from nothing before that counts.

A fork is meant to be what a process from nothing is. Where it is not, a good candidate would be given up
for a fault that is ours; so what a forked trial says is taken only when it says `ok`, or ran out of time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.targets.job import Job, Outcome
from core.words import Status

_COUNTS = frozenset({Status.OK, Status.TIMEOUT, Status.CANCELLED})
_SAYS_NOTHING = frozenset({Status.CANCELLED, Status.INFRA})  # of the trial before
_STOPPED = "prefork: a forked trial ended as {forked}, from nothing as {status}: trials start from nothing"


class CrossCheck:
    """Of one target; it stops forking for good once a fork ended otherwise than the trial from nothing."""

    def __init__(self) -> None:
        self._may_fork = True

    async def run(self, job: Job, once: Callable[[Job], Awaitable[Outcome]]) -> Outcome:
        """The outcome of the job that counts; `once` runs it one time, forked when it says `prefork`."""
        cold = replace(job, prefork=())
        outcome = await once(job if self._may_fork else cold)
        if not outcome.forked or outcome.status in _COUNTS:
            return outcome
        again = await once(cold)
        if again.status is outcome.status or {again.status, outcome.status} & _SAYS_NOTHING:
            return again
        stopped, self._may_fork = self._may_fork, False
        note = _STOPPED.format(forked=outcome.status.value, status=again.status.value)
        return replace(again, notes=(*again.notes, note)) if stopped else again
