"""A fault of the link: what may be shared, and what only the terminal of the user shows."""

from __future__ import annotations

from core.errors import TargetFault
from core.targets.ssh.stages import REMEDY
from core.targets.texts import plain

_LONGEST_DETAILS = 2000


class SshFault(TargetFault):
    """`sentence` and `hint` name the target by the user's own word for it and may be shared.

    `details` may hold addresses, user names and file names: for the user's terminal only.
    What the other side wrote comes without control characters. `passing` says that trying again soon is
    sensible by itself.
    """

    def __init__(
        self, stage: str, sentence: str, hint: str = "", *, details: str = "", passing: bool = False
    ) -> None:
        super().__init__(stage, plain(sentence), hint or REMEDY[stage])
        self.details = plain(details, _LONGEST_DETAILS)
        self.passing = passing
        self.passed_ms: dict[str, float] = {}  # of the stages before it, where they were told apart
