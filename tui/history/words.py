"""Figures and times as words for a row."""

from __future__ import annotations

import time

from core.words import JsonObject, Status

_NO_FAULT_OF_THE_CANDIDATE = frozenset({Status.CANCELLED, Status.INFRA, Status.UNSTABLE})
_VERDICT_ROLES = {"faster": "best", "slower": "bad", "same": "", "unclear": "warn"}


def state_word(status: Status) -> str:
    return "COMPILE" if status is Status.COMPILE_ERROR else status.upper()


def state_role(status: Status) -> str:
    if status is Status.OK:
        return "ok"
    return "warn" if status in _NO_FAULT_OF_THE_CANDIDATE else "bad"


def verdict_role(verdict: str) -> str:
    return _VERDICT_ROLES.get(verdict, "")


def signed_percent(fraction: float, digits: int = 1) -> str:
    """`-2.1%`, `+0.0%`: the sign is always there."""
    text = f"{100.0 * fraction:+.{digits}f}"
    return f"{text.replace('-', '+') if float(text) == 0.0 else text}%"


def change_word(fraction: float, lower_is_better: bool) -> str:
    """Whether a score that differs from the best's by this fraction is better; not whether that is shown."""
    if fraction == 0.0:
        return "equal"
    return "better" if (fraction < 0.0) == lower_is_better else "worse"


def clock_text(when_s: float, now_s: float) -> str:
    """The time of day today, else the month and day."""
    when, now = time.localtime(when_s), time.localtime(now_s)
    today = when.tm_year == now.tm_year and when.tm_yday == now.tm_yday
    return time.strftime("%H:%M" if today else "%m-%d", when)


def date_text(when_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when_s))


def setting(value: object) -> str:
    """A knob's value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_text(overlay: JsonObject) -> str:
    return " ".join(f"{name}={setting(value)}" for name, value in overlay.items())
