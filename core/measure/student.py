"""Student's t from scipy.special, imported on first use: scipy.stats alone costs a second of start-up."""

from __future__ import annotations


def t_cdf(nu: float, t: float) -> float:
    """P(T <= t) for T with `nu` degrees of freedom; `nu` need not be whole."""
    from scipy.special import stdtr

    return float(stdtr(nu, t))


def t_quantile(nu: float, level: float) -> float:
    """The t with P(T <= t) = `level`."""
    from scipy.special import stdtrit

    return float(stdtrit(nu, level))
