"""Bests of other contracts: not comparable with this one, and never forgotten."""

from __future__ import annotations

from core.words import JsonObject
from sessions.standing import standing_score
from sessions.store import SessionStore


def other_bests(store: SessionStore, contract_id: str, contract: JsonObject) -> list[JsonObject]:
    """The best of every other contract, with what its contract differs in; newest first."""
    found: list[JsonObject] = []
    own = store.best(contract_id)
    for other in store.contracts():
        best = store.best(other.id) if other.id != contract_id else None
        if best is not None and (own is None or own.id != best.id):
            found.append(
                {
                    "contract": other.id,
                    "checkpoint": best.id,
                    "score": standing_score(store, best),
                    "differs": _difference(other.description, contract),
                }
            )
    return found


def _difference(before: JsonObject, now: JsonObject) -> list[str]:
    changed = [key for key in now if key != "target" and before.get(key) != now[key]]
    old_target = before.get("target") or {}
    return changed + [key for key, value in now["target"].items() if old_target.get(key) != value]
