"""A fault of the link: what may be shared, and what only the terminal of the user shows."""

from __future__ import annotations

from core.errors import TargetFault
from core.targets.ssh.stages import REMEDY


class SshFault(TargetFault):
    """`sentence` and `hint` name the target by the user's own word for it and may be shared.

    `details` may hold addresses, user names and file names: for the user's terminal only.
    `passing` says that trying again soon is sensible by itself.
    """

    def __init__(
        self, stage: str, sentence: str, hint: str = "", *, details: str = "", passing: bool = False
    ) -> None:
        super().__init__(stage, sentence, hint or REMEDY[stage])
        self.details = details
        self.passing = passing
