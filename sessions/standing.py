"""What a best is worth. Apart from the other reports, so that looking at the history imports no engine."""

from __future__ import annotations

from core.measure.anchor import Anchor
from core.records import Checkpoint
from sessions.checkpoints import CheckpointRows


def standing_score(store: CheckpointRows, best: Checkpoint) -> float | None:
    """The best's long-run value: the median of what its last processes showed, else its checkpoint's."""
    values = store.anchor_values(best.contract_id, best.id)
    return Anchor(tuple(values)).value if values else best.anchor
