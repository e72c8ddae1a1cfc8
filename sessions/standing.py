"""What a best is worth. Apart from the other reports, so that looking at the history imports no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.measure.anchor import Anchor
from core.records import Checkpoint
from sessions.checkpoints import CheckpointRows

if TYPE_CHECKING:
    from sessions.store import SessionStore


def standing_score(store: CheckpointRows, best: Checkpoint) -> float | None:
    """The best's long-run value: the median of what its last processes showed, else its checkpoint's."""
    values = store.anchor_values(best.contract_id, best.id)
    return Anchor(tuple(values)).value if values else best.anchor


def scores_of_best(store: SessionStore, best: Checkpoint, decide: str) -> dict[str, float]:
    """The best's score by mode: its long-run value in the deciding one, its median in the others."""
    scores = store.medians(best.contract_id, best.id)
    value = standing_score(store, best)
    if value is not None:
        scores[decide] = value
    return scores
