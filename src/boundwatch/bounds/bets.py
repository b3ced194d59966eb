"""The wealth of a mixture of bets: what one gains who bets that the mean of costs exceeds a bound.

A bet of size b against "the mean cost is at most m" multiplies its capital by 1 - b + b x/m at a cost x. The
capital is shared out over bets of many sizes before any cost is seen; the wealth is their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

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
        return cls(*_mixture(binary))

    def log_factors(self, bound: float) -> tuple[Array, Array]:
        """Return the logarithms of what a cost of 0 and a cost of 1 do to each bet's capital."""
        with np.errstate(divide="ignore"):  # the whole capital is lost at a cost of 0
            return np.log1p(-self.sizes), np.log1p(self.sizes * (1 / bound - 1))

    def log_wealth(self, points: Array, weights: Array, mean: float) -> float:
        """Return the log wealth against `mean` after costs at `points`, `weights` of them at each."""
        with np.errstate(divide="ignore"):
            capitals = np.log((1 - self.sizes) + np.outer(points / mean, self.sizes))
        return log_sum(weights @ capitals + np.log(self.shares))

    def log_wealth_path(self, costs: Array, mean: float) -> list[float]:
        """Return the log wealth against `mean` before the first cost and after each.

        Examples
        --------
        >>> path = Bets.for_costs(binary=False).log_wealth_path(np.array([0.5, 0.9, 0.4]), 0.2)
        >>> [round(log, 2) for log in path]
        [0.0, 0.64, 1.86, 2.44]
        """
        with np.errstate(divide="ignore"):  # a bet of the whole capital is lost at a cost of 0
            factors = np.log((1 - self.sizes) + np.outer(costs / clamp_bound(mean), self.sizes))
        wealth: Array = np.logaddexp.reduce(np.cumsum(factors, axis=0) + np.log(self.shares), axis=1)
        return [0.0, *wealth.tolist()]


@cache
def _mixture(binary: bool) -> tuple[Array, Array]:
    points, weights = roots_legendre(NODES)
    root = (points + 1) / 2
    sizes, shares = root**3, 1.5 * weights * root**2
    if not binary:
        sizes, shares = np.append(sizes, 1.0), np.append(shares * (1 - WHOLE_SHARE), WHOLE_SHARE)
    shares /= shares.sum()
    sizes.flags.writeable = shares.flags.writeable = False  # everybody has the same
    return sizes, shares


class Wealth:
    """The wealth of both sides on one stream, one cost at a time and in constant memory.

    The adverse side bets that the mean cost is above `upper`, the benign side that it is below 1 - `rest`; it
    may have several such bounds.

    Attributes
    ----------
    n
        How many costs there were.
    log, best
        The log wealth against each bound now, and the largest so far.
    logs, product
        The capital of each bet is exp(logs) * product; logs are touched only when products may leave the
        floats.

    Examples
    --------
    >>> wealth = Wealth(Bets.for_costs(binary=False), 0.2, 0.9)
    >>> for cost in [0.5, 0.9, 0.4]:
    ...     wealth.step(cost)
    >>> [round(log, 2) for log in wealth.log]
    [2.44, -1.08]
    """

    def __init__(self, bets: Bets, upper: float, *rests: float) -> None:
        self._lines = 1 + len(rests)
        self._intercept, self._slope = linear_factors(bets, upper, *rests)
        self._fold_every = fold_interval(upper, *rests)
        self._factor = np.empty(self._slope.size)
        self.n = 0
        self.log = [0.0] * self._lines
        self.best = [0.0] * self._lines
        self.restore(np.tile(np.log(bets.shares), self._lines), np.ones(self._slope.size))

    def restore(self, logs: Array, product: Array) -> None:
        """Continue from stored capitals."""
        self.logs, self.product = logs, product
        self._rescale()

    def step(self, cost: float) -> None:
        """Count one more cost."""
        np.multiply(self._slope, cost, out=self._factor)
        np.add(self._factor, self._intercept, out=self._factor)
        np.multiply(self.product, self._factor, out=self.product)
        self.n += 1
        if self.n % self._fold_every == 0:
            self._fold()
        sums = self.product.dot(self._scale).tolist()  # on so few numbers three times as quick as @
        if min(sums) < 1e-250:  # the leading bet was wiped out and the others are far behind
            self._fold()
            sums = self.product.dot(self._scale).tolist()
        self.log = [top + math.log(total) for top, total in zip(self._tops, sums, strict=True)]
        self.best = list(map(max, self.log, self.best))

    def _fold(self) -> None:
        with np.errstate(divide="ignore"):  # a bet may have lost everything
            self.logs += np.log(self.product)
        self.product.fill(1.0)
        self._rescale()

    def _rescale(self) -> None:
        lines = self.logs.reshape(self._lines, -1)
        tops = lines.max(axis=1)
        self._tops = tops.tolist()
        scale = np.zeros((self._lines, lines.shape[1], self._lines))
        for line in range(self._lines):
            scale[line, :, line] = np.exp(lines[line] - tops[line])
        self._scale = scale.reshape(-1, self._lines)


def bet_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return what the bets of each side divide by: a wrong ADVERSE needs a mean cost of at most `upper`.

    A wrong BENIGN needs one of at least `lower`: that is a mean of 1 - cost of at most 1 - `lower`.
    """
    return clamp_bound(upper), clamp_bound(1 - lower)


def clamp_bound(bound: float) -> float:
    """Return a bound that a bet can divide by."""
    return min(max(bound, SMALLEST_BOUND), 1.0)


def linear_factors(bets: Bets, upper: float, *rests: float) -> tuple[Array, Array]:
    """Return a and s such that a + s x is what a cost x does to each bet, adverse bets first.

    The benign side bets on 1 - x against 1 - lower, called rest here; there may be several.
    """
    sizes = bets.sizes
    intercept = [1 - sizes, *[(1 - sizes) + sizes / rest for rest in rests]]
    slope = [sizes / upper, *[-sizes / rest for rest in rests]]
    return np.concatenate(intercept), np.concatenate(slope)


def fold_interval(*bounds: float) -> int:
    """Return for how many episodes a product of factors is sure to stay between 1e-120 and 1e60.

    That is of a bet of less than everything, whose factor is at least 0.015, against any of the bounds.
    """
    return max(1, min(64, int(138 / max(-math.log(min(bounds)), 1.0))))


def log_sum(logs: Array) -> float:
    """Return the logarithm of a sum from the logarithms of its terms.

    Examples
    --------
    >>> round(log_sum(np.log([1.0, 2.0, 3.0])), 6) == round(math.log(6), 6)
    True
    """
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def log_sums(logs: Array) -> Array:
    """Return the same along the last axis; scipy's logsumexp is ten times slower on so few numbers.

    Examples
    --------
    >>> np.exp(log_sums(np.log([[1.0, 2.0], [3.0, 4.0]]))).round(6).tolist()
    [3.0, 7.0]
    """
    top = logs.max(axis=-1, keepdims=True)
    sums: Array = top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1))
    return sums
