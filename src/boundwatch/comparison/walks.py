"""How failures of two policies accumulate, pair of trials by pair of trials: independent, or matched.

After n pairs, policy A has failed a times and B has failed b times. With *independent* trials, a pair adds a
failure to neither, to one or to both. With *matched* trials (same seed, same scene), a pair in which both do
the same says nothing about which is better, so a and b count the pairs in which only A, or only B, failed.

Given what is known under the null hypothesis (the pooled number of failures, or of pairs that differ), all
orders are equally likely. Everything here is therefore a share of orders, which no rate can change.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from boundwatch.bounds.two_sample import log_choose

Array = NDArray[np.float64]


class Walk(Protocol):
    """What `boundwatch.comparison.region` needs to know about how pairs add up."""

    degree_per_pair: int
    """The degree in the unknown rate that one pair adds to a probability under the null hypothesis."""

    def chances(self, n: int, rates_a: Array, rates_b: Array, weights: Array) -> Array:
        """Return the weighted chances of (a, b) after n pairs when nothing stops them."""
        ...

    def shares(self, n: int) -> Array:
        """Return, for every (a, b), its share of all orders with the same a + b under the null hypothesis."""
        ...

    def back(self, values: Array, n: int) -> Array:
        """Return the sums over what pair n + 1 may bring, of values that are chances times something."""
        ...

    def forth(self, alive: Array, n: int) -> Array:
        """Return the shares of the orders to each (a, b) after n pairs whose first n - 1 were alive."""
        ...


class IndependentWalk:
    """Every trial is a draw of its own."""

    degree_per_pair = 2

    def chances(self, n: int, rates_a: Array, rates_b: Array, weights: Array) -> Array:
        """Return a sum of products of two binomial probabilities."""
        value: Array = (binomial(n, rates_a) * weights) @ binomial(n, rates_b).T
        return value

    def shares(self, n: int) -> Array:
        """Return C(n, a) C(n, b)/C(2n, a + b)."""
        k = np.arange(n + 1)
        one = log_choose(n, k)
        value: Array = np.exp(one[:, None] + one - log_choose(2 * n, k[:, None] + k))
        return value

    def back(self, values: Array, n: int) -> Array:
        """Sum over the four outcomes of a pair."""
        up = np.arange(1, n + 2) / (n + 1)
        stay = 1 - np.arange(n + 1) / (n + 1)
        rows = values[1:] * up[:, None]
        rows += values[:-1] * stay[:, None]
        value: Array = rows[:, 1:] * up
        value += rows[:, :-1] * stay
        return value

    def forth(self, alive: Array, n: int) -> Array:
        """Average over which of the trials were the last pair."""
        failed = np.arange(n + 1) / n
        rows = np.zeros((n + 1, n))
        rows[1:] = alive * failed[1:, None]
        rows[:-1] += alive * (1 - failed[:-1, None])
        value = np.zeros((n + 1, n + 1))
        value[:, 1:] = rows * failed[1:]
        value[:, :-1] += rows * (1 - failed[:-1])
        return value


class MatchedWalk:
    """The two trials of a pair share what makes them easy or hard."""

    degree_per_pair = 1

    def chances(self, n: int, rates_a: Array, rates_b: Array, weights: Array) -> Array:
        """Return a sum of trinomial probabilities; the rates are of "only A failed", "only B failed"."""
        k = np.arange(n + 1)
        differing = k[:, None] + k
        same = np.maximum(n - differing, 0)
        orders = gammaln(n + 1) - gammaln(k + 1)[:, None] - gammaln(k + 1) - gammaln(same + 1)
        value = np.zeros((n + 1, n + 1))
        for a, b, weight in zip(rates_a.tolist(), rates_b.tolist(), weights.tolist(), strict=True):
            value += weight * np.exp(
                orders + k[:, None] * np.log(a) + k * np.log(b) + same * np.log1p(-a - b)
            )
        value[differing > n] = 0.0
        return value

    def shares(self, n: int) -> Array:
        """Return C(a + b, a)/2^(a + b): each of the two is equally likely to be the one that failed."""
        k = np.arange(n + 1)
        differing = k[:, None] + k
        logs = gammaln(differing + 1) - gammaln(k + 1)[:, None] - gammaln(k + 1) - differing * np.log(2)
        value: Array = np.where(differing > n, 0.0, np.exp(logs))
        return value

    def back(self, values: Array, n: int) -> Array:
        """Sum over the three outcomes of a pair that matter."""
        k = np.arange(n + 1)
        up = (k + 1) / (n + 1)
        value: Array = values[1:, :-1] * up[:, None] + values[:-1, 1:] * up
        value += values[:-1, :-1] * (np.maximum(n + 1 - k[:, None] - k, 0) / (n + 1))
        return value

    def forth(self, alive: Array, n: int) -> Array:
        """Average over which of the pairs was the last."""
        k = np.arange(n)
        value = np.zeros((n + 1, n + 1))
        value[1:, :-1] = alive * ((k + 1) / n)[:, None]
        value[:-1, 1:] += alive * ((k + 1) / n)
        value[:-1, :-1] += alive * (np.maximum(n - k[:, None] - k, 0) / n)
        return value


def binomial(n: int, rates: Array) -> Array:
    """Return the binomial probabilities of 0, 1, …, n (rows) at some rates (columns).

    Examples
    --------
    >>> binomial(2, np.array([0.5])).ravel().tolist()
    [0.25, 0.5, 0.25]
    """
    k = np.arange(n + 1)[:, None]
    value: Array = np.exp(log_choose(n, k) + xlogy(k, rates) + xlogy(n - k, 1 - rates))
    return value
