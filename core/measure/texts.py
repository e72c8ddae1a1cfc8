"""Verdicts and warnings in words for people; every figure is a fraction turned into per cent."""

from __future__ import annotations

import math

from core.measure.anchor import Anchor
from core.measure.decision import Decision
from core.measure.evidence import ProcessEvidence
from core.measure.floor import Floor, Prior
from core.measure.reading import Reading, degrees_of_freedom
from core.measure.rule import Rule
from core.measure.student import t_quantile

NOISY_ABOVE = 0.02  # of log time, a process; above it 2 % better is missed more often than not
SHOWN_WITH = 0.80
QUIET_REMEDY = "keep other work off the machine, lock its clocks where you can, or use the timing file"


def percent(fraction: float) -> str:
    """`2.1 %`, with a true minus."""
    return f"{_figure(fraction)} %"


def _figure(fraction: float) -> str:
    text = f"{100.0 * fraction:.1f}"
    return "0.0" if float(text) == 0.0 else text.replace("-", "−")


def exact_percent(fraction: float) -> str:
    """As `percent`, but what one decimal would round to 0 keeps its first digit: every cycle counts."""
    points = abs(100.0 * fraction)
    if points == 0.0 or points >= 0.05:
        return percent(fraction)
    return f"{'−' if fraction < 0 else ''}{points:.{-math.floor(math.log10(points))}f} %"


def verdict_text(decision: Decision) -> str:
    """One line: verdict, gain, interval, how sure, and what it rests on."""
    if decision.exact:
        return _exact_text(decision)
    head = _HEADS[decision.reason](decision)
    return f"{head}{_second_channel(decision)}"


def _exact_text(decision: Decision) -> str:
    if decision.verdict == "same":
        return "same score, exact (deterministic)"
    text = f"{decision.verdict} by {exact_percent(abs(decision.gain))}, exact (deterministic)"
    return text + _blocked(decision)


def _faster(decision: Decision) -> str:
    reading = decision.deciding
    text = f"faster by {_estimate(reading)}, at least {percent(reading.at_least)}, {_spent(decision)}"
    return text + _blocked(decision)


def _slower(decision: Decision) -> str:
    low, high = decision.interval
    span = f"({_figure(-high)} to {_figure(-low)})"
    return f"slower by {percent(-decision.gain)} {span}, {_spent(decision)}"


def _same(decision: Decision) -> str:
    within = percent(decision.rule.min_gain)
    return f"same: {_estimate(decision.deciding)}, within ±{within}, {_spent(decision)}"


def _no_gain(decision: Decision) -> str:
    text = f"no worthwhile gain: {_estimate(decision.deciding)}, {_spent(decision)}"
    if decision.processes == 1:
        return f"{text}, provisional"
    if decision.rule.seek_restore and decision.restore_open:
        text += f"; a loss of {percent(decision.rule.min_gain)} or more is not excluded"
    return text


def _unclear(decision: Decision) -> str:
    bound = percent(decision.interval[1])
    estimate = _estimate(decision.deciding)
    return f"unclear: {estimate} after {_spent(decision)}; a gain above {bound} is unlikely"


def _not_deterministic(decision: Decision) -> str:
    return (
        "unclear: declared deterministic, but scores differ from run to run; "
        "take `deterministic` out of kerneldeck.toml"
    )


_HEADS = {
    "faster": _faster,
    "case_loses": _faster,
    "slower": _slower,
    "same": _same,
    "no_worthwhile_gain": _no_gain,
    "looks_spent": _unclear,
    "not_deterministic": _not_deterministic,
}


def _estimate(reading: Reading) -> str:
    """`2.1 % (1.2 to 3.0)`: the gain and its 95 % interval."""
    low, high = reading.interval
    return f"{percent(reading.gain)} ({_figure(low)} to {_figure(high)})"


def _spent(decision: Decision) -> str:
    count = decision.processes
    if decision.objective.shape == "process_an_arm":
        return f"{count} round{'s' if count > 1 else ''} of 3 processes"
    return f"{count} process{'es' if count > 1 else ''}"


def _blocked(decision: Decision) -> str:
    if not decision.blocked:
        return ""
    worst = {line.name: line for line in sorted(decision.cases, key=lambda line: -line.gain)}
    losses = (
        f"{name} loses {percent(-worst[name].gain)} (gate {percent(worst[name].gate)})"
        for name in decision.blocked
    )
    return f"; not accepted: {', '.join(losses)}"


def _second_channel(decision: Decision) -> str:
    """With a proxy: which kind decided, and what the other one shows."""
    if decision.proxy is None:
        return ""
    other = decision.objective if decision.deciding is decision.proxy else decision.proxy
    return f" [by {decision.by}; {other.kind}: {_estimate(other)}]"


def process_text(decision: Decision) -> str:
    """The gains of the single processes and the noise, for the line below the verdict."""
    gains = " ".join(_figure(gain) for gain in decision.deciding.process_gains)
    if decision.exact:
        return f"processes: {gains} %"
    return f"processes: {gains} %; noise {percent(decision.noise)} a process"


def _score(value: float) -> str:
    """Four significant figures, and never a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def provisional_text(value: float, unit: str) -> str:
    """A score of one process, which nobody should compare."""
    return f"{_score(value)} {unit}, provisional: one process, do not compare"


def score_text(anchor: Anchor, decision: Decision, unit: str) -> str:
    """The candidate's anchored score beside the best's: `102.1 µs (best 104.3 µs, anchored on 20
    processes)`."""
    best = anchor.value
    estimate = anchor.estimate(decision.objective.m, decision.objective.direction)
    if best is None or estimate is None:
        return f"no anchored {unit} yet"
    count = len(anchor.values)
    plural = "es" if count > 1 else ""
    shown, standing = (f"{_score(value)} {unit}".strip() for value in (estimate, best))
    return f"{shown} (best {standing}, anchored on {count} process{plural})"


def smallest_shown(rule: Rule, floor: Floor | Prior, processes: int | None = None) -> float:
    """The gain (log time) that this noise lets the gate show in four of five decisions.

    (t(1 − level, ν) + t(0.80, ν)) · s0 / √P after P processes (default: the last look).
    """
    prior = floor if isinstance(floor, Prior) else floor.prior()
    count = processes or rule.last_look
    nu = degrees_of_freedom(prior, count)
    s = max(math.sqrt(prior.variance), rule.least_noise)
    return (t_quantile(nu, 1 - rule.level) + t_quantile(nu, SHOWN_WITH)) * s / math.sqrt(count)


def reach_text(rule: Rule, floor: Floor | Prior) -> str:
    """What this benchmark can show at all: `this benchmark shows 1.1 % or more in 8 processes`."""
    shown = -math.expm1(-smallest_shown(rule, floor))
    return f"this benchmark shows {percent(shown)} or more in {rule.last_look} processes"


def noise_warning(decision: Decision) -> str | None:
    """A warning when the machine is too noisy for small gains, naming threshold and remedy."""
    if decision.exact or decision.noise <= NOISY_ABOVE:
        return None
    measured = Prior(decision.noise**2, decision.deciding.prior.dof, 1.0, 1.0)
    reach = reach_text(decision.rule, measured)
    return (
        f"noise is {percent(decision.noise)} a process, above {percent(NOISY_ABOVE)}: {reach}; {QUIET_REMEDY}"
    )


def unstable_text(evidence: ProcessEvidence, rule: Rule) -> str:
    """Why a process cannot count, naming threshold and remedy."""
    dropped = evidence.rounds_discarded
    total = evidence.rounds_kept + dropped
    return (
        f"unstable: {dropped} of {total} rounds thrown away (throttled, or clocks over "
        f"10 % off), above {percent(rule.max_discarded)}; {QUIET_REMEDY}"
    )
