"""How long each step of a login may take, and how often it is tried."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds of one way in: seconds for each step, and tries where waiting a little can help.

    Only a refused or dropped connection is tried again, after waits that double, each shortened by up to
    half at random (by `seed`), so that many clients do not come back at the same moment.
    """

    connect_s: float = 10.0
    login_s: float = 30.0
    session_s: float = 15.0
    tries: int = 3
    first_wait_s: float = 0.15
    longest_wait_s: float = 10.0
    seed: int | None = None

    def waits_s(self) -> Iterator[float]:
        """The waits between the tries."""
        dice = random.Random(self.seed)
        for number in range(self.tries - 1):
            whole = min(self.longest_wait_s, self.first_wait_s * 2**number)
            yield whole * dice.uniform(0.5, 1.0)
