"""Numbers as people read them."""

from __future__ import annotations

_LARGE, _EXACT = 1e5, 1e15


def figure(value: float) -> str:
    """A score for people: whole ones whole and with separators, others to six digits; 8,348,345 and 812.4.

    No power of ten but for what is tiny or beyond 10^15.
    """
    size = abs(value)
    whole = float(value).is_integer() or size >= _LARGE
    return f"{value:,.0f}" if whole and size < _EXACT else f"{value:.6g}"
