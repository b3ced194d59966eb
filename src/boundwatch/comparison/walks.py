"""How failures of two policies accumulate, pair of independent trials by pair.

After n pairs, policy A has failed a times and B has failed b times; a pair adds a failure to neither, to one
or to both. Given the pooled number of failures under the null hypothesis, all orders are equally likely.
Everything here is therefore a share of orders, which no rate can change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from boundwatch.bounds.two_sample import log_choose

Array = NDArray[np.float64]


class IndependentWalk:
    """Every trial is a draw of its own."""

    def chances(self, n: int, rates_a: Array, rates_b: Array, weights: Array) -> Array:
        """Return the weighted chances of (a, b) after n pairs when nothing stops them."""
        value: Array = (binomial(n, rates_a) * weights) @ binomial(n, rates_b).T
        return value

    def shares(self, n: int) -> Array:
        """Return the share of (a, b) in all orders with its a + b: C(n, a) C(n, b)/C(2n, a + b)."""
        k = np.arange(n + 1)
        one = log_choose(n, k)
        value: Array = np.exp(one[:, None] + one - log_choose(2 * n, k[:, None] + k))
        return value

    def back(self, values: Array, n: int) -> Array:
        """Sum over the outcomes of pair n + 1, of values that are chances times something."""
        up = np.arange(1, n + 2) / (n + 1)
        stay = 1 - np.arange(n + 1) / (n + 1)
        rows = values[1:] * up[:, None]
        rows += values[:-1] * stay[:, None]
        value: Array = rows[:, 1:] * up
        value += rows[:, :-1] * stay
        return value

    def forth(self, alive: Array, n: int) -> Array:
        """Return the shares of the orders to each (a, b) after n pairs whose first n - 1 were alive."""
        failed = np.arange(n + 1) / n
        rows = np.zeros((n + 1, n))
        rows[1:] = alive * failed[1:, None]
        rows[:-1] += alive * (1 - failed[:-1, None])
        value = np.zeros((n + 1, n + 1))
        value[:, 1:] = rows * failed[1:]
        value[:, :-1] += rows * (1 - failed[:-1])
        return value


def binomial(n: int, rates: Array) -> Array:
    """Return the binomial probabilities of 0, 1, …, n (rows) at some rates (columns)."""
    k = np.arange(n + 1)[:, None]
    value: Array = np.exp(log_choose(n, k) + xlogy(k, rates) + xlogy(n - k, 1 - rates))
    return value
