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
Counts = NDArray[np.int64]


def outcomes(n: int, rates_a: Array, rates_b: Array, weights: Array) -> Array:
    """Return the weighted chances of (a, b) after n pairs when nothing stops them."""
    return np.asarray((binomial(n, rates_a) * weights) @ binomial(n, rates_b).T)


def order_shares(n: int) -> Array:
    """Return the share of (a, b) in all orders with its a + b: C(n, a) C(n, b)/C(2n, a + b)."""
    k = np.arange(n + 1)
    one = log_choose(n, k)
    return np.asarray(np.exp(one[:, None] + one - log_choose(2 * n, k[:, None] + k)))


def back(values: Array, n: int) -> Array:
    """Sum over the outcomes of pair n + 1, of values that are chances times something."""
    up = np.arange(1, n + 2) / (n + 1)
    stay = 1 - np.arange(n + 1) / (n + 1)
    rows = values[1:] * up[:, None]
    rows += values[:-1] * stay[:, None]
    value: Array = rows[:, 1:] * up
    value += rows[:, :-1] * stay
    return value


def forward(needed: list[Counts]) -> Array:
    """Return, for every (a, b) after the last pair, the share of its orders that have had no alarm."""
    alive: Array = np.ones((1, 1))
    for n in range(1, len(needed)):
        failed = np.arange(n + 1) / n
        rows = np.zeros((n + 1, n))
        rows[1:] = alive * failed[1:, None]
        rows[:-1] += alive * (1 - failed[:-1, None])
        alive = np.zeros((n + 1, n + 1))
        alive[:, 1:] = rows * failed[1:]
        alive[:, :-1] += rows * (1 - failed[:-1])
        alive[np.arange(n + 1) >= needed[n][:, None]] = 0.0
    return alive


def binomial(n: int, rates: Array | float) -> Array:
    """Return the binomial probabilities of 0, 1, …, n (rows) at some rates (columns)."""
    k = np.arange(n + 1)[:, None]
    return np.asarray(np.exp(log_choose(n, k) + xlogy(k, rates) + xlogy(n - k, 1 - rates)))
