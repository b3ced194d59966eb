"""Bounds on the mean of n i.i.d. costs: Hoeffding, kl-Chernoff and, for binary costs, the exact binomial.

Each family has three functions: a lower limit, an upper limit, and the p-value of "the mean is at most
`null_mean`" to which they are dual. Limits never cross the observed mean, and p-values are 1 unless the mean
lies beyond the null, so verdicts are exclusive at every level (the paper's Lemmas 1 and 2).

**Guarantee** of each limit: with probability at least 1 - delta over the draw of the n costs, it lies on its
side of the expected cost. **Guarantee** of each p-value: under the null it is at most alpha with probability
at most alpha, for every alpha. **Assumes** everywhere: i.i.d. costs in [0, 1], and n fixed in advance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from boundwatch.bounds.kl import binary_kl, kl_inverse_lower, kl_inverse_upper

Array = NDArray[np.float64]
# betaincinv is accurate to a few units in the last place; this much slack rounds it outward.
_SLACK = 1e-13
# Beyond this many costs it is not: at 1e15 some limits come out too narrow. kl-Chernoff's hold for every n.
_LARGEST_EXACT = 10**9
# Nor below this delta: from 1e-90 on some inverses are not numbers, near 1e-300 some limits far too narrow.
_SMALLEST_EXACT = 1e-50


def hoeffding_lower(mean: ArrayLike, n: int, delta: float) -> Array:
    """Return mean - sqrt(ln(1/delta) / 2n), as in the paper's Theorem 3; as there, it may be below 0.

    >>> float(hoeffding_lower(0.5123, 10, 0.04).round(4)), float(hoeffding_upper(0.5123, 10, 0.04).round(4))
    (0.1111, 0.9135)
    """
    return np.asarray(np.asarray(mean, dtype=np.float64) - np.sqrt(np.log(1 / delta) / (2 * n)))


def hoeffding_upper(mean: ArrayLike, n: int, delta: float) -> Array:
    """Return Hoeffding's upper limit, which may be above 1."""
    return np.asarray(np.asarray(mean, dtype=np.float64) + np.sqrt(np.log(1 / delta) / (2 * n)))


def hoeffding_p_value(mean: ArrayLike, n: int | NDArray[np.int64], null_mean: float | Array) -> Array:
    """Return exp(-2n τ²), τ = max(mean - null_mean, 0): the paper's Theorem 2.

    >>> float(hoeffding_p_value(0.5123, 10, 0.22216).round(3))
    0.186
    """
    excess = np.maximum(np.asarray(mean, dtype=np.float64) - null_mean, 0.0)
    return np.asarray(np.exp(-2 * n * excess**2))


def chernoff_lower(mean: ArrayLike, n: int, delta: float) -> Array:
    """Return the smallest p with n kl(mean || p) <= ln(1/delta), never below Hoeffding's.

    >>> float(chernoff_lower(0.5123, 10, 0.04).round(4)), float(chernoff_upper(0.3, 10_000, 0.01).round(4))
    (0.1635, 0.314)
    """
    return kl_inverse_lower(mean, np.log(1 / delta) / n)


def chernoff_upper(mean: ArrayLike, n: int, delta: float) -> Array:
    """Return the kl-Chernoff upper limit."""
    return kl_inverse_upper(mean, np.log(1 / delta) / n)


def chernoff_p_value(mean: ArrayLike, n: int | NDArray[np.int64], null_mean: float | Array) -> Array:
    """Return exp(-n kl(mean || null_mean)), or 1 unless mean > null_mean; never above Hoeffding's.

    >>> float(chernoff_p_value(0.5123, 10, 0.22216).round(3))
    0.135
    """
    mean = np.asarray(mean, dtype=np.float64)
    return np.where(mean > null_mean, np.exp(-n * binary_kl(mean, null_mean)), 1.0)


def clopper_pearson_lower(failures: ArrayLike, n: int, delta: float) -> Array:
    """Return the exact binomial lower limit on the failure probability, for costs in {0, 1}.

    Beyond 1e9 costs, or below a delta of 1e-50, the inverse beta function is too inaccurate, and the limit is
    kl-Chernoff's, which is never narrower.

    >>> [float(of(7, 10, 0.05).round(4)) for of in (clopper_pearson_lower, clopper_pearson_upper)]
    [0.3934, 0.9127]
    """
    k = np.asarray(failures, dtype=np.float64)
    if n > _LARGEST_EXACT or delta < _SMALLEST_EXACT:
        return chernoff_lower(k / n, n, delta)
    limit = special.betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, delta) * (1 - _SLACK)
    return np.where(k == 0, 0.0, np.minimum(limit, k / n))


def clopper_pearson_upper(failures: ArrayLike, n: int, delta: float) -> Array:
    """Return the exact binomial upper limit; see `clopper_pearson_lower`."""
    k = np.asarray(failures, dtype=np.float64)
    if n > _LARGEST_EXACT or delta < _SMALLEST_EXACT:
        return chernoff_upper(k / n, n, delta)
    limit = special.betainccinv(np.minimum(k, n - 1) + 1, n - np.minimum(k, n - 1), delta) * (1 + _SLACK)
    return np.where(k == n, 1.0, np.maximum(np.minimum(limit, 1.0), k / n))


def binomial_p_value(failures: ArrayLike, n: int | NDArray[np.int64], null_mean: float | Array) -> Array:
    """Return P[Binomial(n, null_mean) >= failures], or 1 unless failures/n > null_mean.

    Never above kl-Chernoff's.

    >>> float(binomial_p_value(7, 10, 0.25).round(5))
    0.00351
    """
    k = np.asarray(failures, dtype=np.float64)
    if np.max(n) > _LARGEST_EXACT:
        return chernoff_p_value(k / n, n, null_mean)
    tail = special.betainc(np.maximum(k, 1), n - np.maximum(k, 1) + 1, null_mean)
    return np.where(k > n * null_mean, tail, 1.0)
