"""The wealth of a mixture of bets: what one gains who bets that the mean of costs exceeds a bound.

A bet of size b against "the mean cost is at most m" multiplies its capital by 1 - b + b x/m at a cost x. The
capital is shared out over bets of many sizes before any cost is seen; the wealth is their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_legendre

Array = NDArray[np.float64]

NODES = 16
# The share put on b = 1, the best bet when costs vary so little that hardly any lies below the bound.
WHOLE_SHARE = 0.2
# Testing a slightly larger mean than the certified one is valid, and spares every formula a division by 0.
SMALLEST_BOUND = 1e-9


@dataclass(frozen=True)
class Bets:
    """Sizes of the bets and the share of the capital behind each.

    Examples
    --------
    >>> bets = Bets.for_costs(binary=True)
    >>> bets.sizes.size, float(bets.shares.sum().round(12)), float((bets.shares * bets.sizes).sum().round(12))
    (16, 1.0, 0.5)
    """

    sizes: Array
    shares: Array

    @classmethod
    def for_costs(cls, *, binary: bool) -> Bets:
        """Return the uniform mixture over [0, 1]; unless costs are binary, with a share on the whole capital.

        Gauss-Legendre nodes in the cube root of b are closer together near 0, where small shifts have their
        best bets: with 16 of them no shift above 1e-6 is out of reach.
        """
        points, weights = roots_legendre(NODES)
        root = (points + 1) / 2
        sizes, shares = root**3, 1.5 * weights * root**2
        if not binary:
            sizes, shares = np.append(sizes, 1.0), np.append(shares * (1 - WHOLE_SHARE), WHOLE_SHARE)
        return cls(sizes, shares / shares.sum())

    def log_factors(self, bound: float) -> tuple[Array, Array]:
        """Return the logarithms of what a cost of 0 and a cost of 1 do to each bet's capital."""
        with np.errstate(divide="ignore"):  # the whole capital is lost at a cost of 0
            return np.log1p(-self.sizes), np.log1p(self.sizes * (1 / bound - 1))

    def log_wealth(self, points: Array, weights: Array, mean: float) -> float:
        """Return the log wealth against `mean` after costs at `points`, `weights` of them at each."""
        with np.errstate(divide="ignore"):
            capitals = np.log((1 - self.sizes) + np.outer(points / mean, self.sizes))
        return log_sum(weights @ capitals + np.log(self.shares))


def log_sum(logs: Array) -> float:
    """Return the logarithm of a sum from the logarithms of its terms.

    Examples
    --------
    >>> round(log_sum(np.log([1.0, 2.0, 3.0])), 6) == round(math.log(6), 6)
    True
    """
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
