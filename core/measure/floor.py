"""The learned noise of one machine, clock mode and benchmark: a weak prior, never the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DECAY = 0.98  # a decision's weight falls to half after 34 later ones
MAX_PRIOR_DOF = 4.0  # stored noise never outweighs two processes measured now
LOAD_RATIO = 0.75  # var(d) / var(a) when all loads are independent: (1 + 1/2) / (1 + 1)
INFLATION_UNKNOWN, INFLATION_LEAST, INFLATION_MOST = 1.5, 1.0, 6.0
INFLATION_CAUTIOUS = 3.0  # while c is unknown, before user files are put back: loads half alike
INFLATION_KNOWN_AT = 20.0  # degrees of freedom from which the two variances are worth comparing


@dataclass(frozen=True, slots=True)
class Prior:
    """What a decision takes from a floor, kept with the decision so that it can be recomputed.

    `variance` is s0² of one process's d (log time), `dof` ν0 its weight; `inflation` is c, by how much
    loads in different processes differ more than two loads in one; `cautious_inflation` the same for a
    restore, which does not bet on the usual c before the machine's own is known.
    """

    variance: float
    dof: float
    inflation: float
    cautious_inflation: float


@dataclass(slots=True)
class Floor:
    """Sums over decisions: `ss` of Σ(d−d̄)² with `nu` degrees of freedom, `aa` of a² over `n_aa` processes.

    Log time; starts as one degree of freedom at 1 %. Which machine, clock mode and benchmark a floor
    belongs to is its owner's key.
    """

    ss: float = 0.01**2
    nu: float = 1.0
    aa: float = 0.0
    n_aa: float = 0.0

    @property
    def s0_squared(self) -> float:
        """s0² = SS/nu, the variance of one process's d."""
        return self.ss / self.nu if self.nu > 0 else 0.0

    @property
    def nu0(self) -> float:
        """ν0 = min(4, nu)."""
        return min(MAX_PRIOR_DOF, max(0.0, self.nu))

    @property
    def c(self) -> float:
        """c = clip((SS/nu) / (0.75·aa/n_aa), 1, 6) once nu >= 20, else 1.5."""
        learned = self._learned_c()
        return INFLATION_UNKNOWN if learned is None else learned

    def _learned_c(self) -> float | None:
        loads = LOAD_RATIO * self.aa / self.n_aa if self.n_aa > 0 else 0.0
        if self.nu < INFLATION_KNOWN_AT or loads <= 0:
            return None
        return min(INFLATION_MOST, max(INFLATION_LEAST, self.s0_squared / loads))

    def prior(self) -> Prior:
        learned = self._learned_c()
        return Prior(self.s0_squared, self.nu0, self.c, INFLATION_CAUTIOUS if learned is None else learned)

    def learn(self, d: Sequence[float], a: Sequence[float]) -> Floor:
        """A new floor that also knows a finished decision's processes; older ones decay by 0.98.

        Only measured decisions teach: an exact one has no noise to learn from.
        """
        mean = sum(d) / len(d) if d else 0.0
        return Floor(
            ss=DECAY * self.ss + sum((value - mean) ** 2 for value in d),
            nu=DECAY * self.nu + max(0, len(d) - 1),
            aa=DECAY * self.aa + sum(value**2 for value in a),
            n_aa=DECAY * self.n_aa + len(a),
        )

    def adopt(self, learned: Floor) -> None:
        """Become `learned`, for an owner that holds one floor for a whole run."""
        self.ss, self.nu, self.aa, self.n_aa = learned.ss, learned.nu, learned.aa, learned.n_aa
