"""Numbers as the screen shows them: fixed digits, units beside them."""

from __future__ import annotations

_SHORT_UNIT = 2  # characters
_COARSE_FROM_MS, _COARSE_MS = 20.0, 5.0


def score_text(value: float | None, unit: str = "") -> str:
    """A score with at least four significant digits, or what tells that there is none."""
    if value is None:
        return "-"
    between = " " if len(unit) > _SHORT_UNIT else ""
    return f"{_digits(value)}{between}{unit}"


def _digits(value: float) -> str:
    size = abs(value)
    if size and not 1e-3 <= size < 1e11:
        return f"{value:.4g}"
    if value == int(value) or size >= 10_000:
        return f"{value:,.0f}"
    return f"{value:,.{1 if size >= 1000 else 2 if size >= 100 else 3}f}"


def clock_text(seconds: float) -> str:
    """Elapsed time: 0:41, 12:05, 1:02:03."""
    whole = max(0, int(seconds))
    minutes, seconds_left = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours}:{minutes_left:02}:{seconds_left:02}" if hours else f"{minutes}:{seconds_left:02}"


def span_text(seconds: float) -> str:
    """A length of time in one or two units: 41s, 6m10s, 2h05m."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s" if seconds >= 10 or seconds == whole else f"{seconds:.1f}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02}m"


def count_text(count: int) -> str:
    return f"{count:,}"


def round_trip_text(ms: float) -> str:
    """Milliseconds of a round trip, in steps so wide that its usual wobble changes nothing."""
    if ms < 0.5:
        return "<1"
    return str(rounded(ms, _COARSE_MS if ms > _COARSE_FROM_MS else 1.0))


def rounded(value: float | None, step: float) -> int | None:
    """To the next multiple of `step`, so that small changes repaint nothing."""
    return None if value is None else int(round(value / step) * step)
