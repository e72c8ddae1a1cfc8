"""The gate: is the candidate better than the best? Pure: the same evidence always gives the same answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from core.measure.case_gate import CaseLine, case_lines
from core.measure.decision import Decision, Reason, Verdict
from core.measure.errors import MixedEvidence, RuleFault
from core.measure.exact import decide_exactly, looks_exact
from core.measure.reading import Channel, Reading, check_alike, degrees_of_freedom, read
from core.measure.rule import Rule
from core.measure.student import t_quantile


def decide(rule: Rule, objective: Channel, proxy: Channel | None = None) -> Decision | None:
    """The decision after these processes, or None when one more process is needed.

    Call it after every process with all evidence so far and the floor as it was at the first. It speaks
    only at the looks (and once before, to reject, after the first process), and the first look that
    speaks is the decision: later processes are ignored. At a look, level = alpha·f·k^-0.9/channels:

    - p < level on the objective or the proxy, the objective not slower -> **faster**, accepted unless a
      case loses more than its gate (when that loss is not sure yet, the next look decides);
    - m − t(0.80, ν)·se > −min_gain on every channel (0.90 after one process; see `_Look.futile` for an
      objective beside a slower proxy), or the objective slower -> rejected: **slower** when the mirrored
      p < level, **same** when the 95 % interval lies within ±min_gain, else no worthwhile gain (verdict
      `unclear`, reason `no_worthwhile_gain`);
    - after the last look -> **unclear**.

    Restore: mirrored p < restore_alpha/looks, with the cautious c, and m >= min_gain, on the objective.
    With `seek_restore` the first process decides nothing, and a rejection waits for the next look while
    a restore is neither shown nor past hope: past hope is m + t(0.80, ν)·se below both min_gain and what
    the last look could show, that is below max(min_gain, t(1 − restore_alpha/looks, ν_last)·se_last).
    Waiting adds no look, so neither the chance of a false accept (alpha, over all looks) nor that of a
    false restore (restore_alpha, over all looks) grows beyond its name.

    Raises EvidenceFault for an unstable process, MixedEvidence for processes or channels that do not fit
    each other, RuleFault for a proxy under a rule for one channel.
    """
    _check(rule, objective, proxy)
    for count in range(1, len(objective.evidence) + 1):
        decision = _after(rule, objective.first(count), proxy.first(count) if proxy else None)
        if decision is not None:
            return decision
    return None


@dataclass(frozen=True, slots=True)
class _Look:
    """The readings at one look, and what they say."""

    rule: Rule
    objective: Reading
    proxy: Reading | None
    lines: tuple[CaseLine, ...]

    @property
    def readings(self) -> tuple[Reading, ...]:
        return (self.objective,) if self.proxy is None else (self.objective, self.proxy)

    @property
    def last(self) -> bool:
        return len(self.objective.d) == self.rule.last_look

    def futile(self, confidence: float) -> bool:
        """No channel can be expected to gain min_gain.

        Beside a proxy that is shown slower, an objective is given up already when even its largest
        plausible gain could not be shown at the last look: it is too noisy to contradict the proxy.
        """
        limits = [self.rule.min_gain for _ in self.readings]
        if self.proxy is not None and self.slower(self.proxy):
            limits[0] = max(limits[0], self.shown_last(self.rule.level, self.objective.s))
        return all(
            one.optimistic(confidence) > -limit for one, limit in zip(self.readings, limits, strict=True)
        )

    def slower(self, reading: Reading) -> bool:
        return reading.p_worse < self.rule.level or (reading is self.objective and self.restore)

    def same(self, reading: Reading) -> bool:
        return -self.rule.min_gain < reading.low and reading.high < self.rule.min_gain

    @property
    def winner(self) -> Reading | None:
        """The channel that shows the candidate faster while the objective is not slower."""
        if self.slower(self.objective):
            return None
        return next((one for one in self.readings if one.p < self.rule.level), None)

    @property
    def restore(self) -> bool:
        one = self.objective
        return one.p_restore < self.rule.restore_level and one.m >= self.rule.min_gain

    @property
    def restore_past_hope(self) -> bool:
        """Even the largest plausible loss could not be shown at the last look, or is not worth a restore."""
        rule, one = self.rule, self.objective
        plausible = one.m + t_quantile(one.nu, rule.futility) * one.s_restore / math.sqrt(len(one.d))
        return plausible < max(rule.min_gain, self.shown_last(rule.restore_level, one.s_restore))

    def shown_last(self, level: float, noise: float) -> float:
        """The difference of the objective that the last look shows at `level` with this noise a process."""
        nu = degrees_of_freedom(self.objective.prior, self.rule.last_look)
        return t_quantile(nu, 1 - level) * noise / math.sqrt(self.rule.last_look)

    @property
    def loss_excluded(self) -> bool:
        return self.objective.pessimistic(self.rule.futility) < self.rule.min_gain

    @property
    def waits_for_restore(self) -> bool:
        sought = self.rule.seek_restore and not self.last
        return sought and not self.restore and not self.restore_past_hope


def _after(rule: Rule, objective: Channel, proxy: Channel | None) -> Decision | None:
    """What is said after exactly these processes."""
    count = len(objective.evidence)
    if looks_exact(rule, objective.evidence):
        return decide_exactly(rule, objective)
    if count != 1 and count not in rule.looks:
        return None
    lines = case_lines(rule, objective) + (case_lines(rule, proxy) if proxy else ())
    look = _Look(rule, read(rule, objective), read(rule, proxy) if proxy else None, lines)
    return _first_process(look) if count == 1 else _at_look(look)


def _first_process(look: _Look) -> Decision | None:
    """After one process: rejected as not worth it, or None; never slower, never accepted."""
    stop = look.rule.first_stop
    if stop == 0.0 or look.rule.seek_restore or not look.futile(stop):
        return None
    decision = _decision(look, "unclear", "no_worthwhile_gain", look.objective)
    return replace(decision, restore=False, restore_open=not look.loss_excluded)


def _at_look(look: _Look) -> Decision | None:
    if look.winner is not None:
        return _accept(look, look.winner)
    if look.slower(look.objective) or look.futile(look.rule.futility):
        return None if look.waits_for_restore else _reject(look)
    return _decision(look, "unclear", "looks_spent", look.objective) if look.last else None


def _accept(look: _Look, winner: Reading) -> Decision | None:
    """Accept, block for a losing case, or wait while that loss is not sure.

    The winning channel's cases block by their measured loss; those of an objective that did not win are
    too noisy for that (else the objective had decided) and block when the loss is shown.
    """
    losing = [line for line in look.lines if line.shown or (line.over and line.kind == winner.kind)]
    if not losing:
        return _decision(look, "faster", "faster", winner)
    if not look.last and not any(line.shown for line in losing):
        return None
    blocked = tuple(dict.fromkeys(line.name for line in losing))
    return replace(_decision(look, "faster", "case_loses", winner), blocked=blocked)


def _reject(look: _Look) -> Decision:
    """Rejected with the objective's own word where it has one, else the proxy's `slower`."""
    if look.slower(look.objective):
        return _decision(look, "slower", "slower", look.objective)
    if look.same(look.objective):
        return _decision(look, "same", "same", look.objective)
    if look.proxy is not None and look.slower(look.proxy):
        return _decision(look, "slower", "slower", look.proxy)
    return _decision(look, "unclear", "no_worthwhile_gain", look.objective)


def _decision(look: _Look, verdict: Verdict, reason: Reason, by: Reading) -> Decision:
    return Decision(
        verdict=verdict,
        accepted=reason == "faster",
        reason=reason,
        by=by.kind,
        objective=look.objective,
        proxy=look.proxy,
        cases=look.lines,
        blocked=(),
        restore=look.restore,
        restore_open=not look.restore and not look.loss_excluded,
        exact=False,
        rule=look.rule,
    )


def _check(rule: Rule, objective: Channel, proxy: Channel | None) -> None:
    for channel in (objective, *((proxy,) if proxy else ())):
        check_alike(channel.evidence)
    if proxy is None:
        return
    if rule.channels != 2:
        raise RuleFault("a proxy was given to a rule for one channel", "use channels=2: both may win")
    if len(proxy.evidence) != len(objective.evidence):
        raise MixedEvidence(
            f"{len(objective.evidence)} processes of the objective, {len(proxy.evidence)} of the proxy"
        )
    if objective.evidence and proxy.evidence[0].kind == objective.evidence[0].kind:
        raise MixedEvidence(f"objective and proxy are both {proxy.evidence[0].kind!r}")
