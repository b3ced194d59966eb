"""Two series of costs of 0 and 1: how strongly they say "the second rate is higher", and for which level.

A statistic compares two explanations of k0 failures in n0 trials and k1 in n1. The first: p0 is uniform on
(0, 1), and p1 uniform on (p0, 1). The second: one common rate, mixed over Jeffreys' prior. The logarithm of
their likelihood ratio grows with k1 (unless k0 = n0, where it never says much).

Where to alarm is decided by exact probabilities. Under a common rate c all orders of the same pooled number
of failures are equally likely. So the probability of an alarm is a polynomial in c whose coefficients in
Bernstein form are R(S), the share of the orders of S failures in n trials that alarm:
P_c = sum over S of R(S) Binomial(n, S; c). No value of such a polynomial exceeds its largest coefficient, and
raising the degree brings that coefficient down to the largest value: one number bounds the level for every c.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Array = NDArray[np.float64]
# Sums of thousands of rounded terms and logarithms of binomial coefficients are off by less than this.
SLACK = 1e-10


def log_higher_rate(n0: int, n1: int, k0: ArrayLike | None = None) -> Array:
    """Return the log probability of one order of the trials when the second rate is the higher one.

    Integrates p0^k0 (1 - p0)^(n0 - k0) p1^k1 (1 - p1)^(n1 - k1) over p0 uniform on (0, 1) and p1 uniform on
    (p0, 1). It is a finite sum of positive terms: B(k1 + 1, n1 - k1 + 1)/(n + 1) times the sum over
    i <= k1 of C(n1 + 1, i)/C(n, k0 + i), where n = n0 + n1.

    Parameters
    ----------
    n0, n1
        Numbers of trials of the two series.
    k0
        Failures in the first series, one row each; left out, all of 0, 1, …, n0.

    Returns
    -------
    Array
        One row per k0, one column per k1 = 0, 1, …, n1.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_higher_rate(0, 1)).round(3)  # a failure is likelier: the mean of p1 is 3/4
    array([[0.25, 0.75]])
    """
    rows = np.arange(n0 + 1) if k0 is None else np.atleast_1d(np.asarray(k0, dtype=np.int64))
    n, k1 = n0 + n1, np.arange(n1 + 1)
    terms = log_choose(n1 + 1, k1) - log_choose(n, rows[:, None] + k1)
    sums: Array = np.logaddexp.accumulate(terms, axis=1)
    value: Array = sums - np.log(n + 1) - np.log(n1 + 1) - log_choose(n1, k1)
    return value


def log_common_rate(n: int, failures: ArrayLike) -> Array:
    """Return the log probability of one order of n trials under one rate, mixed over Jeffreys' prior.

    Parameters
    ----------
    n
        Number of trials.
    failures
        How many of them failed.

    Examples
    --------
    >>> float(np.exp(log_common_rate(2, 1)).round(4))
    0.125
    """
    k = np.asarray(failures, dtype=np.float64)
    value: Array = special.betaln(k + 0.5, n - k + 0.5) - special.betaln(0.5, 0.5)
    return value


def log_best_rate(n: int, failures: ArrayLike) -> Array:
    """Return the log probability of one order of n trials under the rate that makes it largest.

    Parameters
    ----------
    n, failures
        As in `log_common_rate`.

    Examples
    --------
    >>> float(np.exp(log_best_rate(2, 1)))
    0.25
    """
    k = np.asarray(failures, dtype=np.float64)
    value: Array = special.xlogy(k, k / n) + special.xlogy(n - k, 1 - k / n)
    return value


def log_bayes_factors(n0: int, n1: int, k0: ArrayLike | None = None) -> Array:
    """Return the log Bayes factor of "the second rate is higher" against one common rate.

    It grows with k1 for every k0 < n0, so that an alarm at a threshold is one at "k1 failures or more".

    Parameters
    ----------
    n0, n1, k0
        As in `log_higher_rate`.

    Returns
    -------
    Array
        One row per k0, one column per k1 = 0, 1, …, n1.

    Examples
    --------
    >>> np.exp(log_bayes_factors(50, 4, [4])).round(1)
    array([[2.0000e-01, 7.0000e-01, 4.4000e+00, 4.8600e+01, 1.2057e+03]])
    """
    rows = np.arange(n0 + 1) if k0 is None else np.atleast_1d(np.asarray(k0, dtype=np.int64))
    pooled = log_common_rate(n0 + n1, np.arange(n0 + n1 + 1))
    value: Array = log_higher_rate(n0, n1, rows) - pooled[rows[:, None] + np.arange(n1 + 1)]
    return value


def alarm_coefficients(paths: Array, n: int) -> Array:
    """Return R(S), the share of the orders of S failures in n trials that alarm, from those that do not.

    Orders that underflow loses count as alarms, so no level is understated.

    Parameters
    ----------
    paths
        How many orders without an alarm end with k0 failures in the first series (rows) and k1 in the second
        (columns). Adding trials is addition: ``paths[:, 1:] += paths[:, :-1]`` is one more in the second.
    n
        Trials in both series together; at most about 1,000, beyond which the counts leave the floats.

    Examples
    --------
    >>> alarm_coefficients(np.array([[1.0, 0.0], [1.0, 1.0]]), 2)  # alarm at k0 = 0, k1 = 1
    array([0. , 0.5, 0. ])
    """
    return alarm_coefficients_from_logs(paths, 0.0, n)


def alarm_coefficients_from_logs(paths: Array, log_scale: ArrayLike, n: int) -> Array:
    """Return the same when row k0 of `paths` is to be multiplied by the exponential of `log_scale`."""
    rows, columns = paths.shape
    failures = np.add.outer(np.arange(rows), np.arange(columns))
    scale = np.broadcast_to(np.asarray(log_scale, dtype=np.float64), (rows,))
    with np.errstate(divide="ignore"):
        shares = np.exp(np.log(paths) + scale[:, None] - log_choose(n, failures))
    alive = np.bincount(failures.ravel(), weights=shares.ravel(), minlength=n + 1)
    coefficients: Array = np.clip(1.0 - alive, 0.0, 1.0)
    return coefficients


def raise_degree(coefficients: ArrayLike, degree: int) -> Array:
    """Return the coefficients of the same polynomial in Bernstein form of a higher degree.

    Every new coefficient is an average of old ones, so rounding does not grow.

    Parameters
    ----------
    coefficients
        The n + 1 coefficients at degree n.
    degree
        The new degree, at least n.

    Examples
    --------
    >>> raise_degree([0, 1, 0], 4).round(3)
    array([0.   , 0.5  , 0.667, 0.5  , 0.   ])
    """
    values = np.asarray(coefficients, dtype=np.float64)
    if values.size * degree <= 1_500_000:  # 12 MB
        return _elevation(values.size - 1, degree) @ values
    for n in range(values.size, degree + 1):  # from degree n - 1 to degree n
        share = np.arange(n + 1) / n
        values = np.append(values, 0.0) * (1 - share) + np.append(0.0, values) * share
    return values


@lru_cache(maxsize=4)
def _elevation(n: int, degree: int) -> Array:
    """Return the matrix that raises degree n: how many of S failures are among the first n trials."""
    k, total = np.arange(n + 1), np.arange(degree + 1)[:, None]
    matrix: Array = np.exp(log_choose(n, k) + log_choose(degree - n, total - k) - log_choose(degree, total))
    return matrix


def bernstein_upper(coefficients: ArrayLike, degree: int | None = None) -> float:
    """Return a bound on the largest value on [0, 1] of a polynomial with non-negative coefficients.

    **Guarantee**: never below the largest value; the higher the degree, the closer.

    Parameters
    ----------
    coefficients
        As in `raise_degree`.
    degree
        The degree at which to read off the bound; left out, four times the given one.

    Examples
    --------
    >>> round(bernstein_upper([0, 1, 0], 100), 3)  # 2 c (1 - c) is at most 1/2
    0.505
    """
    values = np.asarray(coefficients, dtype=np.float64)
    raised = raise_degree(values, 4 * (values.size - 1) if degree is None else degree)
    return float(raised.max()) * (1 + SLACK) + SLACK * 1e-3


def bernstein_values(coefficients: ArrayLike, rates: ArrayLike) -> Array:
    """Return the values of a polynomial in Bernstein form, such as P[alarm] at some common rates.

    Parameters
    ----------
    coefficients
        As in `raise_degree`.
    rates
        Where to evaluate it, in [0, 1].

    Examples
    --------
    >>> bernstein_values([0, 1, 0], [0.25, 0.5])
    array([0.375, 0.5  ])
    """
    values = np.asarray(coefficients, dtype=np.float64)
    n, k = values.size - 1, np.arange(values.size)
    c = np.asarray(rates, dtype=np.float64)[..., None]
    logs = log_choose(n, k) + special.xlogy(k, c) + special.xlog1py(n - k, -c)
    result: Array = np.exp(logs) @ values
    return result


def log_choose(n: int, k: ArrayLike) -> Array:
    """Return the logarithm of the binomial coefficient, minus infinity outside 0 <= k <= n.

    Parameters
    ----------
    n, k
        How many to choose from, and how many to choose.

    Examples
    --------
    >>> float(np.exp(log_choose(4, 2)).round(9)), float(log_choose(4, 5))
    (6.0, -inf)
    """
    chosen = np.asarray(k)
    factorials = np.append(special.gammaln(np.arange(1, n + 2)), np.inf)
    inside = np.where((chosen < 0) | (chosen > n), n + 1, chosen)
    rest = np.where((chosen < 0) | (chosen > n), n + 1, n - chosen)
    value: Array = factorials[n] - factorials[inside] - factorials[rest]
    return value
