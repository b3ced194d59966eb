"""One number that bounds the level of a test on failures in two series of trials, whatever their common rate.

Under a common rate c all orders of the same pooled number of failures are equally likely. So the probability
of an alarm is a polynomial in c whose coefficients in Bernstein form are R(S), the share of the orders of S
failures in n trials that alarm: P_c = sum over S of R(S) Binomial(n, S; c). No value of such a polynomial
exceeds its largest coefficient, and raising the degree brings that coefficient down to the largest value.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from boundwatch.bounds.bets import Array, shared

# Sums of thousands of rounded terms and logarithms of binomial coefficients are off by less than this.
SLACK = 1e-10
_MOST_CONVOLVED = 1000  # 2 to this power is a float, and so is 1 over it


def log_common_rate(n: int, failures: ArrayLike) -> Array:
    """Return the log probability of one order of n trials under one rate, mixed over Jeffreys' prior."""
    k = np.asarray(failures, dtype=np.float64)
    return np.asarray(special.betaln(k + 0.5, n - k + 0.5) - special.betaln(0.5, 0.5))


def raise_degree(coefficients: ArrayLike, degree: int) -> Array:
    """Return the coefficients of the same polynomial in Bernstein form of a higher degree.

    Every new coefficient is an average of old ones, so rounding does not grow.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    n = values.size - 1
    if degree <= _MOST_CONVOLVED:
        # Of S ones in all trials, k are among the first n: sums of products of three binomial chances.
        return np.asarray(np.convolve(values * _fair(n), _fair(degree - n)) / _fair(degree))
    if values.size * degree <= 1_500_000:  # 12 MB
        return _elevation(n, degree) @ values
    raised, places = np.zeros(degree + 1), np.arange(degree + 1.0)
    raised[: values.size] = values
    for n in range(values.size, degree + 1):  # from degree n - 1 to degree n
        share = places[: n + 1] / n
        moved = raised[:n] * share[1:]
        raised[: n + 1] *= 1 - share
        raised[1 : n + 1] += moved
    return raised


@lru_cache(maxsize=64)
def _fair(n: int) -> Array:
    """Return the chances of n fair coins."""
    return shared(np.exp(log_choose(n, np.arange(n + 1)) - n * np.log(2)))


@lru_cache(maxsize=4)
def _elevation(n: int, degree: int) -> Array:
    """Return the matrix that raises degree n: how many of S failures are among the first n trials."""
    k, total = np.arange(n + 1), np.arange(degree + 1)[:, None]
    return shared(np.exp(log_hypergeometric(n, k, degree - n, total)))


def bernstein_upper(coefficients: ArrayLike, degree: int | None = None) -> float:
    """Return a bound on the largest value on [0, 1] of a polynomial with non-negative coefficients.

    **Guarantee**: never below the largest value; the higher the degree, the closer.
    """
    values = np.asarray(coefficients, dtype=np.float64)
    raised = raise_degree(values, 4 * (values.size - 1) if degree is None else degree)
    return float(raised.max()) * (1 + SLACK) + SLACK * 1e-3


def bernstein_values(coefficients: ArrayLike, rates: ArrayLike) -> Array:
    """Return the values of a polynomial in Bernstein form, such as P[alarm] at some common rates."""
    values = np.asarray(coefficients, dtype=np.float64)
    return np.asarray(chances(values.size - 1, np.asarray(rates, dtype=np.float64)[..., None]) @ values)


def chances(n: int, rates: Array) -> Array:
    """Return the chances of k = 0, …, n failures among n trials (columns), at some rates (rows)."""
    k = np.arange(n + 1)
    return np.asarray(np.exp(log_choose(n, k) + special.xlogy(k, rates) + special.xlog1py(n - k, -rates)))


def log_hypergeometric(n: int, k: ArrayLike, others: int, total: ArrayLike) -> Array:
    """Return the log chances that, of so many failures in n trials and some others, k are among the n."""
    rest = np.asarray(total) - np.asarray(k)
    return np.asarray(log_choose(n, k) + log_choose(others, rest) - log_choose(n + others, total))


def log_choose(n: int, k: ArrayLike) -> Array:
    """Return the logarithm of the binomial coefficient, minus infinity outside 0 <= k <= n."""
    chosen = np.asarray(k)
    factorials = np.append(special.gammaln(np.arange(1, n + 2)), np.inf)
    inside = np.where((chosen < 0) | (chosen > n), n + 1, chosen)
    rest = np.where((chosen < 0) | (chosen > n), n + 1, n - chosen)
    return np.asarray(factorials[n] - factorials[inside] - factorials[rest])
